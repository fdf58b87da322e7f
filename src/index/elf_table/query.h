// A query over one Version: its conditions as a box of the Elf. The conditions on a column admit
// intervals of its codes, which are the box's set for the column's dimension. Inserted rows have no
// codes: they are all read, and tested by their keys.
#pragma once

#include <cstdint>
#include <optional>
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

  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;

  /// Calls listed(tid, slot) for the rows of the Elf that fulfil all conditions, then
  /// inserted(tid, keys) for the inserted rows that do, until one of these calls returns false.
  /// Throws corrupt.
  template <class Listed, class Inserted>
  void run(const Listed& listed, const Inserted& inserted) const {
    bool stopped = false;
    const auto visit = [&](Slot slot) {
      stopped = !listed(version_.tid_of(slot), slot);
      return !stopped;
    };
    if (box_) version_.elf().show(*box_, visit);
    if (!stopped) run_inserted(inserted);
  }

  /// The number of rows that fulfil all conditions. Throws corrupt.
  std::uint64_t count() const;

  /// How run() would find the rows, and what caches would spare it.
  ElfPlan plan() const;

 private:
  template <class Inserted>
  void run_inserted(const Inserted& inserted) const {
    std::vector<Key> keys(schema_.size());
    version_.inserted().scan(version_.tids(), [&](std::uint64_t tid, std::string_view record) {
      if (record.empty()) return true;
      if (!read_record(schema_, record, keys)) throw_damaged(tid);
      return !admits(keys) || inserted(static_cast<Tid>(tid), std::span<const Key>(keys));
    });
  }

  bool admits(std::span<const Key> keys) const;
  [[noreturn]] void throw_damaged(std::uint64_t tid) const;

  const Version& version_;
  const Schema& schema_;
  const std::span<const Condition> conditions_;
  std::vector<ElfPlan::Step> steps_;  // have the codes that the box refers to
  std::optional<elf::Box> box_;       // none: no row of the Elf can match
};

}  // namespace perdix::detail::index::elf_table
