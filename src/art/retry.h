// Optimistic attempts, repeated until one is not disturbed by another thread.
#pragma once

#include "util/spin_lock.h"

namespace perdix::detail::art {

namespace detail {

/// Repeats an attempt until it gives a result.
template <class Attempt>
auto retry(Attempt attempt) {
  util::Backoff backoff;
  for (;;) {
    if (auto result = attempt()) return *result;
    backoff.pause();
  }
}

}  // namespace detail

}  // namespace perdix::detail::art
