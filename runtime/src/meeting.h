#pragma once

/// How the ranks of a job find each other, through a store: rank 0 serves it for as long as it lives, or torchrun does.
///
/// A launcher with --max_restarts starts the ranks of its own machine again when one of them fails. Launchers of
/// several machines don't speak with each other, and each notices the failure at another time, so a rank that has been
/// started again may find the store of a rank 0 that is about to end. So rank 0 writes down which start of the job its
/// store is of. Who is ahead says so, and waits for the next store; who is behind, or is told that others are ahead,
/// fails, upon which its launcher starts it again, too. All ranks of a job that trains are of the same start.

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "environment.h"

namespace accelerate::detail {

/// Whether this rank serves the store.
bool serves_store(const Environment& environment);

/// A connection to the store. Waits for it for as long as the ranks' timeout.
c10::intrusive_ptr<c10d::Store> open_store(const Environment& environment, bool serve);

/// Waits until all ranks are there, and returns the store. Throws c10::Error if that takes longer than the ranks'
/// timeout, naming who is missing, or if this start of the job is over.
c10::intrusive_ptr<c10d::Store> meet(const Environment& environment);

}  // namespace accelerate::detail
