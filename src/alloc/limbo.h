// Freed blocks that readers may still see. Not thread-safe.
#pragma once

#include <cstdint>

#include "alloc/fifo.h"
#include "epoch/reclaimer.h"

namespace perdix::detail::alloc {

/// Entries come out in the order in which they went in, each after a grace period. Tickets are
/// taken for batches: a ticket costs a fence, and a later one than needed is always right.
class Limbo {
 public:
  /// Makes room for `count` more entries. May throw std::bad_alloc.
  void reserve(std::size_t count) {
    entries_.reserve(count);
    batches_.reserve(count);
  }

  void push(std::uint64_t entry, epoch::Reclaimer& reclaimer) {
    entries_.push(entry);
    if (++unsealed_ == kBatch) seal(reclaimer);
  }

  /// Takes the oldest entry out. False if there is none whose grace period has passed.
  bool pop(std::uint64_t& entry, epoch::Reclaimer& reclaimer) {
    if (ready_ == 0 && !advance(reclaimer)) return false;
    --ready_;
    entry = entries_.front();
    entries_.pop();
    return true;
  }

  bool empty() const noexcept { return entries_.empty(); }
  std::size_t size() const noexcept { return entries_.size(); }

  /// Gives the ticket to the blocks that have none yet.
  void seal(epoch::Reclaimer& reclaimer) {
    if (unsealed_ == 0) return;
    batches_.push({reclaimer.ticket(), unsealed_});
    unsealed_ = 0;
  }

 private:
  static constexpr std::size_t kBatch = 16;

  struct Batch {
    epoch::Reclaimer::Ticket ticket;
    std::size_t entries;
  };

  bool advance(epoch::Reclaimer& reclaimer) {
    if (batches_.empty()) {
      seal(reclaimer);
      return false;
    }
    if (!reclaimer.passed(batches_.front().ticket)) return false;
    ready_ = batches_.front().entries;
    batches_.pop();
    return true;
  }

  Fifo<std::uint64_t> entries_;  // the ready ones, then the batches, then the unsealed ones
  Fifo<Batch> batches_;
  std::size_t ready_ = 0;
  std::size_t unsealed_ = 0;
};

}  // namespace perdix::detail::alloc
