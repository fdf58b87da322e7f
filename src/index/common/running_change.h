// Keeps the function that update_with() calls from changing the key that it is called for.
//
// Each thread has a list of the functions that it is running, on its stack. The list is almost
// always empty, and calls that change a key look for nothing else then.
#pragma once

#include <perdix/change.h>

namespace perdix::detail::index {

/// The last that has begun and not ended; null if none runs.
extern constinit thread_local RunningChange* innermost_change;

/// Throws invalid_argument: a function that this thread runs is for that key.
[[noreturn]] void throw_nested_change();

/// Throws invalid_argument if this thread runs a function for that key.
template <class Key>
[[gnu::always_inline]] inline void refuse_nested_change(const void* index, const Key& key) {
  if (innermost_change == nullptr) [[likely]]
    return;
  if (RunningChange::contains(innermost_change, index, key_bytes(key))) throw_nested_change();
}

}  // namespace perdix::detail::index
