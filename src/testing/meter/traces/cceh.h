// The PM accesses of CCEH (Nam et al., FAST 2019): extendible hashing over segments of 16 KiB with
// buckets of a line, linear probing over eight buckets from each of two places, a lock word in the
// segment, and splits into two new segments. One thread, no deletion; the directory is doubled
// without being announced, which is rare.
//
// An allocator's header of 16 bytes precedes a segment, as libpmemobj's does, so that a bucket lies
// across two lines.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "testing/meter/line_map.h"
#include "testing/meter/traces/pm.h"
#include "util/hash.h"

namespace perdix::testing::traces {

class Cceh {
 public:
  Cceh(Pm pm, unsigned depth) : pm_(pm), depth_(depth) {
    for (std::uint64_t i = 0; i < std::uint64_t{1} << depth; ++i)
      directory_.push_back(create(depth));
  }

  void insert(std::uint64_t key) {
    while (!try_insert(key)) split(key);
  }

  bool find(std::uint64_t key) {
    const Id segment = look_up(key);
    for (const std::uint64_t hash : {first_hash(key), second_hash(key)}) {
      for (std::size_t i = 0; i < kProbes; ++i) {
        const std::size_t slot = slot_of(hash, i);
        pm_.read(slot_offset(segment, slot), sizeof key);
        if (segments_[segment].keys[slot] == key) return true;
      }
    }
    return false;
  }

 private:
  using Id = std::uint32_t;
  static constexpr std::size_t kSlots = 1024;
  static constexpr std::size_t kSlotsPerBucket = 4;
  static constexpr std::size_t kProbes = 8 * kSlotsPerBucket;
  static constexpr std::uint64_t kPairBytes = 16;
  static constexpr std::uint64_t kHeaderBytes = 16;  // lock and local depth, after the slots
  static constexpr std::uint64_t kAllocationHeader = 16;
  static constexpr std::uint64_t kStride = kSlots * kPairBytes + kLineBytes;
  static constexpr std::uint64_t kDirectory = std::uint64_t{1} << 38;  // its offset
  static constexpr std::uint64_t kEntryBytes = 16;

  struct Segment {
    unsigned depth = 0;
    std::vector<std::uint64_t> keys = std::vector<std::uint64_t>(kSlots);  // 0: free
  };

  static std::uint64_t first_hash(std::uint64_t key) { return detail::util::hash(key); }
  static std::uint64_t second_hash(std::uint64_t key) { return detail::util::hash(~key); }

  static std::size_t slot_of(std::uint64_t hash, std::size_t probe) {
    return (hash % (kSlots / kSlotsPerBucket) * kSlotsPerBucket + probe) % kSlots;
  }
  static std::uint64_t segment_offset(Id segment) { return segment * kStride + kAllocationHeader; }
  static std::uint64_t slot_offset(Id segment, std::size_t slot) {
    return segment_offset(segment) + slot * kPairBytes;
  }
  static std::uint64_t header_offset(Id segment) { return slot_offset(segment, kSlots); }
  std::uint64_t index_of(std::uint64_t key) const { return first_hash(key) >> (64 - depth_); }

  Id look_up(std::uint64_t key) {
    pm_.read(kDirectory + index_of(key) * kEntryBytes, kEntryBytes);
    return directory_[index_of(key)];
  }

  bool stale(Id segment, std::uint64_t key, std::uint64_t owner) const {
    const unsigned shift = 64 - segments_[segment].depth;
    return key == 0 || first_hash(key) >> shift != first_hash(owner) >> shift;
  }

  bool try_insert(std::uint64_t key) {
    const Id segment = look_up(key);
    pm_.read(header_offset(segment), kHeaderBytes);
    pm_.write(header_offset(segment), sizeof(std::uint64_t));  // lock
    const bool done = probe(segment, key, first_hash(key)) || probe(segment, key, second_hash(key));
    pm_.write(header_offset(segment), sizeof(std::uint64_t));  // unlock
    return done;
  }

  bool probe(Id segment, std::uint64_t key, std::uint64_t hash) {
    for (std::size_t i = 0; i < kProbes; ++i) {
      const std::size_t slot = slot_of(hash, i);
      pm_.read(slot_offset(segment, slot), sizeof key);
      if (!stale(segment, segments_[segment].keys[slot], key)) continue;
      segments_[segment].keys[slot] = key;
      pm_.write_and_persist(slot_offset(segment, slot), kPairBytes);
      return true;
    }
    return false;
  }

  Id create(unsigned depth) {
    segments_.emplace_back().depth = depth;
    return static_cast<Id>(segments_.size() - 1);
  }

  void split(std::uint64_t key) {
    const Id old = directory_[index_of(key)];
    const unsigned depth = segments_[old].depth + 1;
    if (depth > depth_) double_directory();
    const Id halves[] = {create(depth), create(depth)};
    for (const Id half : halves)
      pm_.write(segment_offset(half), kSlots * kPairBytes + kHeaderBytes);
    for (std::size_t slot = 0; slot < kSlots; ++slot) {
      pm_.read(slot_offset(old, slot), kPairBytes);
      const std::uint64_t moved = segments_[old].keys[slot];
      if (!stale(old, moved, key)) move(halves[first_hash(moved) >> (64 - depth) & 1], moved);
    }
    // Before the directory leads to them.
    for (const Id half : halves)
      pm_.persist(segment_offset(half), kSlots * kPairBytes + kHeaderBytes);
    enter(halves, depth, key);
    segments_[old].keys = {};
  }

  void move(Id to, std::uint64_t key) {
    for (const std::uint64_t hash : {first_hash(key), second_hash(key)}) {
      for (std::size_t i = 0; i < kProbes; ++i) {
        const std::size_t slot = slot_of(hash, i);
        if (segments_[to].keys[slot] != 0) continue;
        segments_[to].keys[slot] = key;
        pm_.write(slot_offset(to, slot), kPairBytes);
        return;
      }
    }
  }

  void enter(const Id (&halves)[2], unsigned depth, std::uint64_t key) {
    const unsigned shared = depth_ - depth;  // bits that tell entries of one half apart
    const std::uint64_t first = index_of(key) >> (shared + 1) << (shared + 1);
    const std::uint64_t count = std::uint64_t{2} << shared;
    for (std::uint64_t i = 0; i < count; ++i) directory_[first + i] = halves[i >> shared];
    pm_.write_and_persist(kDirectory + first * kEntryBytes, count * kEntryBytes);
  }

  void double_directory() {
    std::vector<Id> doubled;
    for (const Id segment : directory_) doubled.insert(doubled.end(), 2, segment);
    directory_ = std::move(doubled);
    ++depth_;
  }

  Pm pm_;
  unsigned depth_;
  std::vector<Id> directory_;
  std::vector<Segment> segments_;
};

}  // namespace perdix::testing::traces
