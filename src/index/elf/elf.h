// Elf, the engine: a table of points whose lists lie linearised in PM (Broneske et al., ICDE 2017;
// Jibril et al., Section IV), with the rows that were inserted and erased since on top.
//
//   layout.h, node.h   what lies in PM; codes of nodes
//   lists.h            nodes of one table by position, checked
//   walk.h             traversal of the lists in a box; counter.h: the count of its rows
//   find.h             the rows of one point; search.h: of one list
//   builder.h          makes lists from rows; row_sorter.h, rows.h
//   replacement.h      the table that is being built
//   segment.h          inserted rows; dead_rows.h: erased ones
//   erased_points.h    what counts subtract
//   version.h          what a query reads; current_version.h: the newest, and its cache
//   stream.h           a query whose visitor takes its time
//   owned.h            who owns which blocks; freeing them
//   caches/            lists in DRAM: cache.h has the parts
//   elf.cc             queries; insert, erase
//   build.cc           build and compact
//   recovery.cc        what happens on open: creation; and on drop
//   check.cc           verification of the invariants of layout.h; statistics
//
// Concurrency: a query reads one Version in an epoch::Guard and takes no lock. Writers hold
// `writers_`. A build or compact has `building_`, for which no call waits, and holds `writers_`
// only when it begins and when it puts its table in place. Then it takes the lock of current_.
//
// Durability: docs/durability/elf.md has the cases.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <perdix/elf.h>

#include "epoch/guard.h"
#include "index/elf/box.h"
#include "index/elf/current_version.h"
#include "index/elf/dead_rows.h"
#include "index/elf/delta_limit.h"
#include "index/elf/erased_meanwhile.h"
#include "index/elf/layout.h"
#include "index/elf/shape.h"
#include "index/elf/version.h"
#include "pool/index_handle.h"
#include "pool/open_index.h"

namespace perdix::detail::index::elf {

inline constexpr std::string_view kEngineName = "elf";

class Replacement;

class Table final : public pool::OpenIndex {
 public:
  using Columns = std::span<const std::span<const std::uint32_t>>;
  using Point = std::span<const std::uint32_t>;
  using Progress = std::function<bool(double)>;

  /// Opens the table behind the handle, or creates it. Without a number of dimensions it takes what
  /// there is, which is nothing if a crash has ended the creation: then only the calls of
  /// OpenIndex may be used.
  explicit Table(pool::IndexHandle handle, unsigned dimensions = 0, const Shape& shape = {});
  ~Table() override;

  /// Frees all blocks of a table that is being dropped and clears its root; restartable.
  static void destroy(pool::PoolCore& pool, std::uint64_t& root);

  unsigned dimensions() const { return dimensions_; }

  // As Elf has them. Arguments were not checked.
  bool build(Columns columns, const Progress& progress);
  bool compact(const Progress& progress);
  Tid insert(Point point);
  bool erase(Tid tid);

  std::optional<Tid> exact(Point point) const;

  /// Whether the lists have a row of this number, which was not erased. For numbers below those of
  /// rows that were inserted since the last build or compact. Cost: a bit.
  bool has_listed(Tid tid) const;

  void collect(const Box& box, std::vector<Tid>& tids) const;
  std::uint64_t count(const Box& box) const;
  void show(const Box& box, const TidVisitor& visit) const;
  std::uint64_t size() const;

  void cache(const CachePolicy& policy) { current_.cache(policy); }
  void wait_for_cache() const { current_.wait_for_cache(); }
  std::vector<ElfStep> explain(const Box& box) const;

  /// A box without bounds.
  Box box() const { return Box(dimensions_); }

  IndexStats stats() const override;
  ElfStats elf_stats() const;
  CheckReport check() const override;
  void for_each_block(const pool::BlockVisitor& visit) const override;
  bool reclaim_space() noexcept override;

  pool::PoolCore& pool() const { return handle_.pool(); }

 private:
  // recovery.cc
  void create(unsigned dimensions, const Shape& shape);
  void open_segments(Version& version);

  // elf.cc
  const Version& version() const { return current_.get(); }
  Version& version() { return current_.get(); }
  template <class Visit>
  bool each_listed(const Version& version, const Box& box, const Visit& visit) const;
  template <class Visit>
  bool each_inserted(const Version& version, const Box& box, const Visit& visit) const;
  template <class Visit>
  void each_erased(const Version& version, const Box& box, const Visit& visit) const;
  std::uint64_t count_erased(const Version& version, const Box& box, std::uint64_t rows) const;
  const ErasedPoints::Points* collect_erased(const Version& version) const;
  Segment& segment_with_room();
  void add_segment();
  bool erase_listed(Version& version, Tid tid);
  bool erase_inserted(Version& version, Tid tid);
  std::uint64_t count_rows() const;

  // build.cc
  class Compaction;
  template <class Work>
  bool replace(const Work& work);
  void build_lists(Columns columns, const Progress& progress);
  void fold_lists(const Progress& progress);
  Segment& seal();
  void install(Replacement& replacement, std::uint64_t tids, std::uint64_t rows, Segment* segments);

  // check.cc
  ElfStats stats_of(const Version& version) const;

  pool::IndexHandle handle_;  // keeps the pool open
  const std::uint64_t min_delta_;
  Root* root_ = nullptr;  // null: the creation did not end
  unsigned dimensions_ = 0;
  DeadRows dead_rows_;
  CurrentVersion current_;

  std::atomic<bool> building_{false};  // a build or compact runs, or the spare table is freed
  mutable std::mutex writers_;         // guards what follows
  Segment* last_segment_ = nullptr;
  DeltaLimit limit_;
  ErasedMeanwhile erased_meanwhile_;
  mutable std::optional<std::uint64_t> size_;  // a cache: rows are counted when that is asked for

  std::optional<pool::OpenIndexes::Entry> listed_;  // last
};

}  // namespace perdix::detail::index::elf
