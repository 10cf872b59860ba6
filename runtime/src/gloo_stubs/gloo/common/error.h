#pragma once
// Nothing of this header is needed by ProcessGroupGloo.hpp. See README.md.
