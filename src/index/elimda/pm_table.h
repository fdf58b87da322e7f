// The PM table: segments of P-buckets, and the directory that leads to them (ElimDa paper, 3.2,
// 3.5). The DRAM table knows which parts are in use, and by which bucket.
//
// Thread-safety: the holder of a bucket's lock changes its live bits and fills its free units; the
// holder of the structure lock changes the directory.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>

#include "alloc/session.h"
#include "index/elimda/dram_table.h"
#include "index/elimda/shape.h"
#include "pm/access.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::elimda {

class PmTable {
 public:
  /// Directories do not grow beyond this many bits.
  static constexpr unsigned kMaxDepth = 30;

  PmTable(pool::PoolCore& pool, Root& root, const Shape& shape)
      : pool_(pool), root_(root), shape_(shape) {}

  Reference directory() const { return Reference::unpack(pm::load(root_.directory)); }

  /// Calls visit(number, leader) for all leaders, ascending. Throws corrupt.
  template <class Visit>
  void for_each_leader(Visit visit) const {
    for_each_remaining_leader([&](std::uint64_t number, Reference leader, std::uint64_t&) {
      require_segment(leader);
      visit(number, leader);
    });
  }
  /// Calls visit(number, leader, word) for all leaders, ascending, of an index of which a drop may
  /// have freed segments: a leader's offset is kNull then. Throws corrupt.
  template <class Visit>
  void for_each_remaining_leader(Visit visit) const {
    const Reference at = checked_directory();
    for (std::uint64_t i = 0; i < std::uint64_t{1} << at.depth;) {
      const Reference leader = checked_leader(at, i);
      visit(i, leader, entries(at)[i]);
      i += std::uint64_t{1} << (at.depth - leader.depth);
    }
  }
  /// What a drop makes of a leader when it frees the segment.
  static Reference gone(Reference leader) { return {pm::kNull, leader.depth + kGone}; }
  /// The leader of the segment of a hash. Throws corrupt.
  Reference leader_of(KeyHash hash) const;
  /// How many segments there are, from a few leaders; exact if there are few. Throws corrupt.
  unsigned guess_segments() const;

  // --- One segment ---
  std::uint64_t* live_words(pm::Offset segment, unsigned bucket) const {
    return pool_.at<std::uint64_t>(segment + sizeof(SegmentHead)) +
           std::size_t{bucket} * shape_.live_words();
  }
  std::uint64_t& live_word(pm::Offset segment, unsigned bucket, unsigned slot) const {
    return live_words(segment, bucket)[slot / 64];
  }
  static std::uint64_t live_bit(unsigned slot) { return std::uint64_t{1} << slot % 64; }
  bool live(pm::Offset segment, unsigned bucket, unsigned slot) const {
    return (pm::load(live_word(segment, bucket, slot)) & live_bit(slot)) != 0;
  }
  Pair* pairs(pm::Offset segment, unsigned bucket) const {
    return pool_.at<Pair>(segment + shape_.segment_pairs_at()) +
           std::size_t{bucket} * shape_.p_pairs;
  }

  Pair& pair(const Place& place, unsigned slot) const {
    return pairs(place.segment->offset, place.at)[slot];
  }
  /// Calls visit(slot) for the pairs of a bucket that count, in the order of slots.
  template <class Visit>
  void for_each_live(const Place& place, Visit visit) const {
    const std::uint64_t* live = live_words(place.segment->offset, place.at);
    for (unsigned w = 0; w < shape_.live_words(); ++w) {
      for (std::uint64_t left = pm::load(live[w]); left != 0; left &= left - 1)
        visit(w * 64 + static_cast<unsigned>(std::countr_zero(left)));
    }
  }

  /// Writes the head of a new segment, without live pairs. Not flushed.
  void format_segment(pm::Offset segment, unsigned depth, std::uint64_t prefix) const;
  /// Flushes the head and the live bits of a segment.
  void flush_head(pm::Offset segment) const;

  // --- The directory, with the structure lock held ---
  /// Makes one of twice as many entries. Throws out_of_space.
  void double_directory() const;
  /// Takes a segment that is freed out of the DRAM table: called when the commit is durable, and
  /// before its memory may be used again (alloc/session.h, R4). Throws nothing.
  using Unlink = std::function<void()>;
  /// Makes `left` and `right` the segments of the two halves of what `old` is responsible for, or
  /// `left` alone that of all of it if `right` is null; frees `old`. The session has reserved what
  /// is new, which is flushed.
  void replace(alloc::Session& session, const Segment& old, pm::Offset left, pm::Offset right,
               const Unlink& unlink) const;
  /// Makes `kept` the segment of its own range and of the range of `freed`; `left` is one of them.
  void join(const Segment& left, const Segment& kept, const Segment& freed,
            const Unlink& unlink) const;

 private:
  static constexpr unsigned kGone = 64;  // added to a depth

  void require_segment(Reference leader) const;
  Reference checked_directory() const;
  std::uint64_t& entry_of(std::uint64_t prefix, unsigned depth) const;
  Reference leader_at(Reference directory, std::uint64_t number) const;
  Reference checked_leader(Reference directory, std::uint64_t number) const;
  std::uint64_t find_leader(Reference directory, KeyHash hash) const;
  std::uint64_t* entries(Reference directory) const {
    return pool_.at<std::uint64_t>(directory.offset);
  }

  pool::PoolCore& pool_;
  Root& root_;
  const Shape shape_;
};

}  // namespace perdix::detail::index::elimda
