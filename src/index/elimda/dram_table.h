// The DRAM table: a directory of segments, whose buckets have a lock and a DRAM side each. It has
// the structure of the table in PM (ElimDa paper, 3.5).
//
// Invariants:
//   0. After an opening no segment is *known*: its entries are null until a call needs it, and then
//      all of them lead to it. So opening does not read the directory.
//   1. A segment's bucket is null (*cold*) until it is needed for the first time after opening.
//   2. A segment that was split is obsolete: it is marked so with all its buckets locked, keeps
//      what it had, and stays readable for a grace period. So a reader that comes to one late sees
//      its keys as they were at some moment of the call.
//   3. Entries of the directory change with the structure lock held, and so does the directory.
//
// Readers take no lock, but for the structure lock where a segment is not known yet, and are in an
// epoch::Guard.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
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

class PmTable;

class DramTable {
 public:
  DramTable(util::Arena& arena, epoch::Reclaimer& reclaimer, const PmTable& table, unsigned buckets)
      : arena_(arena), reclaimer_(reclaimer), table_(table), buckets_(buckets) {}
  DramTable(const DramTable&) = delete;
  DramTable& operator=(const DramTable&) = delete;
  ~DramTable();

  /// Takes over the directory in PM, without a look at its segments; before all else. Throws
  /// corrupt, bad_alloc.
  void start();

  unsigned depth() const { return directory_.load(std::memory_order_acquire)->depth; }

  /// Throws corrupt, bad_alloc, if the segment was not known.
  Segment& segment_of(KeyHash hash) const {
    Segment* segment = known_segment(hash);
    return segment != nullptr ? *segment : know_segment(hash);
  }

  /// The segment of a hash; null if it is not known.
  Segment* known_segment(KeyHash hash) const {
    const Directory& directory = *directory_.load(std::memory_order_acquire);
    return directory.entries[hash.prefix(directory.depth)].load(std::memory_order_acquire);
  }

  /// Calls visit(segment) for all, in the order of their prefixes. Throws as segment_of() does. The
  /// caller holds a guard, or the structure lock; of a segment that is split during the call it
  /// sees the old one or both parts.
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
  void link(Segment& segment) const;  ///< as what all hashes of its prefix lead to

  /// Makes `made` the DRAM side of a locked bucket. Readers may keep the one before until their
  /// Guards end.
  void replace(const Locked& locked, Bucket& made) noexcept;

  /// Releases it after a grace period.
  void retire(Segment& segment) noexcept;

  /// The number of segments; a good guess until all are known. Those that add or remove one say so.
  unsigned segments() const {
    return std::max(known_.load(std::memory_order_relaxed), guess_.load(std::memory_order_relaxed));
  }
  void count_segments(int more) const { known_.fetch_add(static_cast<unsigned>(more)); }
  /// The number of segments that are known.
  unsigned known_segments() const { return known_.load(std::memory_order_relaxed); }
  /// All segments are known.
  void set_all_known() const { guess_.store(0, std::memory_order_relaxed); }

  std::size_t directory_bytes() const { return sizeof(void*) << depth(); }

 private:
  struct Directory : epoch::Retirable {
    explicit Directory(unsigned bits);

    struct Free {
      void operator()(std::atomic<Segment*>* entries) const noexcept { std::free(entries); }
    };

    const unsigned depth;
    const std::unique_ptr<std::atomic<Segment*>[], Free> entries;
  };

  Segment& know_segment(KeyHash hash) const;

  util::Arena& arena_;
  epoch::Reclaimer& reclaimer_;
  const PmTable& table_;
  const unsigned buckets_;
  mutable std::mutex structure_;
  std::atomic<Directory*> directory_{nullptr};
  mutable std::atomic<unsigned> known_{0};
  mutable std::atomic<unsigned> guess_{0};  // 0 when all are known
};

}  // namespace perdix::detail::index::elimda
