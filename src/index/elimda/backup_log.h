// The backup log: units of pairs in PM that are not in the PM table yet (ElimDa paper, 3.2, 3.3).
// Units lie in chunks, in any order. A unit is free again when none of its pairs counts any more.
// The paper keeps that in a bitmap in DRAM only. Here the bits are in PM (E4), so that opening does
// not have to guess which pairs were relocated; in DRAM each unit has the number of its set bits.
//
//   Unit unit = log.take();            // pinned: in use until unpin()
//   log.count(unit, n);                // n pairs of it are going to count
//   ...                                // stores the pairs, then the words with their bits
//   log.unpin(unit);
//   ...                                // later, for each pair: clears its bit, durably, then
//   log.forget(log.ref(unit, slot));   // the last of these frees the unit
//
// After an opening a region's chunks (chunk_lists.h) are read when one of its hashes needs them for
// the first time: a unit, or what a cold segment has there. Until then no unit of the region
// changes.
//
// Rules:
//   1. take() gives a unit to one thread, which fills it, publishes it and unpins it.
//   2. A set bit is cleared by the holder of the lock of its pair's bucket, durably, before that
//      thread calls forget(). So a unit that forget() or unpin() frees has no bit set in PM. (While
//      a segment becomes warm, several threads may try to clear a bit: cold.h. Only the one that
//      has cleared it calls forget().)
//   3. Any thread may read words and pairs. A pair counts if its bit was set before the pair was
//      read and the unit was not freed in between. The reader ensures the latter by a lock, or
//      validates.
//
// Thread-safe.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "epoch/reclaimer.h"
#include "index/elimda/bucket.h"
#include "index/elimda/chunk_lists.h"
#include "index/elimda/collecting_log.h"
#include "index/elimda/shape.h"
#include "pm/access.h"
#include "pm/change.h"
#include "pool/pool_core.h"
#include "util/spin_lock.h"

namespace perdix::detail::index::elimda {

class BackupLog {
 public:
  using Unit = std::uint32_t;

  /// A unit that had pairs when its region was read.
  struct UsedUnit {
    std::uint32_t log, number;
    Unit unit;

    /// By log, then by number. Numbers wrap around; those of one log are close to each other.
    friend bool operator<(const UsedUnit& a, const UsedUnit& b) {
      return a.log != b.log ? a.log < b.log : static_cast<std::int32_t>(a.number - b.number) < 0;
    }
  };

  BackupLog(pool::PoolCore& pool, Root& root, const Shape& shape);
  BackupLog(const BackupLog&) = delete;
  BackupLog& operator=(const BackupLog&) = delete;
  ~BackupLog();

  /// Reads all regions. Throws corrupt, out_of_space, bad_alloc. Cost: reads 8 bytes for each
  /// sixteen pairs.
  void read_all();

  /// Returns which units of a region had pairs when it was read, sorted; reads it if no thread has
  /// done that yet. Null: none, or forget_used() was called. The caller is in an epoch::Guard or
  /// alone. Throws as read_all() does.
  const std::vector<UsedUnit>* used_in(Region region);
  /// Frees what used_in() returns, after a grace period. All regions have been read.
  void forget_used();
  /// The number of regions that have been read.
  unsigned regions_read() const { return regions_read_.load(std::memory_order_relaxed); }

  /// Ends the copies of logs that a crash has interrupted: a log whose pairs are in a unit under
  /// its number was about to be emptied (E5). If the crash came before all words of the unit were
  /// there, the log has the pairs still, and the unit loses them. Throws as read_all() does.
  void finish_copies(const LogSet& logs);
  /// Like finish_copies(), of an index whose logs may not say that they are being copied. After
  /// read_all(). Throws corrupt.
  void finish_all_copies(const LogSet& logs);

  /// Returns a free unit, pinned, for pairs of the hash's region of at most that depth. Adds a
  /// chunk if there is none. Throws corrupt, out_of_space, bad_alloc: nothing has happened then.
  Unit take(KeyHash hash, unsigned max_depth);

  /// Makes regions of a greater depth, up to `max_depth`, if those of a hash have no free unit and
  /// many others. Returns whether it did. Throws corrupt, out_of_space, bad_alloc.
  bool deepen(KeyHash hash, unsigned max_depth);

  /// A number that no earlier use of a free unit had.
  std::uint32_t next_number(Unit unit) const;

  const ChunkLists& lists() const { return lists_; }

  /// Counts pairs of a pinned unit whose bits the caller is about to set.
  void count(Unit unit, unsigned pairs) {
    uses(unit).fetch_add(static_cast<std::uint16_t>(pairs), std::memory_order_relaxed);
  }

  /// The caller has cleared the bit of one pair, durably. Frees the unit if nothing else uses it.
  void forget(BackupRef ref) { drop(ref / shape_.unit_pairs); }

  /// Clears the bits of pairs, durably, and forgets them. The pairs are in the PM table and durable
  /// there. A crash before this returns leaves both copies (E7). They stay equal until then, since
  /// the caller holds the bucket's lock, or no other thread can reach the bucket yet.
  void clear(std::span<const DPair> pairs);

  /// Frees the chunks of which no unit is in use. Returns whether there were any. Throws corrupt,
  /// bad_alloc.
  bool free_unused_chunks();

  /// The unit's taker is done with it.
  void unpin(Unit unit) { drop(unit); }

  // --- What lies in PM ---
  Pair& pair(BackupRef ref) const {
    return pairs(ref / shape_.unit_pairs)[ref % shape_.unit_pairs];
  }
  Pair* pairs(Unit unit) const {
    const Chunk& chunk = chunk_of(unit);
    return chunk.pairs + std::size_t{unit % chunk_units_} * shape_.unit_pairs;
  }
  std::uint64_t& word(BackupRef ref) const {
    return words(ref / shape_.unit_pairs)[ref % shape_.unit_pairs / UnitWord::kPairs];
  }
  std::uint64_t* words(Unit unit) const {
    return chunk_of(unit).words + std::size_t{unit % chunk_units_} * shape_.unit_words();
  }
  std::uint64_t bit(BackupRef ref) const {
    return std::uint64_t{1} << ref % shape_.unit_pairs % UnitWord::kPairs;
  }
  /// Returns a word of the unit that has a bit set; there must be one. The unit's other words may
  /// be left from an earlier use.
  UnitWord word_that_counts(Unit unit) const;
  bool counts(BackupRef ref) const { return (pm::load(word(ref)) & bit(ref)) != 0; }
  /// The change by which a pair ceases to count.
  pm::Change killing(BackupRef ref) const { return {&word(ref), bit(ref), 0}; }
  /// Calls visit(ref) for the pairs of a unit that count.
  template <class Visit>
  void for_each_pair(Unit unit, Visit visit) const {
    for (unsigned i = 0; i < shape_.unit_pairs; ++i) {
      if (counts(ref(unit, i))) visit(ref(unit, i));
    }
  }
  BackupRef ref(Unit unit, unsigned slot) const { return unit * shape_.unit_pairs + slot; }

  /// Units are numbered from 0 to below this, those of chunks that were freed included.
  unsigned units() const { return chunk_count_.load(std::memory_order_acquire) * chunk_units_; }
  /// Whether the chunk of a unit was freed.
  bool gone(Unit unit) const { return chunk_of(unit).gone.load(std::memory_order_relaxed); }
  unsigned chunks() const {  ///< that are not gone
    return chunk_count_.load(std::memory_order_acquire) - gone_count_.load();
  }
  /// The chunk before one, in PM. Throws corrupt.
  pm::Offset next_chunk(pm::Offset chunk) const;

  /// Bytes of DRAM.
  std::size_t bytes() const;

  /// Units that are in use; exact without concurrent writers.
  unsigned used_units() const;
  /// Pairs of a unit that are counted; exact without concurrent writers.
  unsigned counted(Unit unit) const { return uses(unit).load(std::memory_order_relaxed); }

 private:
  using Uses = std::atomic<std::uint16_t>;

  struct Chunk {
    std::uint64_t* words = nullptr;
    Pair* pairs = nullptr;
    std::unique_ptr<Uses[]> uses;   // set bits, and one for the pin
    std::atomic<bool> gone{false};  // freed; late readers may still look into it
    Region region = 0;
  };

  struct UsedUnits : epoch::Retirable {
    std::vector<UsedUnit> units;
  };

  struct RegionUnits {
    std::atomic<bool> read{false};
    unsigned chunks = 0;  // of its list; guarded by growing_
    std::atomic<unsigned> free_count{0};
    util::SpinLock free_lock;
    std::vector<Unit> free;  // has room for all units of the region
    std::atomic<UsedUnits*> used{nullptr};
  };
  static constexpr unsigned kMaxChunks = 4;  // of a region, before there are regions in it
  static constexpr unsigned kBlock = 1024;
  using Block = std::array<Chunk, kBlock>;

  Chunk& chunk_of(Unit unit) const {
    const unsigned chunk = unit / chunk_units_;
    return (*blocks_[chunk / kBlock].load(std::memory_order_acquire))[chunk % kBlock];
  }
  Uses& uses(Unit unit) const { return chunk_of(unit).uses[unit % chunk_units_]; }
  void drop(Unit unit);
  void clear_some(std::span<const DPair> pairs);
  unsigned words_with(Unit unit, unsigned log, std::uint32_t number) const;
  void empty(Unit unit);
  RegionUnits* units_of(Region region) const;
  RegionUnits& make_units_of(Region region);
  void finish_copy(Unit unit, const CollectingLog& log);
  void require_read(Region region);
  void require_read(KeyHash hash, unsigned max_depth);
  bool has_free(KeyHash hash, unsigned max_depth) const;
  bool add_regions(KeyHash hash, unsigned max_depth);
  void read(Region region);
  bool pop(KeyHash hash, unsigned max_depth, Unit& unit);
  void give_back(Unit unit);
  void add_chunk(KeyHash hash, unsigned max_depth);
  unsigned make_room(Region region);
  void append(pm::Offset offset, unsigned chunk, Region region);
  bool withdraw_units(unsigned chunk);
  void unlink(Chunk& chunk);
  void load_uses(unsigned chunk, UsedUnits& used);

  pool::PoolCore& pool_;
  Root& root_;
  const Shape shape_;
  const unsigned chunk_units_;
  const ChunkLists lists_;

  std::mutex growing_;  // for the lists of chunks in PM
  std::atomic<unsigned> chunk_count_{0};
  std::atomic<unsigned> gone_count_{0};  // of them
  std::array<std::atomic<Block*>, 1024> blocks_{};

  // By depth, each once there are regions of that depth.
  std::array<std::atomic<RegionUnits*>, ChunkLists::kMaxDepth + 1> regions_{};
  std::atomic<unsigned> regions_read_{0};
};

}  // namespace perdix::detail::index::elimda
