// Bits in PM that say which rows are gone. An erase sets one: that is its commit.
//
// A reader may see a bit before it is durable. It must not report a row as gone that a crash would
// bring back. So erases that are not durable yet are counted, and while there are any, a reader
// persists each bit that it finds set.
//
// Thread-safe; one thread sets bits at a time.
#pragma once

#include <atomic>
#include <cstdint>

#include "pm/access.h"
#include "pm/persist.h"

namespace perdix::detail::index::elf {

class DeadRows {
 public:
  explicit DeadRows(const pm::Persister& pm) : pm_(pm) {}

  static constexpr std::uint64_t words_for(std::uint64_t rows) { return (rows + 63) / 64; }

  bool is_dead(const std::uint64_t* bits, std::uint64_t row) const {
    const std::uint64_t& word = bits[row / 64];
    if ((pm::load(word) >> row % 64 & 1) == 0) return false;
    // The count comes before the bit: a thread that sees this bit sees the count, or the bit is
    // durable.
    if (unpersisted_.load(std::memory_order_acquire) != 0)
      pm_.persist(&word, sizeof word);  // as said above
    return true;
  }

  void set(std::uint64_t* bits, std::uint64_t row) {
    std::uint64_t& word = bits[row / 64];
    unpersisted_.fetch_add(1, std::memory_order_seq_cst);
    pm_.commit(word, pm::load(word) | std::uint64_t{1} << row % 64);  // the erase's commit
    unpersisted_.fetch_sub(1, std::memory_order_release);
  }

 private:
  const pm::Persister& pm_;
  std::atomic<std::uint32_t> unpersisted_{0};
};

}  // namespace perdix::detail::index::elf
