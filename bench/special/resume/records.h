// The records of a run, and which of them a killed process had acknowledged.
//
// The key and the value of record n follow from n, so any process knows what must be in the index.
// Thread t of T loading threads inserts the records t, t + T, t + 2T, …, and counts them in memory
// that outlives its process.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "ycsb/keys.h"

namespace perdix::bench::resumption {

inline constexpr unsigned kMaxThreads = 64;

class Records {
 public:
  explicit Records(std::uint64_t seed) : spread_(KeyOrder::random, seed) {}

  std::uint64_t key(std::uint64_t number) const { return spread_.present(number); }
  std::uint64_t value(std::uint64_t number) const { return number; }

 private:
  KeySpread spread_;
};

/// Lies in memory that processes share. One thread counts in each place.
class Acknowledged {
 public:
  void set_threads(unsigned threads) { threads_ = threads; }
  unsigned threads() const { return threads_; }

  void add(unsigned thread) { counts_[thread].value.fetch_add(1, std::memory_order_release); }

  std::uint64_t total() const {
    std::uint64_t sum = 0;
    for (unsigned t = 0; t < threads_; ++t) sum += count(t);
    return sum;
  }

  bool has(std::uint64_t number) const { return number / threads_ < count(number % threads_); }

  /// No record from this number on is acknowledged.
  std::uint64_t end() const {
    std::uint64_t most = 0;
    for (unsigned t = 0; t < threads_; ++t) most = std::max(most, count(t));
    return most * threads_;
  }

  /// One of the acknowledged records; `i` < total(). (Not simply the i-th: one thread may have
  /// inserted all of them before another began.)
  std::uint64_t record(std::uint64_t i) const {
    unsigned t = 0;
    for (; i >= count(t); ++t) i -= count(t);
    return i * threads_ + t;
  }

 private:
  std::uint64_t count(std::uint64_t thread) const {
    return counts_[thread].value.load(std::memory_order_acquire);
  }

  struct alignas(64) Count {
    std::atomic<std::uint64_t> value;
  };

  unsigned threads_ = 1;
  std::array<Count, kMaxThreads> counts_{};
};

}  // namespace perdix::bench::resumption
