// The collecting logs: new pairs are first written here, in persistent CPU caches (ElimDa paper,
// 3.3). Heads and pairs lie in PM. In DRAM each log has a *line*: its lock, and the fingerprints of
// its pairs.
//
// A writer holds the log's lock while it appends. (The paper reserves a slot and sets a tag bit,
// both by compare-and-swap. Then a slot may come before another and be filled after it, and the
// first value of a key would change.) Its commit is the store of the head's first word, which says
// how many pairs the log has; then the fingerprint makes the pair visible.
//
// A full log is copied to a unit of the backup log, which becomes visible as *in flight*, and is
// emptied by one store of its head's first word: that unit is the paper's shadow log, and appends
// continue while its pairs are added to the DRAM table.
//
// Rules for readers, which take no lock:
//   1. `moves` has changed if pairs that were there may have gone on to another place.
//   2. A pair that was read counts if its fingerprint is still there afterwards and `moves` has not
//      changed. Of a key's pairs the youngest is killed first.
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

/// The DRAM side of a log, and behind it a fingerprint for each pair: 0 if there is none.
struct LogLine {
  util::SpinLock lock;        ///< for appends, updates and erases in the log, and its copy
  util::SpinLock flushing;    ///< for the way of its copy into the DRAM table
  std::uint16_t count = 0;    ///< pairs; with the lock
  std::uint16_t flushed = 0;  ///< pairs of the copy that are in the DRAM table; with `flushing`
  std::atomic<std::uint32_t> moves{0};
  std::atomic<std::uint32_t> appends{0};
  std::atomic<std::uint32_t> in_flight{0};  ///< 1 + the unit that is on its way; 0: none

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

  /// Whether the index has them.
  bool exist() const { return heads_ != nullptr; }

  /// Makes the area, if there is none. Throws out_of_space.
  void create();

  /// Takes what is in PM, after create() or if there are any. Throws corrupt.
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

  /// They exist no longer for writers and readers: all are empty, and stay so.
  void stop_using() { heads_ = nullptr; }

  /// Empties a log, whose pairs are in the backup log or dead. The caller holds its lock.
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
