// Top layers of several levels that grow, shrink and become empty beside readers, while the leaves
// come back after a restart: cold and warm ones, and threads that are interrupted anywhere, also
// within a change of a radix node.
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "index/common/test_pool.h"
#include "index/sptree/test_tree.h"
#include "util/random.h"
#include "util/test_interrupter.h"

namespace perdix::detail::index::sptree {
namespace {

constexpr unsigned kWriters = 2;
constexpr unsigned kReaders = 2;
constexpr unsigned kKeys = 24'000;
constexpr unsigned kPermanentEvery = 64;

/// Of a number, in the order of the numbers: in groups, whose keys share many bytes, of groups.
template <class K>
K key_of(unsigned number);

template <>
std::uint64_t key_of<std::uint64_t>(unsigned number) {
  return std::uint64_t{number / 4096} << 56 | std::uint64_t{number / 512 % 8} << 32 | number % 512;
}

template <>
std::string key_of<std::string>(unsigned number) {
  constexpr std::array<unsigned, 8> kCommon = {8, 31, 32, 33, 64, 100, 300, 700};
  const unsigned shelf = number / 4096, group = number / 512 % 8;
  return fmt::format("{}{}{}{}{}{:03}", std::string(40, 'p'), shelf,
                     std::string(shelf == 3 ? 4096 : 0, 'q'), group,
                     std::string(kCommon[group], 'r'), number % 512);
}

template <class K>
class StressTree : public TestPool<StressTree<K>> {
 public:
  using Tree = sptree::Tree<K, std::uint64_t>;

  StressTree() { open(); }

  void open() {
    SpTreeOptions options;
    options.dram_budget = opened_ % 2 == 0 ? 0 : kUnlimited;
    options.resume_in_background = opened_ % 3 != 0;
    ++opened_;
    tree_.emplace(this->core().open_index("t", kEngineName, kKindOf<K>, Kind::u64), options);
  }
  void close() { tree_.reset(); }
  void reopen() {
    this->reopen_pool();
    open();
  }

  Tree& operator*() { return *tree_; }
  Tree* operator->() { return &*tree_; }

 private:
  unsigned opened_ = 0;
  std::optional<Tree> tree_;
};

template <class K>
class TopLayerStress : public testing::Test {
 protected:
  TopLayerStress() {
    for (unsigned number = 0; number < kKeys; ++number) keys_.push_back(key_of<K>(number));
    for (unsigned number = 0; number < kKeys; number += kPermanentEvery) put(number);
  }

  void put(unsigned number) {
    tree_->put(keys_[number], number);
    there_[number] = true;
  }

  /// Each writer has its own numbers, and takes them upwards, downwards or in any order.
  void write(unsigned writer, bool grow, unsigned seed) {
    util::Random random(seed);
    const bool in_order = seed % 2 == 0;
    for (unsigned i = 0; i < kKeys / kWriters && !this->HasFatalFailure(); ++i) {
      const auto turn = in_order ? i : static_cast<unsigned>(random.below(kKeys / kWriters));
      const unsigned number = (grow ? turn : kKeys / kWriters - 1 - turn) * kWriters + writer;
      ++util::Interrupter::progress;
      if (number % kPermanentEvery == 0) continue;
      ASSERT_EQ(tree_->contains(keys_[number]), there_[number]) << number;
      if (grow) {
        put(number);
      } else {
        ASSERT_EQ(tree_->erase(keys_[number]), there_[number]) << number;
        there_[number] = false;
      }
    }
  }

  void read(util::Random& random) {
    ++util::Interrupter::progress;
    const auto number = static_cast<unsigned>(random.below(kKeys));
    const unsigned permanent = number / kPermanentEvery * kPermanentEvery;
    std::uint64_t value = 0;
    ASSERT_TRUE(tree_->get(keys_[permanent], value)) << permanent;
    ASSERT_EQ(value, permanent);
    if (!random.one_in(8)) return;
    unsigned next = permanent, shown = 0;  // no permanent key is passed over
    tree_->scan(keys_[permanent], [&](View<K>, std::uint64_t found) {
      EXPECT_LE(found, next);
      if (found == next) next += kPermanentEvery;
      return ++shown < 100 && !this->HasFailure();
    });
  }

  void run(bool grow, unsigned seed) {
    std::atomic<unsigned> writing{kWriters};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kWriters; ++i) {
      threads.emplace_back([&, i] {
        write(i, grow, seed);
        --writing;
      });
    }
    for (unsigned i = 0; i < kReaders; ++i) {
      threads.emplace_back([&, i] {
        util::Random random(seed * 100 + i);
        while (writing > 0 && !this->HasFatalFailure()) read(random);
      });
    }
    util::Interrupter interrupter(threads, seed);
    interrupter.run_until(writing);
    for (auto& thread : threads) thread.join();
  }

  std::uint64_t count() const {
    std::uint64_t count = 0;
    for (const bool there : there_) count += there ? 1 : 0;
    return count;
  }

  StressTree<K> tree_;
  std::vector<K> keys_;
  std::array<bool, kKeys> there_{};  // each is its writer's
};

using Kinds = testing::Types<std::uint64_t, std::string>;
TYPED_TEST_SUITE(TopLayerStress, Kinds);

TYPED_TEST(TopLayerStress, GrowsAndShrinksBesideReadersAfterEachOpening) {
  for (unsigned round = 0; round < 8 && !this->HasFailure(); ++round) {
    SCOPED_TRACE(fmt::format("round {}", round));
    this->run(round % 4 < 2, round);
    if (round % 3 == 2) {
      EXPECT_EQ(this->tree_->size(), this->count());
      this->tree_.expect_sound();
    }
    this->tree_.reopen();
  }
  EXPECT_EQ(this->tree_->size(), this->count());
  this->tree_.expect_sound_pool();
}

}  // namespace
}  // namespace perdix::detail::index::sptree
