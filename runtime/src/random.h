#pragma once

namespace accelerate::detail {

/// Gives dropout a random stream of this rank's own, so that ranks drop different units and, drawing for
/// unequal numbers of rows, stay together in the common stream. Called once, with other ranks only.
void separate_dropout();

}  // namespace accelerate::detail
