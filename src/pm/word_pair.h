// Two words that change together, as far as other threads see: the 16-byte compare-and-swap of
// every x86-64 (cmpxchg16b). It says nothing about crashes: see Persister::compare_exchange.
#pragma once

#include <cstdint>

#if defined(__SANITIZE_THREAD__)
#define PERDIX_PAIR_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PERDIX_PAIR_TSAN 1
#endif
#endif

#ifdef PERDIX_PAIR_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace perdix::detail::pm {

struct alignas(16) WordPair {
  std::uint64_t first;
  std::uint64_t second;
};

/// Sets both words if both are as expected; otherwise `expected` becomes the present words.
/// Sequentially consistent.
inline bool compare_exchange_pair(WordPair& pair, WordPair& expected, WordPair desired) {
#ifdef PERDIX_PAIR_TSAN
  // The sanitizer does not see the instruction. A thread that loads either word later is ordered
  // after it.
  __tsan_release(&pair.first);
  __tsan_release(&pair.second);
#endif
  bool changed;
  asm volatile("lock cmpxchg16b %[pair]"
               : "=@ccz"(changed), [pair] "+m"(pair), "+a"(expected.first), "+d"(expected.second)
               : "b"(desired.first), "c"(desired.second)
               : "memory");
#ifdef PERDIX_PAIR_TSAN
  __tsan_acquire(&pair.first);
  __tsan_acquire(&pair.second);
#endif
  return changed;
}

}  // namespace perdix::detail::pm
