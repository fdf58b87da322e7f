// Reads of words of PM that a writer may be changing.
#pragma once

#include <type_traits>

#include "pm/probe.h"

namespace perdix::detail::pm {

/// Reads one aligned word of 1, 2, 4 or 8 bytes. Acquire, so that an object which a publish() made
/// reachable is seen complete; free on x86.
template <class T>
inline T load(const T& word) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  on_read(&word, sizeof(T));
  T value;
  __atomic_load(const_cast<T*>(&word), &value, __ATOMIC_ACQUIRE);
  return value;
}

}  // namespace perdix::detail::pm
