// What a crash leaves of a region of PM: everything that was stored where caches survive; else what
// was flushed and fenced, and of each other line its last durable state or its present one: of
// these lines none survives, only one survives, only one is lost, or chance decides for each. If
// flushes or fences were suppressed, everything that is not durable is lost, or only what is due to
// the suppression.
//
// A probe tells it of stores, flushes and fences. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <thread>
#include <vector>

#include "pm/change.h"
#include "testing/linearizability/sparse_bytes.h"
#include "util/random.h"

namespace perdix::testing {

class SurvivingMemory {
 public:
  /// All that the region holds now is durable. Without `needs_flushes` nothing is tracked.
  SurvivingMemory(std::span<std::byte> region, bool needs_flushes);

  void wrote(const void* p, std::size_t n);
  void flushed(const void* p, std::size_t n);
  void fenced();

  /// Like flushed(), but the next fence of any thread that has flushed something makes it durable.
  void flushed_for_all(const void* p, std::size_t n);

  /// A commit: its changes are durable together before they are in the region. made() follows each
  /// change once it is there.
  void committed(std::span<const detail::pm::Change> changes);
  void made(const detail::pm::Change& change);

  /// The calling thread begins an operation, which reads what it is told of.
  void begin_operation();
  void read(const void* p, std::size_t n);

  /// The lines that the calling thread's operation has read and that are not durable as they are.
  std::vector<std::size_t> read_in_doubt() const;

  /// Instead of flushed() or fenced(), where the call is left out.
  void missed_flush(const void* p, std::size_t n);
  void missed_fence();

  /// Whether something would be durable now if nothing had been left out.
  bool misses() const;

  /// What is left if the crash comes now. `lost`: lines that are as they were durable.
  SparseBytes image(detail::util::Random& random, const std::vector<std::size_t>& lost = {}) const;

 private:
  static constexpr std::size_t kLine = 64;

  // A line as it was when it was flushed. A flush that another thread's later one overtook must not
  // bring the old content back, hence the order.
  struct Flush {
    std::size_t line;
    std::uint64_t order;
    std::vector<std::byte> content;
  };

  std::vector<std::byte> content(std::size_t line) const;
  void note(std::vector<Flush>& flushes, const void* p, std::size_t n);
  void persist(const Flush& flush);
  std::vector<std::size_t> dirty() const;

  template <class Act>
  void each_line(const void* p, std::size_t n, const Act& act) const;

  std::span<std::byte> region_;
  bool needs_flushes_;
  mutable std::mutex mutex_;
  SparseBytes durable_;
  std::set<std::size_t> stored_;  // lines that may differ from durable_
  std::map<std::size_t, std::uint64_t> durable_order_;
  std::map<std::thread::id, std::vector<Flush>> flushes_;
  std::map<std::thread::id, std::set<std::size_t>> reads_;  // of operations, by line
  std::vector<Flush> flushes_for_all_;
  std::uint64_t flush_count_ = 0;
  std::vector<detail::pm::Change> to_be_made_;  // of commits
  std::set<std::size_t> missed_;                // lines that would be durable
};

}  // namespace perdix::testing
