#include "alloc/span_map.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace perdix::detail::alloc {

unsigned SpanSet::size() const noexcept {
  unsigned count = 0;
  for (const std::uint64_t word : words_) count += static_cast<unsigned>(std::popcount(word));
  return count;
}

unsigned SpanSet::longest_run() const noexcept {
  unsigned longest = 0;
  unsigned current = 0;
  for (const std::uint64_t word : words_) {
    if (word == ~std::uint64_t{0}) {
      current += 64;
    } else if (word == 0) {
      current = 0;
    } else {
      for (unsigned i = 0; i < 64; ++i) {
        current = word >> i & 1 ? current + 1 : 0;
        longest = std::max(longest, current);
      }
    }
    longest = std::max(longest, current);
  }
  return longest;
}

unsigned SpanSet::find_run(unsigned count) const noexcept {
  unsigned current = 0;
  for (unsigned i = 0; i < kSpansPerChunk; ++i) {
    current = contains(i) ? current + 1 : 0;
    if (current == count) return i + 1 - count;
  }
  assert(false && "there is no such run");
  return 0;
}

}  // namespace perdix::detail::alloc
