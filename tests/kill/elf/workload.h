// What the killed process does to its Elf: operations that follow from a seed and from those before
// them. So parent and child agree on what the n-th one is, and on the rows after it.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "index/elf/test_points.h"
#include "util/random.h"

namespace perdix::test::kill::elf {

inline constexpr unsigned kDimensions = 3;

using Row = detail::index::elf::TestRow;
using Rows = std::map<std::uint32_t, Row>;  // by TID

struct Operation {
  enum class Kind { insert, erase, build } kind;
  Row row;                // of an insert
  std::uint32_t tid;      // of an insert: the one that it must return
  std::vector<Row> rows;  // of a build
};

class Workload {
 public:
  explicit Workload(std::uint64_t seed) : random_(seed) {}

  /// The rows after all operations that next() has returned.
  const Rows& rows() const { return rows_; }

  Operation next() {
    const std::uint64_t choice = random_.below(200);
    if (choice == 0) return build();
    return choice < 120 || rows_.empty() ? insert() : erase();
  }

 private:
  Row row() { return detail::index::elf::random_row(random_, kDimensions); }

  Operation insert() {
    Operation operation{Operation::Kind::insert, row(), next_tid_++, {}};
    rows_.emplace(operation.tid, operation.row);
    return operation;
  }

  Operation erase() {
    auto it = rows_.lower_bound(static_cast<std::uint32_t>(random_.below(next_tid_)));
    if (it == rows_.end()) it = rows_.begin();
    const Operation operation{Operation::Kind::erase, {}, it->first, {}};
    rows_.erase(it);
    return operation;
  }

  Operation build() {
    Operation operation{Operation::Kind::build, {}, 0, {}};
    rows_.clear();
    next_tid_ = static_cast<std::uint32_t>(1 + random_.below(100));
    for (std::uint32_t tid = 0; tid < next_tid_; ++tid)
      rows_.emplace(tid, operation.rows.emplace_back(row()));
    return operation;
  }

  detail::util::Random random_;
  Rows rows_;
  std::uint32_t next_tid_ = 0;
};

}  // namespace perdix::test::kill::elf
