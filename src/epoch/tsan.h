// What ThreadSanitizer must be told about this folder, and the fences that it doesn't know.
// Included by epoch/ only.
//
// liburcu is not instrumented, so the order that a grace period establishes is declared here.
// Fences are not modelled by the sanitizer, and compilers warn about them: in a sanitized build
// they are left out, which is sound because there every load and store of an atomic is executed by
// the sanitizer in program order.
#pragma once

#include <atomic>

#if defined(__SANITIZE_THREAD__)
#define PERDIX_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PERDIX_TSAN 1
#endif
#endif

#ifdef PERDIX_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace perdix::detail::epoch::tsan {

/// All that this thread did so far happens before everything after the next `acquire` of the same
/// address by any thread.
inline void release([[maybe_unused]] void* address) noexcept {
#ifdef PERDIX_TSAN
  __tsan_release(address);
#endif
}

inline void acquire([[maybe_unused]] void* address) noexcept {
#ifdef PERDIX_TSAN
  __tsan_acquire(address);
#endif
}

inline void fence([[maybe_unused]] std::memory_order order) noexcept {
#ifndef PERDIX_TSAN
  std::atomic_thread_fence(order);
#endif
}

}  // namespace perdix::detail::epoch::tsan
