// Random operations against a map, with reopening at random points.
#include <cstring>
#include <iterator>
#include <map>
#include <memory>

#include <gtest/gtest.h>

#include "alloc/calloc.h"
#include "alloc/test_space.h"
#include "util/random.h"

namespace perdix::detail::alloc {
namespace {

class CallocModel : public ::testing::TestWithParam<pm::Domain> {
 protected:
  struct Block {
    std::uint64_t bytes;
    std::uint64_t mark;
  };

  CallocModel() : space_(512 * kMiB, GetParam()) {
    Calloc::format(space_);
    calloc_ = std::make_unique<Calloc>(space_);
  }

  void step() {
    const std::uint64_t kind = random_.below(100);
    if (kind < 55) {
      add();
    } else if (kind < 98 && !model_.empty()) {
      remove();
    } else if (kind == 98) {
      calloc_->reclaim();
    } else if (random_.one_in(20)) {
      calloc_.reset();
      calloc_ = std::make_unique<Calloc>(space_);
    }
  }

  std::uint64_t random_bytes() {
    // Most are small, all magnitudes occur.
    const std::uint64_t magnitude = random_.one_in(50) ? random_.below(25) : random_.below(12);
    return random_.below(std::uint64_t{2} << magnitude) + 8;
  }

  void add() {
    const std::uint64_t bytes = random_bytes();
    const Offset block = allocate(*calloc_, bytes);
    ASSERT_EQ(calloc_->block_size(block), Calloc::size_for(bytes));
    const auto next = model_.lower_bound(block);
    ASSERT_TRUE(next == model_.end() || block + bytes <= next->first);
    ASSERT_TRUE(next == model_.begin() ||
                std::prev(next)->first + std::prev(next)->second.bytes <= block);
    const std::uint64_t mark = random_();
    space_.at<std::uint64_t>(block) = mark;
    space_.at<std::byte>(block + bytes - 1) = static_cast<std::byte>(mark);
    model_[block] = {bytes, mark};
  }

  void remove() {
    auto it = model_.lower_bound(random_.below(space_.size()));
    if (it == model_.end()) it = model_.begin();
    const auto [block, content] = *it;
    if (content.bytes >= 16) {
      ASSERT_EQ(space_.at<std::uint64_t>(block), content.mark);
      ASSERT_EQ(space_.at<std::byte>(block + content.bytes - 1),
                static_cast<std::byte>(content.mark));
    }
    deallocate(*calloc_, block);
    model_.erase(it);
  }

  void compare() {
    auto expected = model_.begin();
    calloc_->for_each_allocated([&](Offset block, std::uint64_t size) {
      ASSERT_NE(expected, model_.end());
      ASSERT_EQ(block, expected->first);
      ASSERT_EQ(size, Calloc::size_for(expected->second.bytes));
      ++expected;
    });
    ASSERT_EQ(expected, model_.end());
    CheckReport report;
    calloc_->check(report);
    ASSERT_TRUE(report.ok()) << ::testing::PrintToString(report.problems);
    ASSERT_EQ(report.blocks, model_.size());
  }

  TestSpace space_;
  std::unique_ptr<Calloc> calloc_;
  util::Random random_{20240607};
  std::map<Offset, Block> model_;
};

TEST_P(CallocModel, RandomOperations) {
  for (int i = 0; i < 20'000 && !HasFatalFailure(); ++i) {
    SCOPED_TRACE(i);
    step();
    if (i % 1000 == 0) compare();
  }
  compare();
  while (!model_.empty() && !HasFatalFailure()) remove();
  compare();
  calloc_->reclaim();
  EXPECT_EQ(calloc_->bytes_allocated(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Domains, CallocModel,
                         ::testing::Values(pm::Domain::cpu_cache, pm::Domain::memory_controller,
                                           pm::Domain::page_cache),
                         [](const auto& domain) { return std::string(to_string(domain.param)); });

}  // namespace
}  // namespace perdix::detail::alloc
