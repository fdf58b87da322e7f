// A segment of inserted rows: a short log in PM, and in DRAM what finds its rows.
//
// A row counts once `visible` says so, which follows the commit in PM: readers see durable rows
// only. The hash table is made when it is first needed, so that opening reads no rows.
//
// Readers are thread-safe; one thread appends at a time.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "index/elf/layout.h"
#include "index/elf/node.h"
#include "index/elf/shape.h"
#include "pool/pool_core.h"
#include "util/seeded_hash.h"

namespace perdix::detail::index::elf {

class Segment {
 public:
  /// Of the segment at an offset, which is valid, or was formatted by this thread.
  Segment(pool::PoolCore& pool, const Root& root, pm::Offset offset, std::uint64_t first);

  /// Throws corrupt unless a segment lies there whose first row has this TID.
  static void require_valid(pool::PoolCore& pool, const Root& root, pm::Offset offset,
                            std::uint64_t first);

  static std::uint64_t bytes_for(const Root& root);

  /// Writes an empty segment into a new block; durable with the next fence.
  static void format(pool::PoolCore& pool, const Root& root, pm::Offset offset,
                     std::uint64_t first);

  SegmentLayout& layout() const { return *layout_; }
  pm::Offset offset() const { return offset_; }
  std::uint64_t first() const { return first_; }
  std::uint64_t end() const { return first_ + visible(); }
  std::uint32_t visible() const { return visible_.load(std::memory_order_acquire); }
  bool full() const { return visible() == capacity_; }
  std::uint64_t* dead() const { return dead_; }

  const std::uint32_t* row(std::uint32_t i) const {
    const std::uint32_t* values = rows_ + std::size_t{i} * dimensions_;
    pm::on_read(values, dimensions_ * sizeof *values);
    return values;
  }

  /// Adds a row, durably. There is room.
  void append(std::span<const std::uint32_t> point);

  /// Calls fn(i) for each row that equals the point, until it returns true.
  template <class Fn>
  void find(std::span<const std::uint32_t> point, const Fn& fn) {
    prepare();
    for (std::uint32_t place = place_of(point.data());; place = (place + 1) & (places_ - 1)) {
      const std::uint16_t entry = table_[place].load(std::memory_order_acquire);
      if (entry == 0) return;
      const std::uint32_t i = entry - 1;
      if (i < visible() && std::equal(point.begin(), point.end(), row(i)) && fn(i)) return;
    }
  }

  std::uint64_t dram_bytes() const { return sizeof *this + (ready_ ? places_ * 2 : 0); }

  /// The segment behind it; set once.
  std::atomic<Segment*> next{nullptr};

 private:
  void prepare();
  void enter(std::uint32_t i);
  std::uint32_t place_of(const std::uint32_t* values) const;

  pool::PoolCore& pool_;
  const pm::Offset offset_;
  const std::uint64_t first_;
  const std::uint32_t dimensions_;
  const std::uint32_t capacity_;
  const std::uint32_t places_;  // of the hash table: a power of two, at least twice the capacity
  SegmentLayout* layout_;
  std::uint64_t* dead_;
  std::uint32_t* rows_;
  std::atomic<std::uint32_t> visible_;

  std::mutex preparing_;
  std::atomic<bool> ready_{false};
  std::optional<util::SeededHash> hash_;  // with the table: a seed costs more than all else here
  std::unique_ptr<std::atomic<std::uint16_t>[]> table_;  // row number + 1, or 0; linear probing
};

}  // namespace perdix::detail::index::elf
