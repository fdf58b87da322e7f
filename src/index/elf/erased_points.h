// The points of rows that were erased from the lists of a Version, in DRAM: a count subtracts those
// in its box from the rows that the lists have there.
//
// Lists have no way from a TID to its point, so points are collected by a walk over all rows. Until
// that pays, counts walk over the rows of their boxes (walk_pays()). Each erase makes the collected
// points stale.
//
// Thread-safe; one thread at a time erases. The points that current() returns stay until the
// caller's epoch::Guard ends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "epoch/reclaimer.h"
#include "index/elf/box.h"

namespace perdix::detail::index::elf {

class ErasedPoints {
 public:
  class Points : public epoch::Retirable {
   public:
    explicit Points(unsigned dimensions) : dimensions_(dimensions) {}

    void add(const std::uint32_t* values) {
      values_.insert(values_.end(), values, values + dimensions_);
    }

    std::size_t size() const { return values_.size() / dimensions_; }
    std::size_t bytes() const { return values_.capacity() * sizeof(std::uint32_t); }

    std::uint64_t count(const Box& box) const {
      std::uint64_t count = 0;
      for (std::size_t i = 0; i < values_.size(); i += dimensions_)
        count += box.admits_all(&values_[i], 0) ? 1 : 0;
      return count;
    }

   private:
    friend class ErasedPoints;

    const unsigned dimensions_;
    std::uint64_t erases_ = 0;  // that had ended before the points were collected
    std::vector<std::uint32_t> values_;
  };

  ErasedPoints() = default;
  ErasedPoints(const ErasedPoints&) = delete;
  ErasedPoints& operator=(const ErasedPoints&) = delete;
  ~ErasedPoints() { delete points_.load(std::memory_order_relaxed); }

  /// Erases a row by set(), which sets its bit. The erase is counted before the bit is set: a
  /// thread that sees the bit finds older points stale.
  template <class Set>
  void erase(const Set& set) {
    begun_.fetch_add(1, std::memory_order_seq_cst);
    set();
    ended_.fetch_add(1, std::memory_order_release);
  }

  /// The points of all rows that were erased so far; null if they are stale or were not collected.
  const Points* current() const {
    const Points* const points = points_.load(std::memory_order_acquire);
    if (points == nullptr) return nullptr;
    return points->erases_ == begun_.load(std::memory_order_acquire) ? points : nullptr;
  }

  /// A count is going to walk over `rows` of `all` rows. Returns whether it should collect the
  /// points instead: walks since the last time have then cost a quarter of it.
  bool walk_pays(std::uint64_t rows, std::uint64_t all) {
    // Relaxed: a lost addition costs a walk.
    const std::uint64_t walked = walked_.load(std::memory_order_relaxed) + rows;
    walked_.store(walked, std::memory_order_relaxed);
    return walked >= all / 4;
  }

  /// Collects the points: collect(points) adds that of each row whose bit is set. Returns
  /// current().
  template <class Collect>
  const Points* renew(epoch::Reclaimer& reclaimer, unsigned dimensions, const Collect& collect) {
    auto points = std::make_unique<Points>(dimensions);
    points->erases_ = ended_.load(std::memory_order_acquire);
    collect(*points);
    walked_.store(0, std::memory_order_relaxed);
    Points* const before = points_.exchange(points.release(), std::memory_order_acq_rel);
    if (before != nullptr) reclaimer.retire(before);
    return current();
  }

 private:
  std::atomic<std::uint64_t> begun_{0};
  std::atomic<std::uint64_t> ended_{0};
  std::atomic<std::uint64_t> walked_{0};  // rows, by counts since the points were collected
  std::atomic<Points*> points_{nullptr};
};

}  // namespace perdix::detail::index::elf
