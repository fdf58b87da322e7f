// Verification of the invariants of layout.h; statistics.
#include <algorithm>

#include <fmt/format.h>

#include <perdix/error.h>

#include "index/common/problems.h"
#include "index/elf/elf.h"
#include "index/elf/owned.h"
#include "index/elf/walk.h"

namespace perdix::detail::index::elf {
namespace {

/// Opens and checks each list.
class CheckedSource {
 public:
  CheckedSource(const Lists& lists, Problems& problems) : source_(lists), problems_(problems) {}

  const FirstEntries& first(const Lists& lists) {
    const FirstEntries& first = lists.first();
    for (std::uint32_t i = 1; i < first.count(); ++i) {
      problems_.expect(first.entry(i - 1).value < first.entry(i).value,
                       "the first list has its values {} and {} in the wrong order", i - 1, i);
    }
    return first;
  }

  List open(Ref ref, unsigned dimension) {
    const List list = source_.open(ref, dimension);
    problems_.expect(list.count > 0, "the list at word {} is empty", list.position);
    for (std::uint32_t i = 1; i < list.count; ++i) {
      problems_.expect(list.values[i - 1] < list.values[i],
                       "the list at word {} has its values {} and {} in the wrong order",
                       list.position, i - 1, i);
    }
    return list;
  }

 private:
  PmSource source_;
  Problems& problems_;
};

/// Verifies the lists of a version (L2 to L5).
class ListCheck {
 public:
  ListCheck(const Version& version, unsigned dimensions, const DeadRows& dead_rows,
            Problems& problems)
      : version_(version), dimensions_(dimensions), dead_rows_(dead_rows), problems_(problems) {}

  void run() {
    seen_.resize(DeadRows::words_for(version_.tids()));
    const Box box(dimensions_);
    CheckedSource source(version_.lists(), problems_);
    auto visit = [this](const Row& row) {
      look_at(row);
      return true;
    };
    Walk(version_.lists(), source, box, visit).run();
    const std::uint64_t expected = pm::load(version_.table().rows);
    problems_.expect(rows_ == expected, "the lists have {} rows, not {}", rows_, expected);
    for (std::uint64_t tid = 0; tid < version_.tids(); ++tid) {
      const bool dead = version_.is_missing(static_cast<Tid>(tid), dead_rows_);
      problems_.expect(dead || seen(tid), "row {} is in no list, and not marked as gone", tid);
      problems_.expect(!dead || !seen(tid) || version_.erased(),
                       "row {} is marked as gone in a table without erased rows", tid);
    }
  }

 private:
  bool seen(std::uint64_t tid) const { return (seen_[tid / 64] >> tid % 64 & 1) != 0; }

  void look_at(const Row& row) {
    ++rows_;
    const auto end = row.values.begin() + dimensions_;
    const auto order = std::lexicographical_compare_three_way(
        before_.values.begin(), before_.values.begin() + dimensions_, row.values.begin(), end);
    problems_.expect(rows_ == 1 || order < 0 || (order == 0 && before_.tid < row.tid),
                     "rows {} and {} are in the wrong order", before_.tid, row.tid);
    before_ = row;
    problems_.expect(row.tid < version_.tids(), "the lists have a row {}, and rows end at {}",
                     row.tid, version_.tids());
    if (row.tid >= version_.tids()) return;
    problems_.expect(!seen(row.tid), "row {} is in the lists twice", row.tid);
    seen_[row.tid / 64] |= std::uint64_t{1} << row.tid % 64;
  }

  const Version& version_;
  const unsigned dimensions_;
  const DeadRows& dead_rows_;
  Problems& problems_;
  std::vector<std::uint64_t> seen_;
  std::uint64_t rows_ = 0;
  Row before_;
};

void check_segments(const Version& version, Problems& problems) {
  for (Segment* s = version.segments(); s != nullptr; s = s->next.load(std::memory_order_acquire)) {
    problems.expect(pm::load(s->layout().count) == s->visible(), "the segment at {:#x} is torn",
                    s->offset());
  }
}

}  // namespace

CheckReport Table::check() const {
  CheckReport report;
  if (root_ == nullptr) return report;
  Problems problems(report);
  try {
    const epoch::Guard guard;
    audit(pool().allocator(), report, "L7",
          [&](Owned& owned) { walk(pool(), handle_.root(), owned); });
    check_segments(version(), problems);
    ListCheck(version(), dimensions_, dead_rows_, problems).run();
    report.pairs = size();
  } catch (const Error& error) {
    if (error.code() != Errc::corrupt) throw;
    problems.expect(false, "{}", error.what());
  }
  return report;
}

void Table::for_each_block(const pool::BlockVisitor& visit) const {
  ShownBlocks shown(visit);
  walk(pool(), handle_.root(), shown);
}

/// Blocks of a version have no size any more, and the words that lead to them are 0, when a build
/// or compact that ends has freed them: then it asks the next one.
ElfStats Table::elf_stats() const {
  if (root_ == nullptr) return {};
  for (;;) {
    const epoch::Guard guard;
    const Version& version = this->version();
    const auto is_current = [&] { return &version == &this->version(); };
    try {
      const ElfStats stats = stats_of(version);
      if (is_current()) return stats;
    } catch (const Error&) {
      if (is_current()) throw;
    }
  }
}

ElfStats Table::stats_of(const Version& version) const {
  const alloc::Calloc& allocator = pool().allocator();
  ElfStats stats;
  stats.rows = size();
  for_each_block([&](pm::Offset block) { stats.pm_bytes += allocator.block_size(block); });
  const auto* slots = reinterpret_cast<const std::uint64_t*>(&version.table() + 1);
  for (std::uint64_t i = 0; i < pm::load(version.table().slots); ++i)
    stats.elf_bytes += allocator.block_size(pm::load(slots[i]));
  stats.elf_bytes += allocator.block_size(pm::load(version.table().first_list));
  stats.policy = current_.policy();
  stats.filling = current_.is_filling();
  stats.dram_bytes = sizeof *this + version.lists().slots().size() * sizeof(Lists::Slot);
  for (Segment* s = version.segments(); s != nullptr; s = s->next.load(std::memory_order_acquire)) {
    stats.dram_bytes += s->dram_bytes();
    for (std::uint32_t i = 0; i < s->visible(); ++i)
      stats.delta_rows += dead_rows_.is_dead(s->dead(), i) ? 0 : 1;
  }
  if (const auto* points = version.erased_points().current()) stats.dram_bytes += points->bytes();
  if (const Cache* cache = version.cache()) cache->add_to(stats);
  return stats;
}

IndexStats Table::stats() const {
  const ElfStats all = elf_stats();
  IndexStats stats;
  stats.pairs = all.rows;
  stats.pm_bytes = all.pm_bytes;
  stats.dram_bytes = all.dram_bytes;
  return stats;
}

}  // namespace perdix::detail::index::elf
