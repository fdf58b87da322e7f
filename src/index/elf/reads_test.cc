// What calls read, which is what they cost. Only in the instrumented build.
#include <gtest/gtest.h>

#include "index/elf/test_elf.h"
#include "index/elf/test_reads.h"

namespace perdix::detail::index::elf {
namespace {

constexpr std::uint32_t kRows = 20000;

/// Rows of few values in the first dimension, and of others in the second.
class Reads : public ::testing::Test {
 protected:
  Reads() {
    for (std::uint32_t i = 0; i < kRows; ++i) model_.add({i % 10, i / 10 % 50, i});
    EXPECT_TRUE(build(*elf_, columns_of(model_, 3)));
  }

  void erase(Tid tid) {
    EXPECT_TRUE(elf_->erase(tid));
    model_.rows.erase(tid);
  }

  std::uint64_t cost_of_count(const Box& box) {
    std::uint64_t rows = 0;
    const std::uint64_t cost = bytes_read([&] { rows = elf_->count(box); });
    EXPECT_EQ(rows, model_.in(box).size());
    return cost;
  }

  Model model_;
  TestElf elf_{3, Shape{}};
};

TEST_F(Reads, AnErasedRowMakesCountsLittleDearer) {
  Box half = elf_->box();
  half.upper[0] = 4;
  const std::uint64_t before = cost_of_count(half);
  for (const Tid tid : {7U, 8000U, 15001U}) erase(tid);
  cost_of_count(half);  // collects the points of erased rows
  EXPECT_LE(cost_of_count(half), before + 64);
  erase(3);
  Box few = half;
  few.lower[1] = few.upper[1] = 3;
  few.upper[2] = 500;
  EXPECT_LE(cost_of_count(few), before) << "a small box is walked";
  cost_of_count(half);
  EXPECT_LE(cost_of_count(half), before + 64);
}

TEST_F(Reads, ACountOfAllRowsReadsNone) {
  EXPECT_LE(cost_of_count(elf_->box()), 64U);
  erase(7);
  cost_of_count(elf_->box());
  EXPECT_LE(cost_of_count(elf_->box()), 64U);
}

TEST_F(Reads, ASetOfValuesIsOneWalk) {
  std::vector<ElfInterval> set;
  for (std::uint32_t i = 0; i < 64; ++i) set.push_back({i * 300, i * 300 + 2});
  Box box = elf_->box();
  box.restrict(2, set);
  EXPECT_EQ(model_.in(box).size(), 64U * 3);
  const std::uint64_t with_set = cost_of_count(box);
  Box hull = elf_->box();
  hull.upper[2] = box.upper[2];
  EXPECT_LE(with_set, 2 * cost_of_count(hull));
  std::vector<Tid> tids;
  EXPECT_LE(bytes_read([&] { elf_->collect(box, tids); }), bytes_read([&] {
              std::vector<Tid> all;
              elf_->collect(hull, all);
            }));
}

TEST_F(Reads, ARowIsThereByABit) {
  EXPECT_LE(bytes_read([&] { EXPECT_TRUE(elf_->has_listed(7)); }), 64U);
  erase(7);
  EXPECT_FALSE(elf_->has_listed(7));
  EXPECT_FALSE(elf_->has_listed(kRows));
}

}  // namespace
}  // namespace perdix::detail::index::elf
