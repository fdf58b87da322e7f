// A pool with one Elf in it, and the rows that it should have.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "index/common/test_pool.h"
#include "index/elf/elf.h"
#include "index/elf/test_points.h"

namespace perdix::detail::index::elf {

class TestElf : public TestPool<TestElf> {
 public:
  using TestPool<TestElf>::core;

  explicit TestElf(unsigned dimensions, const Shape& shape = kSmallShape)
      : dimensions_(dimensions), shape_(shape) {
    open();
  }

  Table& operator*() { return *table_; }
  Table* operator->() { return &*table_; }

  void reopen() {
    reopen_pool();
    open();
  }

 private:
  friend class TestPool<TestElf>;

  void open() {
    IndexInfo info{"t", std::string(kEngineName), Kind::u64, Kind::u64};
    info.model = DataModel::points;
    table_.emplace(core().open_index(info), dimensions_, shape_);
  }
  void close() { table_.reset(); }

  const unsigned dimensions_;
  const Shape shape_;
  std::optional<Table> table_;
};

/// Rows by brute force.
class Model {
 public:
  std::map<Tid, TestRow> rows;
  Tid next = 0;

  Tid add(const TestRow& row) {
    rows.emplace(next, row);
    return next++;
  }

  std::vector<Tid> in(const Box& box) const {
    std::vector<Tid> tids;
    for (const auto& [tid, row] : rows) {
      if (box.admits_all(row.data(), 0)) tids.push_back(tid);
    }
    return tids;
  }

  std::optional<Tid> exact(const TestRow& wanted) const {
    for (const auto& [tid, row] : rows) {
      if (row == wanted) return tid;
    }
    return std::nullopt;
  }
};

inline Box random_box(util::Random& random, unsigned dimensions) {
  Box box(dimensions);
  for (unsigned d = 0; d < dimensions; ++d) {
    if (random.one_in(2)) continue;
    box.lower[d] = random_value(random);
    box.upper[d] = random_value(random);
    if (box.lower[d] > box.upper[d]) std::swap(box.lower[d], box.upper[d]);
  }
  return box;
}

/// Intervals with gaps between them.
inline std::vector<ElfInterval> random_set(util::Random& random) {
  std::vector<ElfInterval> set;
  const std::uint64_t end = 1 + random.below(12);
  for (std::uint32_t value = 0; value < end; value += 2)
    set.push_back({value * 3, value * 3 + static_cast<std::uint32_t>(random.below(3))});
  if (random.one_in(3)) set.push_back({~std::uint32_t{0} - 1, ~std::uint32_t{0}});
  return set;
}

/// Columns of rows that are numbered from 0.
inline std::vector<std::vector<std::uint32_t>> columns_of(const Model& model, unsigned dimensions) {
  std::vector<std::vector<std::uint32_t>> columns(dimensions);
  for (const auto& [tid, row] : model.rows) {
    for (unsigned d = 0; d < dimensions; ++d) columns[d].push_back(row[d]);
  }
  return columns;
}

inline bool build(Table& table, const std::vector<std::vector<std::uint32_t>>& columns,
                  const Table::Progress& progress = nullptr) {
  const std::vector<std::span<const std::uint32_t>> spans(columns.begin(), columns.end());
  return table.build(spans, progress);
}

/// Expects the model's answers from all kinds of queries for a box.
inline void expect_answers(const Table& table, const Model& model, const Box& box) {
  const std::vector<Tid> expected = model.in(box);
  std::vector<Tid> found;
  table.collect(box, found);
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, expected);
  EXPECT_EQ(table.count(box), expected.size());
  found.clear();
  auto visit = [&](std::uint32_t tid) {
    found.push_back(tid);
    return true;
  };
  table.show(box, visit);
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, expected);
}

inline void expect_rows(const Table& table, const Model& model, util::Random& random) {
  EXPECT_EQ(table.size(), model.rows.size());
  expect_answers(table, model, table.box());
  for (int i = 0; i < 20; ++i) expect_answers(table, model, random_box(random, table.dimensions()));
  for (int i = 0; i < 10; ++i) {
    const std::vector<ElfInterval> sets[] = {random_set(random), random_set(random)};
    Box box = random_box(random, table.dimensions());
    for (const auto& set : sets)
      box.restrict(static_cast<unsigned>(random.below(table.dimensions())), set);
    expect_answers(table, model, box);
  }
  for (int i = 0; i < 20; ++i) {
    const TestRow row = random_row(random, table.dimensions());
    EXPECT_EQ(table.exact(row), model.exact(row));
  }
  for (const auto& [tid, row] : model.rows) {
    if (random.below(model.rows.size()) >= 50) continue;
    EXPECT_EQ(table.exact(row), model.exact(row));
  }
}

}  // namespace perdix::detail::index::elf
