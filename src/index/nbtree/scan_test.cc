// Scans by the orders that they keep: after each kind of change, and within a budget.
#include <map>

#include "index/common/test_scans.h"
#include "index/nbtree/test_tree.h"

namespace perdix::detail::index::nbtree {
namespace {

template <class K>
class NbTreeScan : public testing::Test {
 protected:
  using Tree = TestTree<K, std::uint64_t>;

  static K key(std::uint64_t number) { return scan_key<K>(number); }

  /// Shows all, and what is kept then counts.
  static void scan_all(Tree& tree, const std::map<K, std::uint64_t>& model) {
    expect_scan(tree, model, K{}, model.size() + 1);
    for (const auto& [key, value] : model) ASSERT_TRUE(tree.order_kept(key)) << key;
  }
};

using ScanKeys = ::testing::Types<std::uint64_t, std::string>;
TYPED_TEST_SUITE(NbTreeScan, ScanKeys);

TYPED_TEST(NbTreeScan, AnOrderIsCarriedOverByWriters) {
  TestTree<TypeParam, std::uint64_t> tree;
  std::map<TypeParam, std::uint64_t> model;
  const auto key = [&](std::uint64_t number) { return this->key(number); };
  for (std::uint64_t i = 0; i < 20; ++i) tree->put(key(2 * i), model[key(2 * i)] = i);
  EXPECT_FALSE(tree.order_kept(key(0))) << "nothing was scanned";
  this->scan_all(tree, model);
  expect_scan(tree, model, key(8), 3);
  EXPECT_TRUE(tree.order_kept(key(0))) << "a scan changes nothing";

  tree->put(key(7), model[key(7)] = 7);
  EXPECT_TRUE(tree.order_kept(key(0))) << "an insert";
  tree.expect_sound();
  tree->put(key(7), model[key(7)] = 8);
  EXPECT_TRUE(tree.order_kept(key(0))) << "an update moves no key";
  this->scan_all(tree, model);
  tree->erase(key(8));
  model.erase(key(8));
  EXPECT_TRUE(tree.order_kept(key(0))) << "an erase";
  tree.expect_sound();
  this->scan_all(tree, model);
}

// As many changes as an order can follow, and more, of all kinds, between two scans.
TYPED_TEST(NbTreeScan, ChangesBetweenTwoScansComeTogether) {
  TestTree<TypeParam, std::uint64_t> tree;
  std::map<TypeParam, std::uint64_t> model;
  for (std::uint64_t i = 0; i < 20; ++i) tree->put(this->key(8 * i), model[this->key(8 * i)] = i);
  for (unsigned changes = 1; changes < 2 * Places::kMaxFresh; ++changes) {
    this->scan_all(tree, model);
    for (unsigned i = 0; i < changes; ++i) {
      const TypeParam key = this->key((changes * 131 + i * 37) % 160);
      if (model.contains(key)) {
        tree->erase(key);
        model.erase(key);
      } else {
        tree->put(key, model[key] = i);
      }
      if (i % 8 == 7) tree.expect_sound();
    }
  }
  this->scan_all(tree, model);
}

TYPED_TEST(NbTreeScan, AgreesWithTheModelAfterChangesOfAllKinds) {
  TestTree<TypeParam, std::uint64_t> tree;
  std::map<TypeParam, std::uint64_t> model;
  change_and_scan<TypeParam>(tree, model, 900, 24'000, 1);
  tree.expect_sound_pool();
  change_and_scan<TypeParam>(tree, model, 900, 8'000, 2);
  tree.reopen_cold();
  change_and_scan<TypeParam>(tree, model, 900, 8'000, 3);
  tree.expect_sound();
}

// A leaf that was replaced leaves its memory to another one, often with as many pairs in the same
// slots.
TYPED_TEST(NbTreeScan, ALeafDoesNotInheritAnOrder) {
  TestTree<TypeParam, std::uint64_t> tree;
  std::map<TypeParam, std::uint64_t> model;
  for (std::uint64_t round = 0; round < 60; ++round) {
    for (std::uint64_t i = 0; i < 4 * kCapacity; ++i) {
      const TypeParam key = this->key(i * (2 * round + 1) % 256 * 1000 + i);
      tree->put(key, model[key] = i);
      if (i % 8 == 0) expect_scan(tree, model, TypeParam{}, model.size() + 1);
    }
    for (const auto& [key, value] : model) tree->erase(key);
    model.clear();
    expect_scan(tree, model, TypeParam{}, 1);
    tree.core().reclaimer().drain();
  }
}

TYPED_TEST(NbTreeScan, AnOrderDoesNotOutliveTheIndex) {
  TestTree<TypeParam, std::uint64_t> tree;
  std::map<TypeParam, std::uint64_t> model;
  for (std::uint64_t i = 0; i < 500; ++i) tree->put(this->key(i * 7), model[this->key(i * 7)] = i);
  this->scan_all(tree, model);
  tree.reopen_cold();
  for (const auto& [key, value] : model) ASSERT_FALSE(tree.order_kept(key));
  this->scan_all(tree, model);
}

TYPED_TEST(NbTreeScan, OrdersCountAsDramAndStayWithinTheirBudget) {
  constexpr std::uint64_t kKeys = 20'000;
  for (const std::uint64_t budget : {std::uint64_t{0}, std::uint64_t{9'000}, kUnlimited}) {
    TestTree<TypeParam, std::uint64_t> tree;
    NbTreeOptions options;
    options.scan_budget = budget;
    tree.reopen(options);
    std::map<TypeParam, std::uint64_t> model;
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      const TypeParam key = this->key(i * 7919 % 100'003);
      tree->put(key, model[key] = i);
    }
    tree.core().reclaimer().drain();
    const std::uint64_t before = tree.dram_in_use();
    for (int i = 0; i < 2; ++i) expect_scan(tree, model, TypeParam{}, kKeys + 1);
    const std::uint64_t taken = tree.dram_in_use() - before, leaves = tree->stats().leaves;
    std::uint64_t kept = 0;
    for (const auto& [key, value] : model) kept += tree.order_kept(key) ? 1 : 0;
    if (budget == kUnlimited) {
      EXPECT_EQ(kept, kKeys);
      EXPECT_GE(taken, kKeys);
      EXPECT_LE(taken, kKeys + 80 * leaves + 32768) << "the table has pages of 4 KiB";
    } else {
      EXPECT_LE(taken, budget);
      EXPECT_EQ(kept > 0, budget > 0);
      EXPECT_LT(kept, kKeys / 2);
    }
  }
}

}  // namespace
}  // namespace perdix::detail::index::nbtree
