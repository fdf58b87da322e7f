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
// continue while the pairs of the unit are added to the DRAM table (relocate.h).
//
// Rules for readers, which take no lock:
//   1. `moves` changes whenever pairs leave the log or cease to be in flight. A reader reads it
//      before it searches both, and again afterwards.
//   2. A pair of the log counts if its fingerprint is still there after the pair was read, and
//      `moves` has not changed. An erase kills the youngest pair of a key first, so the key is
//      there until its oldest pair, which counts, is killed.
//
// Thread-safe under these rules.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

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

class CollectingLogs {
 public:
  CollectingLogs(pool::PoolCore& pool, Root& root, const Shape& shape);

  /// Whether the index has collecting logs.
  bool exist() const { return heads_ != nullptr; }

  /// Allocates the area of the logs in PM. There must be none. Throws out_of_space.
  void create();

  /// Reads the logs in PM, after create() or on opening. Throws corrupt, bad_alloc.
  void open();

  LogLine& line(unsigned log) const {
    return *reinterpret_cast<LogLine*>(first_line_ + std::size_t{log} * line_bytes_);
  }
  std::uint64_t& word(unsigned log) const {
    return heads_[std::size_t{log} * shape_.log_head_words()];
  }
  std::uint64_t& dead_word(unsigned log, unsigned i) const { return (&word(log))[1 + i / 64]; }
  static std::uint64_t dead_bit(unsigned i) { return std::uint64_t{1} << i % 64; }
  bool dead(unsigned log, unsigned i) const {
    return (pm::load(dead_word(log, i)) & dead_bit(i)) != 0;
  }
  Pair* pairs(unsigned log) const { return pairs_ + std::size_t{log} * shape_.unit_pairs; }

  /// Writers and readers no longer use the logs. All are empty, and stay so.
  void stop_using() { heads_ = nullptr; }

  /// Empties a log, durably. Its pairs are in the backup log or dead. The caller holds its lock.
  void reset(unsigned log);

  std::size_t bytes() const { return lines_.capacity(); }
  pm::Offset block() const { return pm::load(root_.log_area); }

 private:
  void clear_dead(unsigned log, unsigned from);
  pm::Offset pairs_at(pm::Offset area) const {
    return shape_.round_up(area + shape_.log_heads_bytes());
  }

  pool::PoolCore& pool_;
  Root& root_;
  const Shape shape_;
  const std::size_t line_bytes_;
  std::uint64_t* heads_ = nullptr;
  Pair* pairs_ = nullptr;
  util::HugeVector<std::byte> lines_;
  std::byte* first_line_ = nullptr;  // aligned to a line
};

}  // namespace perdix::detail::index::elimda
