// The DRAM table: a directory of segments, whose buckets have a lock and a DRAM side each. It has
// the structure of the table in PM (ElimDa paper, 3.5).
//
// Invariants:
//   1. A segment's bucket is null (*cold*) until it is needed for the first time after opening.
//   2. A segment that was split is obsolete: it is marked so with all its buckets locked, keeps
//      what it had, and stays readable for a grace period. So a reader that comes to one late sees
//      its keys as they were at some moment of the call.
//   3. Entries of the directory change with the structure lock held, and so does the directory.
//
// Readers take no lock and are in an epoch::Guard.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "epoch/reclaimer.h"
#include "index/elimda/bucket.h"
#include "index/elimda/shape.h"
#include "pm/offset.h"
#include "util/spin_lock.h"

namespace perdix::detail::index::elimda {

/// A bucket of a segment and its lock, which is for all changes of the bucket, here and in PM: one
/// word, since all lookups go through it. Works with std::unique_lock. A cold bucket is not locked.
class Slot {
 public:
  /// Null while it is cold.
  Bucket* bucket() const {
    return reinterpret_cast<Bucket*>(word_.load(std::memory_order_acquire) & ~kLocked);
  }

  bool locked() const { return (word_.load(std::memory_order_acquire) & kLocked) != 0; }

  /// By the lock's holder, or before others can reach the slot.
  void set_bucket(Bucket* bucket) {
    const std::uintptr_t lock = word_.load(std::memory_order_relaxed) & kLocked;
    word_.store(reinterpret_cast<std::uintptr_t>(bucket) | lock, std::memory_order_release);
  }

  /// Makes a cold bucket warm. False if another thread has.
  bool warm(Bucket* bucket) {
    std::uintptr_t cold = 0;
    return word_.compare_exchange_strong(cold, reinterpret_cast<std::uintptr_t>(bucket));
  }

  void lock() noexcept {
    util::Backoff backoff;
    while (!try_lock()) backoff.pause();
  }
  bool try_lock() noexcept {
    return (word_.load(std::memory_order_relaxed) & kLocked) == 0 &&
           (word_.fetch_or(kLocked, std::memory_order_acquire) & kLocked) == 0;
  }
  /// Threads that wait only set the bit that is set: so this need not be one atomic change.
  void unlock() noexcept {
    word_.store(word_.load(std::memory_order_relaxed) & ~kLocked, std::memory_order_release);
  }

 private:
  static constexpr std::uintptr_t kLocked = 1;

  std::atomic<std::uintptr_t> word_{0};
};

class Segment {
 public:
  static Segment* make(util::Arena& arena, unsigned buckets, pm::Offset offset, unsigned depth,
                       std::uint64_t prefix);
  /// With its buckets, unless another segment has them.
  void release(util::Arena& arena) noexcept;

  const pm::Offset offset;
  const unsigned depth;
  const std::uint64_t prefix;  ///< the first `depth` bits of its hashes
  std::atomic<bool> obsolete{false};
  bool gave_buckets = false;  ///< to the segment that it was joined into
  util::SpinLock splitting;   ///< held by the thread that splits it; taken with no bucket locked

  Slot& slot(unsigned i) { return reinterpret_cast<Slot*>(this + 1)[i]; }
  const Slot& slot(unsigned i) const { return reinterpret_cast<const Slot*>(this + 1)[i]; }

  /// The first hash of the segment, and how many bits lie behind the prefix.
  std::uint64_t first_hash() const { return depth == 0 ? 0 : prefix << (64 - depth); }
  /// The first hash behind the segment; 0: none.
  std::uint64_t next_hash() const { return depth == 0 ? 0 : (prefix + 1) << (64 - depth); }

 private:
  Segment(unsigned buckets, pm::Offset at, unsigned local_depth, std::uint64_t bits)
      : offset(at), depth(local_depth), prefix(bits), buckets_(buckets) {}
  static std::size_t bytes_for(unsigned buckets) {
    return sizeof(Segment) + buckets * sizeof(Slot);
  }

  const unsigned buckets_;
};

/// A bucket, as a reader or its lock's holder sees it.
struct Place {
  Segment* segment = nullptr;
  unsigned at = 0;
  Bucket* bucket = nullptr;
};
struct Locked : Place {
  std::unique_lock<Slot> lock;
};

class DramTable {
 public:
  DramTable(util::Arena& arena, epoch::Reclaimer& reclaimer)
      : arena_(arena), reclaimer_(reclaimer) {}
  DramTable(const DramTable&) = delete;
  DramTable& operator=(const DramTable&) = delete;
  ~DramTable();

  /// Takes over the directory; before all else.
  void start(unsigned depth) { directory_.store(new Directory(depth)); }

  unsigned depth() const { return directory_.load(std::memory_order_acquire)->depth; }

  Segment& segment_of(KeyHash hash) const {
    const Directory& directory = *directory_.load(std::memory_order_acquire);
    return *directory.entries[hash.prefix(directory.depth)].load(std::memory_order_acquire);
  }

  /// Calls visit(segment) for all, in the order of their prefixes. The caller holds a guard, or the
  /// structure lock; of a segment that is split during the call it sees the old one or both parts.
  template <class Visit>
  void for_each_segment(Visit visit) const {
    std::uint64_t hash = 0;
    do {
      Segment& segment = segment_of({hash});
      hash = segment.next_hash();
      visit(segment);
    } while (hash != 0);
  }

  /// Guards the directories here and in PM. Taken with buckets locked, never the other way round.
  std::mutex& structure() { return structure_; }

  // With the structure lock held.
  void double_directory();
  void link(Segment& segment);  ///< as what all hashes of its prefix lead to

  /// Makes `made` the DRAM side of a locked bucket. Readers may keep the one before until their
  /// Guards end.
  void replace(const Locked& locked, Bucket& made) noexcept;

  /// Releases it after a grace period.
  void retire(Segment& segment) noexcept;

  /// The number of segments, which those that add or remove one keep.
  unsigned segments() const { return segments_.load(std::memory_order_relaxed); }
  void count_segments(int more) { segments_.fetch_add(static_cast<unsigned>(more)); }

  std::size_t directory_bytes() const { return sizeof(void*) << depth(); }

 private:
  struct Directory : epoch::Retirable {
    explicit Directory(unsigned bits)
        : depth(bits), entries(std::make_unique<std::atomic<Segment*>[]>(std::size_t{1} << bits)) {}

    const unsigned depth;
    const std::unique_ptr<std::atomic<Segment*>[]> entries;
  };

  util::Arena& arena_;
  epoch::Reclaimer& reclaimer_;
  std::mutex structure_;
  std::atomic<Directory*> directory_{nullptr};
  std::atomic<unsigned> segments_{0};
};

}  // namespace perdix::detail::index::elimda
