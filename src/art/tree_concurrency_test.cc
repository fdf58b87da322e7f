// Concurrent readers and writers on few keys, so that they meet, with invariants that must hold at
// every moment. Nodes and items lie on the heap: the sanitizers see a use after the free, and a
// read that isn't ordered.
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "art/test_support.h"
#include "art/tree.h"
#include "epoch/guard.h"
#include "util/random.h"
#include "util/test_interrupter.h"

namespace perdix::detail::art {
namespace {

constexpr unsigned kNumbers = 2048;  // keys are made from the numbers [0, kNumbers), in their order
constexpr unsigned kPermanentEvery = 32;
constexpr unsigned kWriters = 2;
constexpr unsigned kReaders = 2;
constexpr int kOperations = 150'000;

using util::Interrupter;

template <class Stored, class KeyView>
struct alignas(8) Numbered {
  Stored key;
  unsigned number;
  std::atomic<std::uint64_t> erased_at{0};  // on the clock of the test; 0 while in the tree

  struct KeyOf {
    KeyView operator()(const Numbered* entry) const { return entry->key; }
  };
};

struct SparseInts {
  using Item = Numbered<std::uint64_t, std::uint64_t>;
  static std::uint64_t key(unsigned n) {
    return std::uint64_t{n / 16} << 40 | std::uint64_t{n % 16} << 8;
  }
};

struct DenseInts {
  using Item = Numbered<std::uint64_t, std::uint64_t>;
  static std::uint64_t key(unsigned n) { return n; }
};

// Long shared prefixes, and every even key is a prefix of the next.
struct Strings {
  using Item = Numbered<std::string, std::string_view>;
  static std::string key(unsigned n) {
    std::string key;
    for (int shift = 10; shift >= 1; shift -= 3) {
      const auto digit = static_cast<char>('a' + (n >> shift) % 8);
      key.append(digit == 'a' ? 45 : 2, digit);
    }
    if (n % 2 == 1) key.append(n % 3 == 0 ? 50 : 1, '\0');
    return key;
  }
};

bool failed() { return ::testing::Test::HasFailure(); }

template <class Keys>
class Stress {
 public:
  using Item = typename Keys::Item;
  using Body = std::function<void(util::Random&)>;

  explicit Stress(std::uint64_t seed) : seed_(seed) {
    for (unsigned n = 0; n < kNumbers; n += kPermanentEvery) {
      permanent_.push_back(make(n));
      const epoch::Guard guard;
      EXPECT_TRUE(tree_->insert(permanent_.back()->key, permanent_.back().get()));
    }
  }

  ~Stress() {
    EXPECT_EQ(tree_.settled_bytes(), static_cast<std::int64_t>(tree_->bytes()));
    EXPECT_EQ(tree_.leak(), 0);
  }

  /// Runs `write` in kWriters threads, each with its number, and `read` in kReaders threads until
  /// the writers are done.
  void run(const std::function<void(util::Random&, unsigned)>& write, const Body& read) {
    std::atomic<unsigned> writing{kWriters};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kWriters; ++i) {
      threads.emplace_back([&, i] {
        util::Random random(seed_ * 100 + i);
        for (int step = 0; step < kOperations && !failed(); ++step, ++Interrupter::progress)
          write(random, i);
        --writing;
      });
    }
    for (unsigned i = 0; i < kReaders; ++i) {
      threads.emplace_back([&, i] {
        util::Random random(seed_ * 100 + 50 + i);
        for (; writing > 0 && !failed(); ++Interrupter::progress) read(random);
      });
    }
    Interrupter interrupter(threads, seed_);  // until all are joined: signals may be under way
    interrupter.run_until(writing);
    for (auto& thread : threads) thread.join();
    if (failed()) ADD_FAILURE() << "seed " << seed_;
  }

  static std::unique_ptr<Item> make(unsigned number) {
    auto item = std::make_unique<Item>();
    item->key = Keys::key(number);
    item->number = number;
    return item;
  }

  /// After the erase or replacement has returned.
  void dispose(Item* item) {
    item->erased_at = ++clock_;
    tree_.reclaimer().retire(
        item, [](void* object, void*) { delete static_cast<Item*>(object); }, nullptr);
  }

  bool insert(unsigned number) {
    auto item = make(number);
    if (!tree_->insert(item->key, item.get())) return false;
    item.release();
    return true;
  }

  /// Looks for the neighbours of a number: on the right side, none permanent passed over, and none
  /// that was gone before.
  void check_neighbours(unsigned number) {
    const auto key = Keys::key(number);
    const std::uint64_t start = clock_;
    const unsigned permanent = number / kPermanentEvery * kPermanentEvery;
    const Item* floor = tree_->find_floor(key);
    ASSERT_NE(floor, nullptr);
    ASSERT_LE(floor->number, number);
    ASSERT_GE(floor->number, permanent);
    ASSERT_TRUE(alive_at(floor, start));
    const Item* above = tree_->find_above(key);
    if (permanent + kPermanentEvery < kNumbers) {
      ASSERT_NE(above, nullptr);
      ASSERT_LE(above->number, permanent + kPermanentEvery);
    }
    if (above != nullptr) {
      ASSERT_GT(above->number, number);
      ASSERT_TRUE(alive_at(above, start));
    }
    ASSERT_EQ(tree_->find(Keys::key(permanent)), permanent_[permanent / kPermanentEvery].get());
  }

  void check_scan(unsigned from) {
    const std::uint64_t start = clock_;
    unsigned next_permanent = (from + kPermanentEvery - 1) / kPermanentEvery * kPermanentEvery;
    unsigned last = from;
    bool first = true;
    tree_->scan(Keys::key(from), [&](const Item* item) {
      EXPECT_TRUE(first ? item->number >= last : item->number > last);
      EXPECT_LE(item->number, next_permanent);
      EXPECT_TRUE(alive_at(item, start));
      if (item->number == next_permanent) next_permanent += kPermanentEvery;
      first = false;
      last = item->number;
      return next_permanent < from + 6 * kPermanentEvery && !failed();
    });
  }

  void read(util::Random& random) {
    const epoch::Guard guard;
    if (random.one_in(10))
      check_scan(static_cast<unsigned>(random.below(kNumbers)));
    else
      check_neighbours(static_cast<unsigned>(random.below(kNumbers)));
  }

  auto& tree() { return tree_; }

 private:
  static bool alive_at(const Item* item, std::uint64_t time) {
    const std::uint64_t erased = item->erased_at;
    return erased == 0 || erased > time;
  }

  std::uint64_t seed_;
  std::atomic<std::uint64_t> clock_{0};
  std::vector<std::unique_ptr<Item>> permanent_;
  testing::HeapTree<Item> tree_;
};

template <class Keys>
class TreeStress : public ::testing::Test {};

using AllKeys = ::testing::Types<SparseInts, DenseInts, Strings>;
TYPED_TEST_SUITE(TreeStress, AllKeys);

// Each writer has its own numbers, so it knows what its calls must return, and puts a whole range
// in before it takes it out, so that nodes of all sizes come and go.
TYPED_TEST(TreeStress, EachWriterSeesItsOwnChanges) {
  using Item = typename TypeParam::Item;
  Stress<TypeParam> stress(1);
  std::vector<std::vector<Item*>> mine(kWriters, std::vector<Item*>(kNumbers));
  std::vector<int> steps(kWriters);
  auto write = [&](util::Random& random, unsigned writer) {
    const auto number =
        static_cast<unsigned>(random.below(kNumbers / kWriters)) * kWriters + writer;
    if (number % kPermanentEvery == 0) return;
    Item*& item = mine[writer][number];
    const bool grow = steps[writer]++ / (kOperations / 8) % 2 == 0;
    const epoch::Guard guard;
    if (item == nullptr && grow) {
      item = stress.make(number).release();
      ASSERT_TRUE(stress.tree()->insert(item->key, item));
    } else if (item != nullptr && random.one_in(4)) {
      Item* const fresh = stress.make(number).release();
      ASSERT_EQ(stress.tree()->upsert(fresh->key, fresh), item);
      stress.dispose(std::exchange(item, fresh));
    } else if (item != nullptr && !grow) {
      ASSERT_EQ(stress.tree()->erase(item->key), item);
      stress.dispose(std::exchange(item, nullptr));
    }
    ASSERT_EQ(stress.tree()->find(TypeParam::key(number)), item);
  };
  stress.run(write, [&](util::Random& random) { stress.read(random); });
  const epoch::Guard guard;
  for (auto& items : mine) {
    for (Item* item : items) {
      if (item == nullptr) continue;
      EXPECT_EQ(stress.tree()->erase(item->key), item);
      stress.dispose(item);
    }
  }
}

// All writers fight for the same few numbers: of the successful calls for a key, inserts and erases
// take turns.
TYPED_TEST(TreeStress, SuccessesAlternate) {
  using Item = typename TypeParam::Item;
  constexpr unsigned kContested = 2 * kPermanentEvery;
  Stress<TypeParam> stress(2);
  std::vector<std::atomic<int>> present(kContested);
  auto write = [&](util::Random& random, unsigned) {
    const auto number = static_cast<unsigned>(random.below(kContested));
    if (number % kPermanentEvery == 0) return;
    const epoch::Guard guard;
    if (random.one_in(2)) {
      if (stress.insert(number)) ++present[number];
      return;
    }
    Item* const item = stress.tree()->erase(TypeParam::key(number));
    if (item == nullptr) return;
    --present[number];
    stress.dispose(item);
  };
  stress.run(write, [&](util::Random& random) { stress.read(random); });
  const epoch::Guard guard;
  for (unsigned number = 0; number < kContested; ++number) {
    if (number % kPermanentEvery == 0) continue;
    ASSERT_THAT(present[number].load(), ::testing::AnyOf(0, 1)) << number;
    Item* const item = stress.tree()->erase(TypeParam::key(number));
    EXPECT_EQ(item != nullptr, present[number] == 1) << number;
    if (item != nullptr) stress.dispose(item);
  }
}

}  // namespace
}  // namespace perdix::detail::art
