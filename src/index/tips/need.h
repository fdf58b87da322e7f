// The blocks that a put may need.
#pragma once

#include <array>
#include <cstdint>

#include "alloc/layout.h"
#include "alloc/size_class.h"

namespace perdix::detail::index::tips {

class Need {
 public:
  /// Blocks above the largest class take runs of spans.
  void add(std::uint64_t bytes, unsigned count) {
    if (bytes > alloc::kLargestClass) spans_ += spans_of(bytes) * count;
    parts_[used_++] = {bytes, count};
  }

  /// Spans in runs.
  std::uint64_t spans() const { return spans_; }

  /// Calls use(size_class, count) for the blocks that have a class.
  template <class Use>
  void for_each(Use use) const {
    for (unsigned i = 0; i < used_; ++i)
      if (parts_[i].bytes <= alloc::kLargestClass)
        use(alloc::size_class_of(parts_[i].bytes), parts_[i].count);
  }

  /// Takes one block of at least `bytes` out of the need, the smallest. Returns its bytes; 0 if the
  /// need has none.
  std::uint64_t take(std::uint64_t bytes) {
    Part* best = nullptr;
    for (unsigned i = 0; i < used_; ++i) {
      Part& part = parts_[i];
      if (part.count == 0 || part.bytes < bytes) continue;
      if (best == nullptr || part.bytes < best->bytes) best = &part;
    }
    if (best == nullptr) return 0;
    --best->count;
    return best->bytes;
  }

 private:
  static constexpr unsigned kMaxParts = 7;  // key, value, five kinds of nodes

  struct Part {
    std::uint64_t bytes;
    unsigned count;
  };

  static std::uint64_t spans_of(std::uint64_t bytes) {
    return (bytes + alloc::kSpanSize - 1) / alloc::kSpanSize;
  }

  std::array<Part, kMaxParts> parts_{};
  unsigned used_ = 0;
  std::uint64_t spans_ = 0;
};

}  // namespace perdix::detail::index::tips
