// What NbTree does to its leaves: fill, splits, joins, what a crash leaves in a block. The
// behaviour of the calls is tested by tests/conformance, for all engines alike.
#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "index/nbtree/recovery.h"
#include "index/nbtree/test_tree.h"

namespace perdix::detail::index::nbtree {
namespace {

using Numbers = TestTree<std::uint64_t, std::uint64_t>;
using Strings = TestTree<std::string, std::string>;

constexpr std::uint64_t kTop = std::numeric_limits<std::uint64_t>::max();

TEST(NbTreeLeaves, AscendingLoadFillsThemCompletely) {
  Numbers tree;
  constexpr std::uint64_t kLeaves = 100;
  for (std::uint64_t key = 0; key < kLeaves * kCapacity; ++key) tree->put(key, key);
  EXPECT_LE(tree->stats().leaves, kLeaves + EntryLayout<std::uint64_t>::kRegions);
  tree.expect_sound();
}

TEST(NbTreeLeaves, RandomLoadTakesAtMost22BytesOfAPairInPm) {
  Numbers tree;
  std::mt19937_64 random(1);
  constexpr std::uint64_t kKeys = 200'000;
  for (std::uint64_t i = 0; i < kKeys; ++i) tree->put(random(), i);
  EXPECT_LE(static_cast<double>(tree->stats().pm_bytes) / kKeys, 22.3);
  tree.expect_sound();
}

TEST(NbTreeLeaves, EmptiedOnesAreFreed) {
  Numbers tree;
  constexpr std::uint64_t kKeys = 50 * kCapacity;
  for (const bool ascending : {true, false}) {
    for (std::uint64_t i = 0; i < kKeys; ++i) tree->put(i, i);
    EXPECT_GE(tree->stats().leaves, 50u);
    for (std::uint64_t i = 0; i < kKeys; ++i) tree->erase(ascending ? i : kKeys - 1 - i);
    EXPECT_EQ(tree->size(), 0u);
    EXPECT_LE(tree->stats().leaves, EntryLayout<std::uint64_t>::kRegions + 1) << ascending;
    tree.expect_sound_pool();
  }
}

TEST(NbTreeLeaves, AQueueKeepsItsSize) {
  Numbers tree;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    tree->put(i, i);
    if (i >= 1000) tree->erase(i - 1000);
  }
  tree.core().reclaimer().drain();
  EXPECT_LE(tree->stats().leaves, 30u);
  EXPECT_LE(tree.dram_in_use(), 100'000u);
  tree.expect_sound_pool();
}

TEST(NbTreeLeaves, SparseNeighboursAreJoined) {
  Numbers tree;
  constexpr std::uint64_t kKeys = 100 * kCapacity;
  for (std::uint64_t i = 0; i < kKeys; ++i) tree->put(i, i);
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    if (i % 10 != 0) tree->erase(i);
  }
  EXPECT_LE(tree->stats().leaves, 60u);
  tree.expect_sound();
}

TEST(NbTreeKeys, EndsOfTheRangeAndOfItsQuartersAreOrdinary) {
  Numbers tree;
  std::map<std::uint64_t, std::uint64_t> model;
  for (std::uint64_t i = 0; i < 5 * kCapacity; ++i) {
    for (const std::uint64_t base : {std::uint64_t{0}, std::uint64_t{1} << 62,
                                     std::uint64_t{1} << 63, std::uint64_t{3} << 62}) {
      for (const std::uint64_t key : {base + i, base - 1 - i}) {
        tree->put(key, ~key);
        model[key] = ~key;
      }
    }
  }
  expect_same(tree, model);
  EXPECT_EQ(tree->get(kTop), 0u);
  tree.reopen();
  expect_same(tree, model);
  for (auto it = model.begin(); it != model.end();) {
    EXPECT_TRUE(tree->erase(it->first));
    it = model.erase(it);
  }
  expect_same(tree, model);
  tree.expect_sound_pool();
}

TEST(NbTreeCrash, EntriesInFlightAreKeptOrKilled) {
  // Three entries of one key that a crash has left: the first one counts.
  Numbers tree;
  for (std::uint64_t key = 1; key <= 3; ++key) tree->put(key, 10 * key);
  tree->size();  // no thread reads the block in the background
  using Layout = EntryLayout<std::uint64_t>;
  Entry* entries = tree.first_block().entries;
  for (unsigned i = 3; i < 6; ++i) {
    entries[i].value = 100 + i;
    entries[i].key = Layout::pack(7, i == 4 ? State::frozen : State::pending);
  }
  entries[0].key = Layout::pack(1, State::frozen);
  tree.reopen();
  expect_same(tree, std::map<std::uint64_t, std::uint64_t>{{1, 10}, {2, 20}, {3, 30}, {7, 103}});
  EXPECT_TRUE(tree->erase(7));
  tree.reopen();
  EXPECT_FALSE(tree->get(7)) << "the others must not come back";
  EXPECT_TRUE(tree->update(1, 11)) << "an entry that was frozen is an ordinary one";
  tree.expect_sound_pool();
}

TEST(NbTreeCrash, FreesUnreachedBlocksThatTheLedgerNames) {
  Strings tree;
  tree->put("key", std::string(100, 'v'));
  const std::uint64_t before = tree.allocated();
  tree.claim_and_forget(100);
  EXPECT_GT(tree.allocated(), before);
  tree.reopen();
  EXPECT_EQ(tree->size(), 1u);  // which needs all leaves, and so knows what is reached
  EXPECT_EQ(tree.allocated(), before);
  EXPECT_EQ(tree->get("key"), std::string(100, 'v'));
  tree.expect_sound_pool();
}

/// A crash, or a page that has got another owner by the pool's damage, may leave anything in the
/// ledger's words by the time that they are used.
TEST(NbTreeDamage, DoesNotFollowWildNames) {
  for (const std::uint64_t wild :
       {std::uint64_t{0xffff'ffff'fff0}, std::uint64_t{0xdead'beef'0000}, std::uint64_t{16},
        (std::uint64_t{200} << 20) + 16, ~std::uint64_t{0} & ~std::uint64_t{15}}) {
    for (const pm::Offset tag : {kAnchorTag, pm::Offset{0}}) {
      Strings tree;
      // The second time, since the first values lie in the blocks of the keys.
      for (const char first : {'v', 'w'})
        for (int i = 0; i < 2000; ++i) tree->put(std::to_string(i), std::string(40, first));
      unsigned changed = 0;
      {
        const epoch::Guard guard;  // what is unlinked stays named
        for (int i = 0; i < 2000; ++i) tree->put(std::to_string(i), std::string(40, 'x'));
        for (Stripe& stripe : tree.root().stripes) {
          for (pm::Offset& word : stripe.retired) {
            if (word == pm::kNull) continue;
            word = wild | tag;
            ++changed;
          }
        }
      }
      ASSERT_GT(changed, 0u);
      // Closing frees what is named, as far as it is there; what is left of it is found out when
      // the index is opened, or when all of its strings are known.
      const auto reopen = [&] {
        tree.reopen();
        tree->size();
      };
      EXPECT_THROW(reopen(), Error) << wild << " " << tag;
    }
  }
}

/// While this lives, an arena of few addresses has no memory left.
class Exhausted {
 public:
  explicit Exhausted(util::Arena& arena) : arena_(arena) {
    // Memory stays with its size, so there must be some of each afterwards.
    for (std::size_t bytes = util::Arena::kGranule; bytes <= 2048; bytes += util::Arena::kGranule) {
      for (unsigned i = 0; i < 150; ++i) pieces_.emplace_back(arena.allocate(bytes), bytes);
    }
    for (std::size_t bytes = 4096; bytes > 0; bytes -= util::Arena::kGranule) {
      try {
        for (;;) pieces_.emplace_back(arena.allocate(bytes), bytes);
      } catch (const std::bad_alloc&) {
      }
    }
  }
  Exhausted(const Exhausted&) = delete;
  Exhausted& operator=(const Exhausted&) = delete;
  ~Exhausted() {
    for (const auto& [piece, bytes] : pieces_) arena_.release(piece, bytes);
  }

 private:
  util::Arena& arena_;
  std::vector<std::pair<void*, std::size_t>> pieces_;
};

/// A top layer over positions that have no leaves.
template <class K>
class TopTest : public ::testing::Test {
 protected:
  TopTest() {
    first_ = position(0);
    top_.build(1, [this](auto bounds) { bounds[0] = {first_->low(), first_}; });
  }

  /// Low bounds are bytes of the position's own, as in a tree.
  static View<K> low_of(std::uint64_t number, std::string& bytes) {
    if constexpr (std::is_same_v<K, std::string>) {
      bytes = number == 0 ? "" : fmt::format("{:06}", number);
      return bytes;
    } else {
      return number;
    }
  }

  Position<K>* position(std::uint64_t number) {
    Owned& owned = *all_.emplace_back(std::make_unique<Owned>());
    owned.anchor.low = number;
    void* memory = arena_.allocate(sizeof(Position<K>));
    owned.position = new (memory) Position<K>(owned.anchor, low_of(number, owned.bytes), leaf_);
    return owned.position;
  }

  Leaf<K>* new_leaf() {
    return new (arena_.allocate(Leaf<K>::bytes(kSmallCapacity)))
        Leaf<K>(block_, kSmallCapacity, nullptr, {});
  }

  Leaf<K>* leaf_found(const Position<K>& position) const { return top_.floor(position.low()).leaf; }

  void submit(Position<K>& position, TopChange what, Leaf<K>* former = nullptr) {
    writer_.submit(writer_.prepare(), position, what, former);
  }

  /// The position is not in the list any more.
  static void absorb(Position<K>& position) { position.leaf = nullptr; }

  /// Overwrites the bytes of a position that has gone, as its next owner would.
  static void release(void* position, void* test) {
    auto& released = static_cast<TopTest*>(test)->released_;
    released.insert(position);
    for (auto& owned : static_cast<TopTest*>(test)->all_) {
      if (owned->position == position) std::fill(owned->bytes.begin(), owned->bytes.end(), 'z');
    }
  }

  static void release_leaf(void* leaf, void* test) {
    const std::size_t bytes = static_cast<Leaf<K>*>(leaf)->bytes();
    static_cast<TopTest*>(test)->arena_.release(leaf, bytes);
  }

  /// The place of its anchor is another's by now.
  void reuse_anchor(Position<K>& position) { position.anchor().low = 0; }

  struct Owned {
    Anchor anchor{};
    std::string bytes;
    Position<K>* position = nullptr;
  };

  util::Arena arena_{std::size_t{64} << 20};
  epoch::Reclaimer reclaimer_;
  Block& block_ = *new (arena_.allocate(sizeof(Block))) Block{};
  Leaf<K>* leaf_ = new_leaf();
  std::vector<std::unique_ptr<Owned>> all_;
  Position<K>* first_ = nullptr;
  std::set<void*> released_;
  TopLayer<K> top_{arena_, reclaimer_};
  TopWriter<K> writer_{top_, nullptr, arena_, reclaimer_, release, release_leaf, this};
};

using KeyTypes = ::testing::Types<std::uint64_t, std::string>;
TYPED_TEST_SUITE(TopTest, KeyTypes);

TYPED_TEST(TopTest, ABoundThatIsGoneMayComeBackBeforeItHasLeft) {
  constexpr std::uint64_t kBounds = 500;  // several levels
  std::vector<Position<TypeParam>*> first, second;
  {
    const epoch::Guard guard;
    for (std::uint64_t i = 1; i <= kBounds; ++i) {
      first.push_back(this->position(i));
      if (i % 2 == 0) this->submit(*first.back(), kAdd);
    }
    for (auto* position : first) this->absorb(*position);
    for (std::uint64_t i = 1; i <= kBounds; ++i)
      this->submit(*second.emplace_back(this->position(i)), kAdd);
    // Some of the requests for those that have gone come late.
    for (std::uint64_t i = 1; i <= kBounds; i += 2) this->submit(*first[i - 1], kAdd);
    for (auto* position : first) this->submit(*position, kRemove);
  }
  this->reclaimer_.drain();
  const epoch::Guard guard;
  for (std::uint64_t i = 0; i < kBounds; ++i) {
    EXPECT_TRUE(this->released_.contains(first[i])) << i;
    EXPECT_EQ(this->top_.floor(second[i]->low()).at, second[i]) << i;
    EXPECT_EQ(this->top_.linked_below(second[i]->low()), i == 0 ? this->first_ : second[i - 1])
        << i;
  }
  EXPECT_EQ(this->released_.size(), kBounds);
}

TYPED_TEST(TopTest, WhatHasGoneAndNotLeftIsPassedOver) {
  constexpr std::uint64_t kBounds = 500, kLeft = 130;  // from the second on, all go up to kLeft
  const epoch::Guard guard;
  std::vector<Position<TypeParam>*> positions{this->first_};
  for (std::uint64_t i = 1; i <= kBounds; ++i)
    this->submit(*positions.emplace_back(this->position(i)), kAdd);
  const auto low = [&](std::uint64_t i) { return positions[i]->low(); };
  for (std::uint64_t i = 2; i < kBounds; ++i)
    EXPECT_EQ(this->top_.linked_floor(low(i)), positions[i]);
  for (std::uint64_t i = 2; i <= kLeft; ++i) {
    const auto bound = low(i), following = low(i + 1);
    this->absorb(*positions[i]);
    this->reuse_anchor(*positions[i]);
    EXPECT_EQ(this->top_.floor(bound).at, positions[i]) << i;
    EXPECT_EQ(this->top_.linked_floor(bound), positions[1]) << i;
    EXPECT_EQ(this->top_.linked_below(following), positions[1]) << i;
  }
}

/// Three levels shrink to one, from either end. While a reader is there, nothing that it may be in
/// is released, so there is never less memory in use after a request than before.
TYPED_TEST(TopTest, ThreeLevelsShrinkUnderAReader) {
  constexpr std::uint64_t kBounds = 5000;
  for (const bool from_left : {true, false}) {
    std::vector<Position<TypeParam>*> positions;
    {
      const epoch::Guard guard;
      for (std::uint64_t i = 1; i <= kBounds; ++i)
        this->submit(*positions.emplace_back(this->position(i)), kAdd);
      if (!from_left) std::reverse(positions.begin(), positions.end());
      for (auto* position : positions) {
        const std::size_t before = this->arena_.bytes_in_use();
        const auto low = position->low();
        this->absorb(*position);
        this->submit(*position, kRemove);
        ASSERT_GE(this->arena_.bytes_in_use(), before) << from_left;
        ASSERT_NE(this->top_.floor(low).at, position);
      }
      EXPECT_EQ(this->top_.floor(positions.back()->low()).at, this->first_);
    }
    this->reclaimer_.drain();
    for (auto* position : positions) EXPECT_TRUE(this->released_.contains(position));
    this->released_.clear();
  }
}

TYPED_TEST(TopTest, AppliesRequestsLaterIfMemoryLacks) {
  constexpr std::uint64_t kBounds = 100;
  std::vector<Position<TypeParam>*> positions;
  std::vector<Request<TypeParam>*> for_add, for_remove;
  for (std::uint64_t i = 1; i <= kBounds; ++i) {
    positions.push_back(this->position(i));
    for_add.push_back(this->writer_.prepare());
    for_remove.push_back(this->writer_.prepare());
  }
  {
    const epoch::Guard guard;
    const std::size_t half = kBounds / 2;
    for (std::size_t i = 0; i < half; ++i) this->submit(*positions[i], kAdd);
    {
      const Exhausted exhausted(this->arena_);
      // Some come that were not there, and some of these and of those that were go again.
      for (std::size_t i = half; i < kBounds; ++i)
        this->writer_.submit(for_add[i], *positions[i], kAdd);
      for (std::size_t i = 0; i < kBounds; i += 2) {
        this->absorb(*positions[i]);
        this->writer_.submit(for_remove[i], *positions[i], kRemove);
      }
      EXPECT_EQ(this->top_.linked_floor(positions[1]->low()), positions[1]);
    }
    for (std::size_t i = 0; i < half; ++i) this->writer_.take_back(for_add[i]);
    for (std::size_t i = 1; i < kBounds; i += 2) this->writer_.take_back(for_remove[i]);
    EXPECT_NE(this->top_.floor(positions.back()->low()).at, positions.back()) << "not as yet";
    // With this one the others are applied.
    this->submit(*this->position(kBounds + 1), kAdd);
    for (std::size_t i = 0; i < kBounds; ++i) {
      EXPECT_EQ(this->top_.floor(positions[i]->low()).at == positions[i], i % 2 != 0) << i;
    }
  }
  this->reclaimer_.drain();
  EXPECT_EQ(this->released_.size(), kBounds / 2) << "those that have gone";
}

TYPED_TEST(TopTest, ASearchFindsTheLeafThatIsThere) {
  auto& position = *this->position(1);
  const auto* first = this->leaf_;
  auto* second = this->new_leaf();
  const std::size_t before = this->arena_.bytes_in_use();
  {
    const epoch::Guard guard;
    EXPECT_EQ(this->leaf_found(*this->first_), first);
    this->submit(position, kAdd);
    EXPECT_EQ(this->leaf_found(position), first);
    position.leaf = second;
    EXPECT_EQ(this->leaf_found(position), first) << "the top layer has not been told";
    this->submit(position, kRenew, this->new_leaf());  // which was there in between
    EXPECT_EQ(this->leaf_found(position), second);
    this->absorb(position);
    this->submit(position, kRemove, second);
    EXPECT_EQ(this->top_.floor(position.low()).at, this->first_);
  }
  this->reclaimer_.drain();
  EXPECT_EQ(this->released_, std::set<void*>{&position});
  const std::size_t leaf_bytes = (Leaf<TypeParam>::bytes(kSmallCapacity) + 15) / 16 * 16;
  EXPECT_EQ(this->arena_.bytes_in_use(), before - leaf_bytes) << "both are released";
}

TYPED_TEST(TopTest, ASearchFindsNoLeafThatIsCold) {
  auto& position = *this->position(1);
  position.leaf = cold_before<TypeParam>(nullptr);
  const epoch::Guard guard;
  this->submit(position, kAdd);
  EXPECT_EQ(this->leaf_found(position), nullptr);
  position.leaf = this->leaf_;
  this->writer_.renew(std::array{this->first_, &position});
  EXPECT_EQ(this->leaf_found(position), this->leaf_);
}

TYPED_TEST(TopTest, APositionIsNotReleasedBeforeItsRequestsAreApplied) {
  auto& position = *this->position(1);
  {
    const epoch::Guard guard;
    this->submit(position, kAdd);
    EXPECT_TRUE(position.add_pending_request(kAdd | kRemove));
    this->absorb(position);
    this->submit(position, kRemove, this->new_leaf());
  }
  this->reclaimer_.drain();
  EXPECT_TRUE(this->released_.empty()) << "somebody is about to tell";
}

TYPED_TEST(TopTest, ARequestForAPositionThatHasGoneComesTooLate) {
  auto& position = *this->position(1);
  const std::size_t before = this->arena_.bytes_in_use();
  {
    const epoch::Guard guard;
    this->submit(position, kAdd);
    this->absorb(position);
    this->submit(position, kRemove, this->new_leaf());
    this->submit(position, kRenew, this->new_leaf());
  }
  this->reclaimer_.drain();
  EXPECT_EQ(this->released_, std::set<void*>{&position});
  EXPECT_EQ(this->arena_.bytes_in_use(), before) << "both leaves are released";
}

TEST(NbTreeTop, LeadsToTheLeafWhateverBecameOfIt) {
  Numbers tree;
  std::mt19937_64 random(5);
  std::vector<std::uint64_t> keys(100 * kCapacity);
  for (auto& key : keys) key = random();
  const auto found_at_once = [&] {
    return std::count_if(keys.begin(), keys.end(),
                         [&](std::uint64_t key) { return tree.finds_leaf_at_once(key); });
  };
  const auto all = static_cast<std::ptrdiff_t>(keys.size());
  for (const std::uint64_t key : keys) tree->put(key, key);
  EXPECT_EQ(found_at_once(), all) << "after splits";
  for (const std::uint64_t key : keys) {
    if (key % 8 != 0) tree->erase(key);
  }
  EXPECT_EQ(found_at_once(), all) << "after joins";
  tree.reopen_cold();
  EXPECT_EQ(found_at_once(), 0) << "while all leaves are cold";
  tree->get(keys[0]);
  EXPECT_TRUE(tree.finds_leaf_at_once(keys[0])) << "when somebody has needed it";
  EXPECT_LT(found_at_once(), all / 2);
  tree->size();
  EXPECT_EQ(found_at_once(), all) << "when all are warm";
}

}  // namespace
}  // namespace perdix::detail::index::nbtree
