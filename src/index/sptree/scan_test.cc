// Scans by the orders that they keep: after each kind of change, within a budget, and of leaves
// that are damaged.
#include <map>

#include <perdix/error.h>

#include "index/common/test_scans.h"
#include "index/sptree/leaf_at.h"
#include "index/sptree/test_scan_tree.h"

namespace perdix::detail::index::sptree {
namespace {

template <class K>
class SpTreeScan : public testing::Test {
 protected:
  static K key(std::uint64_t number) { return scan_key<K>(number); }

  /// Shows all, and what is kept then counts. Leaves on their way to the backup come there before:
  /// each of them is locked for that once more.
  static void scan_all(ScanTree<K>& tree, const std::map<K, std::uint64_t>& model) {
    tree.core().background().drain();
    expect_scan(tree, model, K{}, model.size() + 1);
    for (const auto& [key, value] : model) ASSERT_TRUE(tree->order_kept(key)) << key;
  }
};

using KeyTypes = ::testing::Types<std::uint64_t, std::string>;
TYPED_TEST_SUITE(SpTreeScan, KeyTypes);

TYPED_TEST(SpTreeScan, AnOrderIsCarriedOverByWriters) {
  for (const std::uint64_t buffers : kScanBudgets) {
    ScanTree<TypeParam> tree(buffers);
    std::map<TypeParam, std::uint64_t> model;
    const auto key = [&](std::uint64_t number) { return this->key(number); };
    for (std::uint64_t i = 0; i < 60; ++i) tree->put(key(2 * i), model[key(2 * i)] = i);
    EXPECT_FALSE(tree->order_kept(key(0))) << "nothing was scanned";
    this->scan_all(tree, model);
    expect_scan(tree, model, key(8), 3);
    EXPECT_TRUE(tree->order_kept(key(0))) << "a scan changes nothing";

    tree->put(key(7), model[key(7)] = 7);
    EXPECT_TRUE(tree->order_kept(key(0))) << "an insert";
    tree.expect_sound();
    tree->put(key(7), model[key(7)] = 8);
    EXPECT_TRUE(tree->order_kept(key(0))) << "an update";
    tree->erase(key(8));
    model.erase(key(8));
    EXPECT_TRUE(tree->order_kept(key(0))) << "an erase";
    tree->erase(key(7));  // of the leaf, or of the buffer
    model.erase(key(7));
    EXPECT_FALSE(tree->erase(key(7)));
    EXPECT_FALSE(tree->insert(key(2), 0));
    EXPECT_FALSE(tree->update(key(7), 0));
    EXPECT_TRUE(tree->order_kept(key(0))) << "writes that change nothing";
    tree.expect_sound();
    this->scan_all(tree, model);
  }
}

// As many changes as an order can follow, and more, of all kinds, between two scans.
TYPED_TEST(SpTreeScan, ChangesBetweenTwoScansComeTogether) {
  for (const std::uint64_t buffers : kScanBudgets) {
    ScanTree<TypeParam> tree(buffers);
    std::map<TypeParam, std::uint64_t> model;
    for (std::uint64_t i = 0; i < 60; ++i) tree->put(this->key(8 * i), model[this->key(8 * i)] = i);
    for (unsigned changes = 1; changes < 2 * Places::kMaxFresh; ++changes) {
      this->scan_all(tree, model);
      for (unsigned i = 0; i < changes; ++i) {
        const TypeParam key = this->key((changes * 131 + i * 37) % 480);
        if (model.contains(key)) {
          tree->erase(key);
          model.erase(key);
        } else if (model.size() < kLeafPairs - 10) {
          tree->put(key, model[key] = i);
        }
        if (i % 8 == 7) tree.expect_sound();
      }
    }
    this->scan_all(tree, model);
  }
}

// Erases merge neighbours under the lock under which they have carried the order over.
TYPED_TEST(SpTreeScan, AnEraseThatMergesOutdatesTheOrder) {
  for (const std::uint64_t buffers : kScanBudgets) {
    ScanTree<TypeParam> tree(buffers);
    std::map<TypeParam, std::uint64_t> model;
    const auto put = [&](std::uint64_t i) { tree->put(this->key(i), model[this->key(i)] = i); };
    for (std::uint64_t i = 0; i < 3 * kLeafPairs; ++i) put(i * 37 % (3 * kLeafPairs));
    const std::uint64_t leaves = tree->stats().leaves;
    ASSERT_GT(leaves, 2u);
    for (std::uint64_t i = 0; i < 3 * kLeafPairs - 8; ++i) {
      expect_scan(tree, model, TypeParam{}, model.size() + 1);
      tree->erase(model.begin()->first);
      model.erase(model.begin());
    }
    EXPECT_LT(tree->stats().leaves, leaves);
    tree.expect_sound();
  }
}

// The slot of a pair that was erased is the first that a new pair gets, wherever its key belongs.
TYPED_TEST(SpTreeScan, ASlotMayBeFilledAgainWithAnyKey) {
  ScanTree<TypeParam> tree;
  std::map<TypeParam, std::uint64_t> model;
  for (std::uint64_t i = 0; i < 100; ++i) tree->put(this->key(i), model[this->key(i)] = i);
  for (std::uint64_t i = 0; i < 100; ++i) {
    this->scan_all(tree, model);
    tree->erase(this->key(i));
    model.erase(this->key(i));
    tree->put(this->key(7 * i + 1000), model[this->key(7 * i + 1000)] = i);
    this->scan_all(tree, model);
  }
}

TYPED_TEST(SpTreeScan, AgreesWithTheModelAfterChangesOfAllKinds) {
  for (const std::uint64_t buffers : kScanBudgets) {
    ScanTree<TypeParam> tree(buffers);
    std::map<TypeParam, std::uint64_t> model;
    change_and_scan<TypeParam>(tree, model, 900, 16'000, buffers + 1);
    tree.expect_sound_pool();
    change_and_scan<TypeParam>(tree, model, 900, 4'000, buffers + 2);
  }
}

TYPED_TEST(SpTreeScan, AfterSplitsAndMergesEachNodeHasAnOrderOfItsOwn) {
  for (const std::uint64_t buffers : kScanBudgets) {
    ScanTree<TypeParam> tree(buffers);
    std::map<TypeParam, std::uint64_t> model;
    const auto put = [&](std::uint64_t i) { tree->put(this->key(i), model[this->key(i)] = i); };
    for (std::uint64_t i = 0; i < 3 * kLeafPairs; ++i) {
      put(i * 37 % (3 * kLeafPairs));
      if (i % 16 == 0) this->scan_all(tree, model);
    }
    ASSERT_GT(tree->stats().leaves, 2u);
    this->scan_all(tree, model);
    for (std::uint64_t i = 0; i < 3 * kLeafPairs; ++i) {
      tree->erase(this->key(i * 29 % (3 * kLeafPairs)));
      model.erase(this->key(i * 29 % (3 * kLeafPairs)));
      if (i % 16 == 0) this->scan_all(tree, model);
    }
    ASSERT_LE(tree->stats().leaves, 2u);
    tree.expect_sound();
  }
}

// A node that was merged away leaves its memory to the next one, whose versions begin as its own
// did.
TEST(SpTreeScanNodes, ANodeDoesNotInheritAnOrder) {
  ScanTree<std::uint64_t> tree;
  std::map<std::uint64_t, std::uint64_t> model;
  constexpr std::uint64_t kKeys = kLeafPairs + 20;
  for (std::uint64_t round = 0; round < 40; ++round) {
    // The same changes of the same slots; but the keys come in another order each time.
    const std::uint64_t factor = 2 * round + 1;
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      const std::uint64_t key = i * factor % 256 * 1000 + i;
      tree->put(key, model[key] = i);
    }
    ASSERT_GT(tree->stats().leaves, 1u);
    expect_scan(tree, model, std::uint64_t{0}, model.size() + 1);
    for (const auto& [key, value] : model) tree->erase(key);
    model.clear();
    ASSERT_EQ(tree->stats().leaves, 1u);
    tree.core().reclaimer().drain();
  }
}

TYPED_TEST(SpTreeScan, WhatTheBufferHasIsMergedIntoTheOrder) {
  ScanTree<TypeParam> tree(kUnlimited);
  std::map<TypeParam, std::uint64_t> model;
  for (std::uint64_t i = 0; i < 50; ++i) tree->put(this->key(10 * i), model[this->key(10 * i)] = i);
  this->scan_all(tree, model);
  for (std::uint64_t i = 0; i < 3 * kBufferPairs; ++i) {  // through three drains of the buffer
    const TypeParam key = this->key(i * 17 % 500 + 1000 * (i % 2));
    tree->put(key, model[key] = i);
    this->scan_all(tree, model);
    if (i % 4 != 3) continue;
    tree->erase(model.begin()->first);  // of the leaf, or of the buffer
    model.erase(model.begin());
    this->scan_all(tree, model);
  }
  tree.expect_sound();
}

TYPED_TEST(SpTreeScan, AnOrderDoesNotOutliveTheIndex) {
  for (const std::uint64_t buffers : kScanBudgets) {
    ScanTree<TypeParam> tree(buffers);
    std::map<TypeParam, std::uint64_t> model;
    for (std::uint64_t i = 0; i < 500; ++i) {
      tree->put(this->key(i * 7), model[this->key(i * 7)] = i);
    }
    this->scan_all(tree, model);
    tree.reopen();
    for (const auto& [key, value] : model) ASSERT_FALSE(tree->order_kept(key));
    this->scan_all(tree, model);
  }
}

TYPED_TEST(SpTreeScan, OrdersCountAsDramAndStayWithinTheirBudget) {
  constexpr std::uint64_t kKeys = 20'000;
  for (const std::uint64_t budget : {std::uint64_t{0}, std::uint64_t{9'000}, kUnlimited}) {
    ScanTree<TypeParam> tree(0, budget);
    std::map<TypeParam, std::uint64_t> model;
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      const TypeParam key = this->key(i * 7919 % 100'003);
      tree->put(key, model[key] = i);
    }
    tree.core().background().drain();
    tree.core().reclaimer().drain();
    const std::uint64_t before = tree->stats().dram_bytes;
    for (int i = 0; i < 2; ++i) expect_scan(tree, model, TypeParam{}, kKeys + 1);
    const IndexStats stats = tree->stats();
    const std::uint64_t taken = stats.dram_bytes - before;
    std::uint64_t kept = 0;
    for (const auto& [key, value] : model) kept += tree->order_kept(key) ? 1 : 0;
    if (budget == kUnlimited) {
      EXPECT_EQ(kept, kKeys);
      EXPECT_GE(taken, kKeys);
      EXPECT_LE(taken, kKeys + 32 * stats.leaves + 8192);
    } else {
      EXPECT_LE(taken, budget);
      EXPECT_EQ(kept > 0, budget > 0);
      EXPECT_LT(kept, kKeys / 2);
    }
  }
}

// Two slots with one key, and a key beyond the leaf's range: with an order, and without.
TEST(SpTreeScanDamage, DamagedLeavesAreNoticedWithAnOrderAndWithout) {
  for (const bool with_order : {false, true}) {
    ScanTree<std::uint64_t> tree;
    for (std::uint64_t i = 0; i < 100; ++i) tree->put(10 * i, i);
    const auto scan = [&] { tree->scan(0, [](std::uint64_t, std::uint64_t) { return true; }); };
    if (with_order) scan();
    const auto handle_root = tree->handle().root();
    Leaf& leaf = leaf_at(tree.core(), root_at(tree.core(), handle_root).first);
    Pair* twice = nullptr;
    for (Pair& pair : leaf.pairs) {
      if (pair.key == 500) twice = &pair;
    }
    ASSERT_NE(twice, nullptr);
    ASSERT_EQ(tree->order_kept(500), with_order);
    for (const std::uint64_t key : {490, 300, 720}) {
      twice->key = key;
      EXPECT_THROW(scan(), Error) << key;
      EXPECT_THROW(scan(), Error) << key << ", by what the first scan has kept";
    }
    twice->key = 500;
    EXPECT_NO_THROW(scan());
  }
}

}  // namespace
}  // namespace perdix::detail::index::sptree
