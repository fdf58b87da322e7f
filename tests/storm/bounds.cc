#include "storm/bounds.h"

#include <time.h>

#include <algorithm>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include <perdix/papers/fastfair.h>

#include "index/test_options.h"
#include "storm/verify.h"
#include "support/values.h"

namespace perdix::test::storm {
namespace {

constexpr std::size_t kBigValue = 256 << 10;

/// Bytes of the keys and values that are there.
std::uint64_t live_bytes(const OpenIndex& index) {
  std::uint64_t bytes = 0;
  for (std::uint32_t number = 0; number < index.plan.count; ++number) {
    const State state = index.model.cells[number].load().decided;
    if (!state.present) continue;
    bytes += index.plan.values.size({number, state.version});
    bytes += index.plan.keys.kind == Kind::u64 ? 8 : index.key(number).bytes().size();
  }
  return bytes;
}

/// What an index that has shrunk keeps, by its keys. NbTree: all that its arena has had, for leaves
/// and the layers above. SpTree: its write buffers, which stay in place since chains of the log
/// refer to them (BufferPool); a budget bounds them. Of 400,000 keys that came at random and went
/// NbTree has kept 16 bytes each, SpTree 17 without a limit and less than one with a budget of 0,
/// FAST&FAIR none. Tips keeps the buckets of its cache, of 16 bytes, a power of two of them for a
/// quarter of the pairs that it had when it was opened (TipsOptions::cache_share).
std::uint64_t kept_of_the_most(const OpenIndex& index, const IndexOptions& options) {
  const std::string_view engine = index.plan.type->engine;
  if (engine.starts_with("tips:")) return std::uint64_t{index.plan.count} * 8;
  const bool buffers = engine == "sptree" && detail::index::dram_budget_of(options) == kUnlimited;
  return engine == "nbtree" || buffers ? std::uint64_t{index.plan.count} * 16 : 0;
}

/// What the DRAM of an index may be.
std::uint64_t dram_bound(const OpenIndex& index, const IndexStats& stats,
                         const IndexOptions& options) {
  const std::string_view engine = index.plan.type->engine;
  const bool buffered =
      engine == "sptree" || engine == "cceh" || engine == "fastfair" || engine == "skiplist";
  const std::uint64_t budget =
      !buffered ? 0
      : detail::index::dram_budget_of(options) == kUnlimited
          ? stats.leaves * (engine == "cceh" ? 10'000 : 1300)
          : detail::index::dram_budget_of(options) + detail::index::dram_budget_of(options) / 4;
  return 8 * kMiB + kept_of_the_most(index, options) + stats.leaves * 1300 + live_bytes(index) / 2 +
         budget;
}

/// Bytes of memory that is mapped from no file.
std::uint64_t anonymous_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t kib = 0;
    if (word == "RssAnon:" && status >> kib) return kib * kKiB;
  }
  return 0;
}

double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

/// Whether an operation of the storm costs little besides that of the library.
bool is_light(const IndexPlan& index) {
  const bool small = index.values.kind == Kind::u64 || index.values.sizes == Sizes::small;
  const bool long_keys = needs_bytes(index.keys.shape) || index.keys.shape == Shape::edges;
  return small && !long_keys;
}

}  // namespace

void check_bounds(OpenIndex& index, const IndexOptions& options, Seat& seat) {
  const Call marked(seat, "stats");
  const IndexStats stats = index.index.stats();
  const std::uint64_t live = live_bytes(index);
  // Leaves that are half full, blocks of size classes, what awaits readers, and a log that is
  // about to be cleaned.
  // A bucket of ElimDa has 4 KiB, a segment of CCEH 16 KiB; both are given back when the pool is
  // full.
  const std::string_view engine = index.plan.type->engine;
  const std::uint64_t bytes_per_leaf = engine == "elimda" ? 4352 : engine == "cceh" ? 17408 : 1024;
  const std::uint64_t pm_bound = 24 * kMiB + 4 * live + stats.leaves * bytes_per_leaf;
  require(stats.pm_bytes <= pm_bound,
          fmt::format("{}: pm_bytes is {} with {} bytes of keys and values in {} leaves",
                      title(index), stats.pm_bytes, live, stats.leaves));
  require(stats.dram_bytes <= dram_bound(index, stats, options),
          fmt::format("{}: dram_bytes is {} with {} leaves and a budget of {}", title(index),
                      stats.dram_bytes, stats.leaves, detail::index::dram_budget_of(options)));
}

void check_memory(const OpenIndexes& indexes) {
  // Stacks, values on their way, and what malloc() keeps of them in its arenas.
  constexpr std::uint64_t kStormBytes = 512 * kMiB;
  std::uint64_t of_indexes = 0;
  for (const auto& index : indexes) of_indexes += index->index.stats().dram_bytes;
  const std::uint64_t taken = anonymous_memory();
  require(taken <= kStormBytes + 2 * of_indexes,
          fmt::format("the process has {} bytes of memory, and its indexes say they take {}", taken,
                      of_indexes));
}

void check_file(const Pool& pool, const Episode& episode, unsigned number) {
  const PoolInfo info = pool.info();
  const PoolPlan& plan = episode.pools[number];
  require(info.size <= plan.max_size,
          fmt::format("the file has {} bytes, above the max_size of {} that its pool was created "
                      "with",
                      info.size, plan.max_size));
  require(info.allocated <= info.size, "more is allocated than the file has");
  // Leaves that are half full, size classes, logs of several times the leaves; and other indexes.
  std::uint64_t bound = 192 * kMiB;
  for (const IndexPlan& index : episode.indexes) {
    if (index.pool != number) continue;
    for (std::uint32_t i = 0; i < index.count + kHotKeys; ++i) {
      const bool inline_key = index.keys.kind == Kind::u64;
      bound +=
          10 * (32 + index.values.size({i, 1}) + (inline_key ? 0 : index.keys(i).bytes().size()));
    }
  }
  require(info.size <= bound,
          fmt::format("the file has grown to {} bytes, for keys and values that need less than {}",
                      info.size, bound));
}

void use_space(Pool& pool, const Episode& episode, unsigned number, const char* whose,
               std::uint64_t parts, Seat& seat) {
  std::uint64_t stored = 0;
  {
    FastFair<std::uint64_t, std::string> other(pool, "other-of-big-values");
    for (;; ++stored) {
      const Call marked(seat, "put of a big value");
      const Outcome outcome =
          attempt("put", [&] { other.put(stored, test::bytes_of(stored, kBigValue)); });
      if (!outcome.threw) continue;
      require(outcome.code == Errc::out_of_space, "put() of a big value threw " + outcome.text);
      break;
    }
    const std::uint64_t max = episode.pools[number].max_size;
    // Headers of the pool, and what each of its indexes keeps: pages, and segments of its log.
    constexpr std::uint64_t kKept = 5 * kMiB;
    require(stored * kBigValue >= max - max / parts - kKept,
            fmt::format("of {} bytes of a pool only {} can be had as big values from the space {} "
                        "({})",
                        max, stored * kBigValue, whose, engines_of(episode, number)));
    for (std::uint64_t i = 0; i < stored; ++i) {
      const Call marked(seat, "erase of a big value");
      require(other.erase(i), "a big value is lost");
    }
  }
  const Call marked(seat, "drop");
  const Outcome outcome = attempt("drop", [&] { pool.drop("other-of-big-values"); });
  require(!outcome.threw, "drop() of an index of big values threw " + outcome.text);
}

Pace::Pace(const Episode& episode, const Step& step, const Counters& counters)
    : step_(step),
      counters_(counters),
      // Others do much that is no operation, or nothing for long.
      applies_(step.fault == Fault::none && !step.visitors && step.bounds &&
               (step.disturbance == Disturbance::none || step.disturbance == Disturbance::burn)),
      operations_(counters.operations),
      seconds_(processor_seconds()) {
  for (const IndexPlan& index : episode.indexes) applies_ = applies_ && is_light(index);
  for (const PoolPlan& pool : episode.pools)
    applies_ = applies_ && pool.domain != Domain::page_cache;
}

// With the sources sound and assertions on a second does some 200,000; a lock that was handed over
// in order between spinning threads left some hundred.
void Pace::check() const {
  constexpr double kMinOperations = 1000;  // in a second
  const double seconds = processor_seconds() - seconds_;
  // The last operations of each thread are not on the board yet.
  const auto done = static_cast<double>(counters_.operations - operations_ + 256 * step_.threads);
  require(!applies_ || done >= kMinOperations * (seconds - 3),
          fmt::format("in {:.1f} s of processor time {} threads did only {:.0f} operations",
                      seconds, step_.threads, done));
}

}  // namespace perdix::test::storm
