// The blocks that an epoch has allocated. Their lines need no undo record.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "index/tips/line_set.h"
#include "pm/offset.h"

namespace perdix::detail::index::tips {

/// Not thread-safe.
class FreshBlocks {
 public:
  struct Block {
    pm::Offset offset;
    std::uint64_t bytes;
  };

  /// The next add() finds room.
  void make_room() {
    small_.make_room(1);
    grow(all_);
    grow(large_);
  }

  /// `small`: it has a size class, so the allocator finds its begin.
  void add(Block block, bool small) noexcept {
    all_.push_back(block);
    if (small)
      small_.insert(block.offset);
    else
      large_.insert(after(block.offset), block);
  }

  /// Whether a block of a size class is there, by its begin.
  bool has_small(pm::Offset block) const noexcept { return small_.contains(block); }

  /// The end of the large block that an offset lies in; kNull if none is there.
  pm::Offset end_of_large(pm::Offset offset) noexcept {
    const auto next = after(offset);
    if (next == large_.begin()) return pm::kNull;
    const Block& block = *std::prev(next);
    return offset < block.offset + block.bytes ? block.offset + block.bytes : pm::kNull;
  }

  const std::vector<Block>& all() const { return all_; }

  void clear() noexcept {
    small_.clear();
    all_.clear();
    large_.clear();
  }

  std::size_t dram_bytes() const {
    return small_.dram_bytes() + (all_.capacity() + large_.capacity()) * sizeof(Block);
  }

 private:
  static void grow(std::vector<Block>& blocks) {
    if (blocks.size() == blocks.capacity())
      blocks.reserve(std::max<std::size_t>(16, 2 * blocks.size()));
  }
  std::vector<Block>::iterator after(pm::Offset offset) noexcept {
    return std::upper_bound(large_.begin(), large_.end(), offset,
                            [](pm::Offset at, const Block& block) { return at < block.offset; });
  }

  LineSet small_;
  std::vector<Block> all_;
  std::vector<Block> large_;  // of them, ascending
};

}  // namespace perdix::detail::index::tips
