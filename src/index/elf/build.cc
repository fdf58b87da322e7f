// Build and compact: both make the lists of a new table out of place (builder.h, replacement.h),
// and put it in the place of the current one by one store.
#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include <perdix/error.h>

#include "epoch/reclaimer.h"
#include "index/common/retry.h"
#include "index/elf/builder.h"
#include "index/elf/elf.h"
#include "index/elf/owned.h"
#include "index/elf/replacement.h"
#include "index/elf/turn.h"
#include "index/elf/walk.h"

namespace perdix::detail::index::elf {
namespace {

/// A Version that queries may still read, and the segments that only it has.
struct Replaced : epoch::Retirable {
  std::unique_ptr<Version> version;
  Segment* end;

  explicit Replaced(Segment* until) : end(until) {}
  Replaced(const Replaced&) = delete;
  Replaced& operator=(const Replaced&) = delete;
  ~Replaced() {
    if (!version) return;
    Segment* segment = version->segments();
    while (segment != end) {
      const std::unique_ptr<Segment> gone(segment);
      segment = gone->next.load(std::memory_order_acquire);
    }
  }
};

}  // namespace

/// Calls work(), which builds a table and installs it, and then frees the table that does not
/// count: the one before, or what was built in vain. Returns false if the work was cancelled.
template <class Work>
bool Table::replace(const Work& work) {
  return retry_when_full(pool(), [&] {
    const Turn turn(building_);
    if (!turn) {
      throw Error(Errc::in_use, fmt::format("index '{}' is being built or compacted already; call "
                                            "again when that has ended",
                                            handle_.name()));
    }
    free_spare(pool(), *root_);
    try {
      work();
    } catch (const Cancelled&) {
      free_spare(pool(), *root_);
      return false;
    } catch (...) {
      free_spare(pool(), *root_);
      throw;
    }
    free_spare(pool(), *root_);
    return true;
  });
}

bool Table::build(Columns columns, const Progress& progress) {
  return replace([&] { build_lists(columns, progress); });
}

void Table::build_lists(Columns columns, const Progress& progress) {
  const std::size_t rows = columns[0].size();
  Replacement replacement(pool(), *root_, rows);
  util::HugeVector<std::uint32_t> order(rows), scratch(rows);
  std::iota(order.begin(), order.end(), 0U);
  const auto first = [&](std::uint32_t row) { return columns[0][row]; };
  Steps steps(progress, rows * dimensions_);
  RowSorter().sort(order, scratch, first, steps);
  steps.end(rows);
  Builder builder(replacement, dimensions_, root_->slot_shift, steps);
  for (std::size_t begin = 0; begin < rows;) {
    std::size_t end = begin + 1;
    while (end < rows && first(order[end]) == first(order[begin])) ++end;
    builder.add(first(order[begin]), ColumnRows(columns),
                std::span(order).subspan(begin, end - begin),
                std::span(scratch).subspan(begin, end - begin));
    begin = end;
  }
  builder.finish();
  replacement.link_dead(std::vector<std::uint64_t>(DeadRows::words_for(rows)));
  steps.finish();
  const std::lock_guard lock(writers_);
  install(replacement, rows, rows, nullptr);
}

/// The rows of a compact: those of the lists and of the segments before one, that are there.
class Table::Compaction {
 public:
  Compaction(const Table& table, const Version& version, const Segment& end)
      : table_(table), version_(version), tids_(end.first()) {
    dead_.assign(DeadRows::words_for(tids_), ~std::uint64_t{0});
    for (Segment* s = version.segments(); s != &end; s = s->next.load()) take_inserted(*s);
    std::stable_sort(inserted_.begin(), inserted_.end(), [](const Inserted& a, const Inserted& b) {
      return a.values[0] < b.values[0];
    });
  }

  std::uint64_t max_rows() const { return pm::load(version_.table().rows) + inserted_.size(); }
  std::uint64_t tids() const { return tids_; }
  std::uint64_t rows() const { return rows_; }
  const std::vector<std::uint64_t>& dead() const { return dead_; }

  /// Gives all rows to a builder.
  void run(Builder& builder, Steps& steps) {
    const FirstEntries& first = version_.lists().first();
    auto next = inserted_.begin();
    std::uint32_t i = 0;
    while (i < first.count() || next != inserted_.end()) {
      const bool listed =
          i < first.count() && (next == inserted_.end() || first.entry(i).value <= next->values[0]);
      const std::uint32_t value = listed ? first.entry(i).value : next->values[0];
      batch_.begin(1, table_.dimensions_);
      if (listed) take_listed(value, steps);
      if (listed) ++i;
      for (; next != inserted_.end() && next->values[0] == value; ++next)
        take(next->values, next->tid);
      if (batch_.size() > 0) builder.add(value, batch_);
    }
  }

 private:
  struct Inserted {
    const std::uint32_t* values;
    Tid tid;
  };

  void take_inserted(Segment& segment) {
    for (std::uint32_t i = 0; i < segment.visible(); ++i) {
      if (!table_.dead_rows_.is_dead(segment.dead(), i))
        inserted_.push_back({segment.row(i), static_cast<Tid>(segment.first() + i)});
    }
  }

  void take_listed(std::uint32_t value, Steps& steps) {
    Box box(table_.dimensions_);
    box.lower[0] = box.upper[0] = value;
    PmSource source(version_.lists());
    auto visit = [&](const Row& row) {
      if (!version_.is_dead(row.tid, table_.dead_rows_)) take(row.values.data(), row.tid);
      steps.end(1);
      return true;
    };
    Walk(version_.lists(), source, box, visit).run();
  }

  void take(const std::uint32_t* values, Tid tid) {
    if (tid >= tids_) version_.lists().throw_wrong_row(tid);
    std::uint32_t* const to = batch_.add();
    *std::copy_n(values + 1, table_.dimensions_ - 1, to) = tid;
    dead_[tid / 64] &= ~(std::uint64_t{1} << tid % 64);
    ++rows_;
  }

  const Table& table_;
  const Version& version_;
  const std::uint64_t tids_;
  std::uint64_t rows_ = 0;
  std::vector<Inserted> inserted_;
  std::vector<std::uint64_t> dead_;
  Batch batch_;
};

bool Table::compact(const Progress& progress) {
  return replace([&] {
    const ErasedMeanwhile::EndOfNoting noting(erased_meanwhile_, writers_);
    fold_lists(progress);
  });
}

/// No other thread replaces the version during the build, so it stays without a Guard.
void Table::fold_lists(const Progress& progress) {
  const Version& version = this->version();
  Segment& end = seal();
  Compaction compaction(*this, version, end);
  const std::uint64_t max_rows = compaction.max_rows();
  Replacement replacement(pool(), *root_, max_rows);
  Steps steps(progress, max_rows * dimensions_);
  Builder builder(replacement, dimensions_, root_->slot_shift, steps);
  compaction.run(builder, steps);
  builder.finish();
  replacement.link_dead(compaction.dead());
  steps.finish();
  const std::lock_guard lock(writers_);
  // Of the rows erased since seal() some were seen, and some not: all are gone.
  for (const Tid tid : erased_meanwhile_.take()) {
    if (tid < compaction.tids()) replacement.set_dead(tid);
  }
  install(replacement, compaction.tids(), compaction.rows(), &end);
}

/// From now on rows come into a segment of their own, which is returned, and erases are noted.
Segment& Table::seal() {
  const std::lock_guard lock(writers_);
  if (last_segment_ == nullptr || last_segment_->visible() > 0) add_segment();
  erased_meanwhile_.begin();
  return *last_segment_;
}

/// Puts the new table in the place of the current one: the commit of build and compact. `segments`
/// are those of the current table that go on in it. The caller holds writers_.
void Table::install(Replacement& replacement, std::uint64_t tids, std::uint64_t rows,
                    Segment* segments) {
  TableLayout& table = replacement.table();
  const pm::Persister& pm = pool().pm();
  pm.store(table.segments, segments != nullptr ? segments->offset() : pm::kNull);
  pm.store(table.tids, tids);
  pm.store(table.rows, rows);
  pm.flush(&table, sizeof table);  // the commit fences
  auto next =
      std::make_unique<Version>(pool(), *root_, pm::load(root_->tables[replacement.spare()]));
  next->set_segments(segments);
  auto replaced = std::make_unique<Replaced>(segments);
  replaced->version = current_.replace(std::move(next), [&] {
    pm.commit(root_->current, replacement.spare());  // fences first: all of the table is durable
  });
  if (segments == nullptr) last_segment_ = nullptr;
  size_.reset();
  limit_.follow(rows, min_delta_);
  pool().reclaimer().retire(replaced.release());
}

bool Table::reclaim_space() noexcept {
  const Turn turn(building_);
  if (!turn) return false;
  try {
    return free_spare(pool(), *root_);
  } catch (const std::exception&) {  // damaged: it stays where it is
    return false;
  }
}

}  // namespace perdix::detail::index::elf
