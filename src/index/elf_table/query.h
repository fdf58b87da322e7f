// A query over one Version: its conditions as boxes of the Elf, and as tests of single rows where
// boxes are not enough.
//
// The conditions on a column admit intervals of its codes. As long as there are few boxes, each
// interval gets a separate box. A column with many intervals (a long `in`) is bounded by the first
// and the last of them, and the rows in between are filtered by their codes. Boxes do not overlap,
// so no row is shown twice. Inserted rows are in no box: they are all read, and tested by their
// keys.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "index/elf/box.h"
#include "index/elf_table/condition.h"
#include "index/elf_table/record.h"
#include "index/elf_table/version.h"
#include "pool/checked.h"

namespace perdix::detail::index::elf_table {

class Query {
 public:
  using Tid = Elf::Tid;

  /// All arguments outlive the Query. The caller keeps the Version pinned (Table::Pin).
  Query(const Version& version, const Schema& schema, std::span<const Condition> conditions);

  /// Calls listed(tid) for the rows of the Elf that fulfil all conditions, then inserted(tid, keys)
  /// for the inserted rows that do, until one of these calls returns false. Throws corrupt.
  template <class Listed, class Inserted>
  void run(const Listed& listed, const Inserted& inserted) const {
    for (const elf::Box& box : boxes_) {
      bool stopped = false;
      const auto visit = [&](Tid tid) {
        stopped = passes(tid) && !listed(tid);
        return !stopped;
      };
      version_.elf().show(box, visit);
      if (stopped) return;
    }
    run_inserted(inserted);
  }

  /// The number of rows that fulfil all conditions. Throws corrupt.
  std::uint64_t count() const;

  /// How run() would find the rows, and what caches would spare it.
  ElfPlan plan() const;

 private:
  /// Which codes a column must have, for rows in boxes that only bound them.
  struct Filter {
    unsigned column;
    std::vector<ElfInterval> codes;
  };

  template <class Inserted>
  void run_inserted(const Inserted& inserted) const {
    std::vector<Key> keys(schema_.size());
    version_.inserted().scan(0, [&](std::uint64_t tid, std::string_view record) {
      if (record.empty()) return true;
      if (!read_record(schema_, record, keys)) throw_damaged(tid);
      return !admits(keys) || inserted(static_cast<Tid>(tid), std::span<const Key>(keys));
    });
  }

  void add_boxes(unsigned dimension, std::span<const ElfInterval> codes);
  bool passes(Tid tid) const;
  bool admits(std::span<const Key> keys) const;
  [[noreturn]] void throw_damaged(std::uint64_t tid) const;

  const Version& version_;
  const Schema& schema_;
  const std::span<const Condition> conditions_;
  std::vector<elf::Box> boxes_;
  std::vector<Filter> filters_;
  ElfPlan plan_;
};

}  // namespace perdix::detail::index::elf_table
