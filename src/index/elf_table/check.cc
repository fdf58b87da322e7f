// Verification of the invariants of layout.h; statistics.
#include <algorithm>

#include <fmt/format.h>

#include <perdix/error.h>

#include "index/common/problems.h"
#include "index/elf_table/blocks.h"
#include "index/elf_table/elf_table.h"
#include "index/elf_table/owned.h"
#include "index/elf_table/record.h"
#include "pm/access.h"

namespace perdix::detail::index::elf_table {
namespace {

/// Collects what another check has found.
void add(CheckReport& report, const CheckReport& of_part, std::string_view part) {
  Problems problems(report);
  for (const std::string& problem : of_part.problems)
    problems.expect(false, "{}: {}", part, problem);
}

/// The current generation has a block of codes or words only where it has some.
void check_columns(const pool::PoolCore& pool, const Root& root, const Schema& schema,
                   Problems& problems) {
  GenerationLayout& generation =
      checked_generation(pool, pm::load(root.generations[current_of(root)]), schema.size());
  for (std::size_t i = 0; i < schema.size(); ++i) {
    const ColumnLayout& column = columns_of(generation)[i];
    const std::uint64_t words = pm::load(column.words);
    problems.expect(rows_of(generation) > 0 || pm::load(column.codes) == pm::kNull,
                    "column '{}' has codes, and there are no rows", schema[i].name);
    problems.expect(words > 0 || pm::load(column.keys) == pm::kNull,
                    "column '{}' has a dictionary without words", schema[i].name);
    problems.expect(words == 0 || has_dictionary(schema[i].type),
                    "column '{}' has a dictionary, and needs none", schema[i].name);
  }
}

/// Words ascend (T3).
void check_dictionary(const Dictionary& dictionary, const ElfColumn& column, Problems& problems) {
  if (!has_dictionary(column.type)) return;
  std::optional<Key> before;
  for (std::uint64_t code = 0; code < dictionary.size(); ++code) {
    const Key key = dictionary.key(static_cast<std::uint32_t>(code));
    const bool ascends = !before || before->number < key.number || before->bytes < key.bytes;
    problems.expect(ascends, "words {} and {} of column '{}' are in the wrong order", code - 1,
                    code, column.name);
    before = key;
  }
}

/// TIDs of slots ascend (T5).
void check_numbers(const Version& version, Problems& problems) {
  std::uint64_t least = 0;
  for (Slot slot = 0; slot < version.rows(); ++slot) {
    const std::uint64_t tid = version.tid_of(slot);
    problems.expect(least <= tid && tid < version.tids(),
                    "slot {} has the row number {}, which is not from {} to {}", slot, tid, least,
                    version.tids());
    least = tid + 1;
  }
}

/// The Elf has the rows that the columns have (T2, T4). All rows of one point are checked when the
/// first of them comes, so that equal rows cost no more than others.
class RowCheck {
 public:
  RowCheck(const Version& version, Problems& problems)
      : version_(version), problems_(problems), alive_(version.rows()), seen_(version.rows()) {}

  void run() {
    const auto note = [&](Slot slot) {
      problems_.expect(slot < alive_.size(), "the Elf has a row {}, and rows end at {}", slot,
                       alive_.size());
      if (slot < alive_.size()) alive_[slot] = true;
      return true;
    };
    version_.elf().show(version_.elf().box(), note);
    for (Slot slot = 0; slot < alive_.size(); ++slot) {
      if (!alive_[slot]) continue;
      check_codes(slot);
      if (!seen_[slot]) look_for(version_.point(slot));
      problems_.expect(seen_[slot], "the Elf has row {} with other values than the columns", slot);
    }
  }

 private:
  void check_codes(Slot slot) {
    const std::vector<std::uint32_t> point = version_.point(slot);
    for (unsigned dimension = 0; dimension < point.size(); ++dimension) {
      problems_.expect(point[dimension] < version_.dictionary(version_.column(dimension)).size(),
                       "row {} has a code in dimension {} that is in no dictionary", slot,
                       dimension);
    }
  }

  void look_for(const std::vector<std::uint32_t>& point) {
    elf::Box box = version_.elf().box();
    std::copy(point.begin(), point.end(), box.lower.begin());
    std::copy(point.begin(), point.end(), box.upper.begin());
    const auto note = [&](Slot slot) {
      if (slot < seen_.size() && version_.point(slot) == point) seen_[slot] = true;
      return true;
    };
    version_.elf().show(box, note);
  }

  const Version& version_;
  Problems& problems_;
  std::vector<bool> alive_;
  std::vector<bool> seen_;
};

/// Inserted rows are rows of the schema (T6).
void check_inserted(const Version& version, const Schema& schema, Problems& problems) {
  std::vector<Key> keys(schema.size());
  std::uint64_t next = version.tids();
  version.inserted().scan(next, [&](std::uint64_t tid, std::string_view record) {
    problems.expect(tid == next, "there is an inserted row {} where {} should be", tid, next);
    problems.expect(record.empty() || read_record(schema, record, keys),
                    "the inserted row {} is damaged", tid);
    next = tid + 1;
    return true;
  });
}

}  // namespace

CheckReport Table::check() const {
  CheckReport report;
  if (root_ == nullptr) return report;
  Problems problems(report);
  try {
    const Pin version(*this);
    AuditedBlocks audited(pool().allocator(), report, "T8");
    as_problem(report, [&] { walk(audited); });
    check_columns(pool(), *root_, schema_, problems);
    add(report, version->elf().check(), "its Elf");
    add(report, version->inserted().check(), "its inserted rows");
    for (unsigned i = 0; i < schema_.size(); ++i)
      check_dictionary(version->dictionary(i), schema_[i], problems);
    check_numbers(*version, problems);
    if (report.ok()) RowCheck(*version, problems).run();
    check_inserted(*version, schema_, problems);
    report.pairs = size();
  } catch (const Error& error) {
    if (error.code() != Errc::corrupt) throw;
    problems.expect(false, "{}", error.what());
  }
  return report;
}

/// Of the generations that are open: the opening has freed what else there was.
void Table::walk(Owned& owned) const {
  if (root_ == nullptr) return;
  const Pin current(*this);
  const Pin replaced = Pin::replaced(*this);
  const auto tell = [&](pm::Offset block) {
    owned.release({}, OwnedBlocks(block, 1, "a block of inserted rows"));
  };
  // A build may have ended between the two pins.
  if (replaced && replaced.number() != current.number()) {
    if (&replaced->inserted() != &current->inserted()) replaced->inserted().for_each_block(tell);
    walk_generation(pool(), *root_, replaced.number(), owned);
  }
  current->inserted().for_each_block(tell);
  walk_generation(pool(), *root_, current.number(), owned);
  walk_root(*root_, handle_.root(), owned);
}

void Table::for_each_block(const pool::BlockVisitor& visit) const {
  ShownBlocks shown(visit);
  walk(shown);
}

ElfTableStats Table::table_stats() const {
  ElfTableStats stats;
  if (root_ == nullptr) return stats;
  const alloc::Calloc& allocator = pool().allocator();
  stats.rows = size();
  const Pin version(*this);
  stats.elf = version->elf().elf_stats();
  stats.delta_rows = stats.rows - std::min(stats.rows, stats.elf.rows);
  for_each_block([&](pm::Offset block) { stats.pm_bytes += allocator.block_size(block); });
  for (unsigned i = 0; i < schema_.size(); ++i) {
    ElfColumnStats& column = stats.columns.emplace_back();
    column.column = schema_[i];
    column.dimension = version->dimension(i);
    column.words = has_dictionary(schema_[i].type) ? version->dictionary(i).size() : 0;
    column.dictionary_bytes = version->dictionary(i).bytes();
  }
  return stats;
}

IndexStats Table::stats() const {
  const ElfTableStats all = table_stats();
  IndexStats stats;
  stats.pairs = all.rows;
  stats.pm_bytes = all.pm_bytes;
  stats.dram_bytes = all.elf.dram_bytes;
  return stats;
}

}  // namespace perdix::detail::index::elf_table
