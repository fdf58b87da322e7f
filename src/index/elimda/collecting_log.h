// The collecting logs: new pairs are first written here, in persistent CPU caches (ElimDa paper,
// 3.3). Heads and pairs lie in PM. In DRAM each log has a *line*: its lock, and the fingerprints of
// its pairs.
//
// A writer holds the log's lock while it appends. Its commit is the store of the head's first word,
// which says how many pairs the log has; then the fingerprint makes the pair visible. (The paper
// reserves a slot and sets a tag bit, both by compare-and-swap, without a lock. Then an earlier
// slot may be filled after a later one, so that the first pair of a key, which counts, would
// change.)
//
// A full log is copied to a unit of the backup log. The unit becomes visible as *in flight*: it is
// the paper's shadow log. Then one store of the head's first word empties the log, and appends
// continue while the pairs of the unit are added to the DRAM table (flush.h).
//
// While an index is small it has few logs. Their number doubles with the table (more_logs.h): a new
// *set* of logs takes the pairs of the old one, whose lines are then *retired* and keep what they
// had. A reader that comes late to a retired line sees its keys as they were when it took the set.
//
// Rules for readers, which take no lock:
//   1. `moves` changes whenever pairs leave the log or cease to be in flight. A reader reads it
//      before it searches both, and again afterwards.
//   2. A pair of the log counts if its fingerprint is still there after the pair was read, and
//      `moves` has not changed. An erase kills the youngest pair of a key first, so the key is
//      there until its oldest pair, which counts, is killed.
//   3. A reader takes the set once for each search of a log, and after the search of the bucket has
//      begun.
// Rule for writers: with the lock of a line that is not retired, its set is that of the index.
//
// Thread-safe under these rules.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "alloc/session.h"
#include "epoch/reclaimer.h"
#include "index/elimda/shape.h"
#include "pm/access.h"
#include "pool/pool_core.h"
#include "util/huge_vector.h"
#include "util/spin_lock.h"

namespace perdix::detail::index::elimda {

/// The DRAM side of a log. Behind it lies a fingerprint for each slot: 0 if the slot has no pair,
/// or its pair was killed.
struct LogLine {
  util::SpinLock lock;        ///< held for appends, updates, erases, and while the log is copied
  util::SpinLock flushing;    ///< held while a copy moves to the DRAM table
  std::uint16_t count = 0;    ///< pairs of the log; guarded by `lock`
  std::uint16_t flushed = 0;  ///< slots of the copy dealt with so far; guarded by `flushing`
  bool retired = false;       ///< the index has a larger set; guarded by `lock`
  std::atomic<std::uint32_t> moves{0};      ///< rule 1
  std::atomic<std::uint32_t> appends{0};    ///< appends so far; added to when the pair is visible
  std::atomic<std::uint32_t> in_flight{0};  ///< 1 + the unit in flight; 0: none

  using Print = std::uint16_t;
  Print* prints() { return reinterpret_cast<Print*>(this + 1); }
  Print print(unsigned i) const {
    const auto* prints = reinterpret_cast<const Print*>(this + 1);
    return std::atomic_ref(const_cast<Print&>(prints[i])).load(std::memory_order_acquire);
  }
  void set_print(unsigned i, Print print) {
    std::atomic_ref(prints()[i]).store(print, std::memory_order_release);
  }
  static Print print_of(Signature signature) { return signature == 0 ? 1 : signature; }
};
static_assert(sizeof(LogLine) == 20);

class LogSet;

/// One of the logs of a set.
class CollectingLog {
 public:
  CollectingLog(const LogSet& set, unsigned number) : set_(&set), number_(number) {}

  LogLine& line() const;
  std::uint64_t& word() const;
  Pair* pairs() const;
  std::uint64_t& dead_word(unsigned i) const { return (&word())[1 + i / 64]; }
  static std::uint64_t dead_bit(unsigned i) { return std::uint64_t{1} << i % 64; }
  bool dead(unsigned i) const { return (pm::load(dead_word(i)) & dead_bit(i)) != 0; }

  /// What units of the backup log call it.
  std::uint16_t name() const;

  /// The first of the hashes that choose it, and how many bits of them do.
  KeyHash first_hash() const;
  unsigned depth() const;

  /// Says that a unit is going to have its pairs, until reset(); flushed. The caller holds its
  /// lock.
  void begin_copy() const;

  /// Empties the log, durably. Its pairs are in the backup log or dead. The caller holds its lock.
  void reset() const;

 private:
  friend class LogSet;

  void clear_dead(unsigned from) const;

  const LogSet* set_;
  unsigned number_;
};

/// The logs that an index has at one time. Does not change, but for what lines, heads and pairs
/// say.
class LogSet : public epoch::Retirable {
 public:
  /// As many logs as the shape has of that depth. Their lines are empty. Throws bad_alloc.
  LogSet(pool::PoolCore& pool, const Shape& shape, unsigned depth);

  /// Says where the logs lie in PM.
  void place(pm::Offset area);

  unsigned depth() const { return depth_; }  ///< bits of a hash that choose its log
  unsigned count() const { return 1u << depth_; }
  CollectingLog log(unsigned number) const { return {*this, number}; }
  CollectingLog log_of(KeyHash hash) const {
    return log(static_cast<unsigned>(hash.prefix(depth_)));
  }

  /// Whether that is the name of one of the logs, and which one it is.
  bool has(std::uint16_t name) const { return name == named(name).name(); }
  CollectingLog named(std::uint16_t name) const { return log(name & (count() - 1)); }

  /// The first hash behind those of the log that has this one; 0: none.
  std::uint64_t next_hash(std::uint64_t hash) const {
    return depth_ == 0 ? 0 : (KeyHash{hash}.prefix(depth_) + 1) << (64 - depth_);
  }

  /// Takes over what the logs have in PM. Throws corrupt.
  void open();

  /// Calls visit(log) for all.
  template <class Visit>
  void for_each(Visit visit) const {
    for (unsigned number = 0; number < count(); ++number) visit(log(number));
  }

  std::size_t bytes() const { return sizeof *this + lines_.capacity(); }

 private:
  friend class CollectingLog;

  pool::PoolCore& pool_;
  const Shape shape_;
  const unsigned depth_;
  const unsigned head_words_;
  const std::size_t line_bytes_;
  std::uint64_t* heads_ = nullptr;
  Pair* pairs_ = nullptr;
  util::HugeVector<std::byte> lines_;
  std::byte* first_line_ = nullptr;  // aligned to a line
};

inline LogLine& CollectingLog::line() const {
  return *reinterpret_cast<LogLine*>(set_->first_line_ + std::size_t{number_} * set_->line_bytes_);
}
inline std::uint64_t& CollectingLog::word() const {
  return set_->heads_[std::size_t{number_} * set_->head_words_];
}
inline Pair* CollectingLog::pairs() const {
  return set_->pairs_ + std::size_t{number_} * set_->shape_.unit_pairs;
}
inline std::uint16_t CollectingLog::name() const {
  return static_cast<std::uint16_t>(set_->shape_.log_name(set_->depth_, number_));
}

inline unsigned CollectingLog::depth() const { return set_->depth_; }
inline KeyHash CollectingLog::first_hash() const {
  return {depth() == 0 ? 0 : std::uint64_t{number_} << (64 - depth())};
}

/// The set of an index, which a larger one may replace.
class CollectingLogs {
 public:
  CollectingLogs(pool::PoolCore& pool, Root& root, const Shape& shape)
      : pool_(pool), root_(root), shape_(shape) {}
  CollectingLogs(const CollectingLogs&) = delete;
  CollectingLogs& operator=(const CollectingLogs&) = delete;
  ~CollectingLogs() { delete set_.load(); }

  /// Null if the index has no collecting logs. The caller is in an epoch::Guard, or alone.
  const LogSet* set() const { return set_.load(std::memory_order_acquire); }

  /// Allocates the area of the logs in PM, as many as suit a table of so many segments. There must
  /// be none. Throws out_of_space.
  void create(unsigned segments);

  /// Reserves the area of 2^depth logs. Throws out_of_space.
  pm::Offset reserve(alloc::Session& session, unsigned depth) const;

  /// Reads the logs in PM, after create() or on opening. Throws corrupt, bad_alloc.
  void open();

  /// Readers and writers that come later use this set.
  void use(const LogSet* set) { set_.store(set, std::memory_order_release); }

  /// Writers and readers no longer use the logs. All are empty, and stay so.
  void stop_using() { delete set_.exchange(nullptr); }

  /// Where the logs are, and their depth; the offset is kNull if there are none.
  Reference area() const;
  /// What the root's word is for that.
  std::uint64_t area_word(Reference area) const;

 private:
  pool::PoolCore& pool_;
  Root& root_;
  const Shape shape_;
  std::atomic<const LogSet*> set_{nullptr};
};

}  // namespace perdix::detail::index::elimda
