// Reading PM. Words that a writer may change meanwhile are read atomically; whole lines that are
// read optimistically (and validated by a version afterwards) go through `optimistic()`, the one
// place that is hidden from ThreadSanitizer.
#pragma once

#include <cstddef>
#include <type_traits>

#include "pm/probe.h"

namespace perdix::pm {

/// Reads one aligned word of 1, 2, 4 or 8 bytes. Acquire, so that what a publish() made reachable
/// is seen complete; free on x86.
template <class T>
inline T load(const T& word) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  on_read(&word, sizeof(T));
  T value;
  __atomic_load(const_cast<T*>(&word), &value, __ATOMIC_ACQUIRE);
  return value;
}

/// Calls `read()`, which loads from [p, p+n) without atomics while a writer may store there. The
/// caller validates a version afterwards and throws the result away if it changed, so a torn read
/// is harmless; ThreadSanitizer can't know that. `read` must not call functions that are not
/// inlined.
template <class Read>
__attribute__((no_sanitize("thread"))) inline auto optimistic(const void* p, std::size_t n,
                                                              Read read) {
  on_read(p, n);
  return read();
}

}  // namespace perdix::pm
