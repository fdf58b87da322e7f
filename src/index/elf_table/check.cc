// Verification of the invariants of layout.h; statistics.
#include <algorithm>

#include <fmt/format.h>

#include <perdix/error.h>

#include "index/common/problems.h"
#include "index/elf_table/blocks.h"
#include "index/elf_table/elf_table.h"
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

/// The blocks of a generation have their sizes.
void check_sizes(pool::PoolCore& pool, const Root& root, const Schema& schema, Problems& problems) {
  const alloc::Calloc& allocator = pool.allocator();
  const auto expect = [&](pm::Offset block, std::uint64_t bytes, std::string_view what) {
    if (bytes == 0) {
      problems.expect(block == pm::kNull, "there is a block {:#x} for no {}", block, what);
    } else {
      problems.expect(allocator.validate_block(block, bytes),
                      "the block {:#x} for {} is not allocated, or too small", block, what);
    }
  };
  const pm::Offset block = pm::load(root.generations[current_of(root)]);
  GenerationLayout& generation = checked_generation(pool, block, schema.size());
  expect(pool.offset(&root), sizeof root + root.schema_bytes, "a root");
  const std::byte* const end =
      reinterpret_cast<const std::byte*>(columns_of(generation) + schema.size());
  expect(block, static_cast<std::uint64_t>(end - reinterpret_cast<const std::byte*>(&generation)),
         "a generation");
  if (numbers_of(generation) != pm::kNull)
    expect(numbers_of(generation), rows_of(generation) * sizeof(std::uint32_t), "numbers of rows");
  for (std::size_t i = 0; i < schema.size(); ++i) {
    const ColumnLayout& column = columns_of(generation)[i];
    const std::uint64_t words = pm::load(column.words);
    expect(pm::load(column.codes), rows_of(generation) * sizeof(std::uint32_t), "codes");
    expect(pm::load(column.keys), words * sizeof(std::uint64_t), "a dictionary");
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

/// The blocks of one of the two generations, which is open, but not those of its tree.
void show_generation(const pool::PoolCore& pool, const Root& root, unsigned number,
                     const Version& version, const pool::BlockVisitor& visit) {
  for_each_own_block(pool, root, number, visit);
  version.elf().for_each_block(visit);
}

}  // namespace

CheckReport Table::check() const {
  CheckReport report;
  if (root_ == nullptr) return report;
  Problems problems(report);
  try {
    const Pin version(*this);
    check_sizes(pool(), *root_, schema_, problems);
    add(report, version->elf().check(), "its Elf");
    add(report, version->inserted().check(), "its inserted rows");
    for (unsigned i = 0; i < schema_.size(); ++i)
      check_dictionary(version->dictionary(i), schema_[i], problems);
    check_numbers(*version, problems);
    if (report.ok()) RowCheck(*version, problems).run();
    check_inserted(*version, schema_, problems);
    report.pairs = size();
    for_each_block([&](pm::Offset) { ++report.blocks; });
  } catch (const Error& error) {
    if (error.code() != Errc::corrupt) throw;
    problems.expect(false, "{}", error.what());
  }
  return report;
}

void Table::for_each_block(const pool::BlockVisitor& visit) const {
  if (root_ == nullptr) return;
  visit(pool().offset(root_));
  const Pin current(*this);
  const Pin replaced = Pin::replaced(*this);
  show_generation(pool(), *root_, current.number(), *current, visit);
  current->inserted().for_each_block(visit);
  // A build may have ended between the two pins.
  if (!replaced || replaced.number() == current.number()) return;
  show_generation(pool(), *root_, replaced.number(), *replaced, visit);
  if (&replaced->inserted() != &current->inserted()) replaced->inserted().for_each_block(visit);
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
