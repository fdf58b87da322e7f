// The tree against std::map, by one thread: random and adversarial keys, each operation, each
// boundary.
#include "art/tree.h"

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "art/test_support.h"
#include "epoch/guard.h"
#include "util/random.h"

namespace perdix::detail::art {
namespace {

using testing::HeapTree;
using testing::IntItem;
using testing::StringItem;
using testing::ViewItem;

// A tree and the map that it must equal.
template <class Item>
class Pair {
 public:
  using Key = typename HeapTree<Item>::Key;
  using Stored = decltype(Item::key);
  using Map = std::map<Stored, std::unique_ptr<Item>, std::less<>>;

  ~Pair() { EXPECT_EQ(tree_.leak(), 0); }

  void insert(const Stored& key) {
    const epoch::Guard guard;
    auto item = std::make_unique<Item>(Item{key});
    const bool expected = !map_.contains(key);
    ASSERT_EQ(tree_->insert(key, item.get()), expected);
    if (expected) map_.emplace(key, std::move(item));
  }

  void upsert(const Stored& key) {
    const epoch::Guard guard;
    auto item = std::make_unique<Item>(Item{key});
    ASSERT_EQ(tree_->upsert(key, item.get()), get(map_.find(key)));
    map_[key] = std::move(item);
  }

  void erase(const Stored& key) {
    const epoch::Guard guard;
    ASSERT_EQ(tree_->erase(key), get(map_.find(key)));
    map_.erase(key);
  }

  void check(Key key) {
    const epoch::Guard guard;
    ASSERT_EQ(tree_->find(key), get(map_.find(key)));
    const auto above = map_.upper_bound(key);
    Item* const floor = above == map_.begin() ? nullptr : get(std::prev(above));
    ASSERT_EQ(tree_->find_floor(key), floor);
    auto lookahead = tree_->look_ahead(key);
    while (lookahead.step()) {
    }
    check_guess(tree_->guess(lookahead, key), key, floor);
    const auto ceiling = map_.lower_bound(key);
    ASSERT_EQ(tree_->find_below(key), ceiling == map_.begin() ? nullptr : get(std::prev(ceiling)));
    ASSERT_EQ(tree_->find_ceiling(key), get(ceiling));
    ASSERT_EQ(tree_->find_above(key), get(above));
  }

  void check_order() {
    std::vector<Item*> expected, seen;
    for (const auto& [key, item] : map_) expected.push_back(item.get());
    {
      const epoch::Guard guard;
      tree_->for_each([&](Item* item) { seen.push_back(item); });
    }
    ASSERT_EQ(seen, expected);
    ASSERT_EQ(tree_->empty(), map_.empty());
    ASSERT_EQ(tree_.settled_bytes(), static_cast<std::int64_t>(tree_->bytes()));
  }

  double share_of_wrong_guesses() const { return 1.0 * wrong_guesses_ / guesses_; }

  HeapTree<Item>& tree() { return tree_; }
  const Map& map() const { return map_; }

 private:
  Item* get(typename Map::const_iterator it) const {
    return it == map_.end() ? nullptr : it->second.get();
  }

  /// Without writers it is the floor, or plainly not: a caller sees that it must search again.
  void check_guess(Item* guess, Key key, Item* floor) {
    ++guesses_;
    if (guess == floor) return;
    ++wrong_guesses_;
    if (guess == nullptr) return;
    ASSERT_EQ(get(map_.find(Stored(guess->key))), guess);
    ASSERT_GT(Key(guess->key), key);
  }

  HeapTree<Item> tree_;
  Map map_;
  int guesses_ = 0;
  int wrong_guesses_ = 0;
};

template <class Key>
struct KeySource {
  const char* name;
  std::function<Key(util::Random&)> next;
};

// Random operations that let the tree grow, then shrink to nothing, twice; each looks at the
// neighbourhood of a key.
template <class Item, class Key>
void run_against_map(const KeySource<Key>& source, std::uint64_t seed, int steps) {
  SCOPED_TRACE(std::string(source.name) + " seed " + std::to_string(seed));
  util::Random random(seed);
  Pair<Item> pair;
  for (int step = 0; step < steps; ++step) {
    const bool growing = step % (steps / 2) < steps / 4;
    const Key key = source.next(random);
    if (random.one_in(10))
      pair.upsert(key);
    else if (growing != random.one_in(4))
      pair.insert(key);
    else
      pair.erase(key);
    if (!growing && !pair.map().empty()) {
      auto victim = pair.map().lower_bound(source.next(random));
      if (victim == pair.map().end()) --victim;
      pair.erase(Key(victim->first));
    }
    pair.check(key);
    pair.check(source.next(random));
    if (step % (steps / 20) == 0) pair.check_order();
    if (::testing::Test::HasFatalFailure()) FAIL() << "step " << step;
  }
  const bool integers = std::is_same_v<Key, std::uint64_t>;
  EXPECT_LT(pair.share_of_wrong_guesses(), integers ? 0.05 : 0.15);
  while (!pair.map().empty()) pair.erase(Key(pair.map().begin()->first));
  pair.check_order();
  EXPECT_EQ(pair.tree()->bytes(), 0u);
}

void run_all_ints(std::uint64_t seed) {
  const KeySource<std::uint64_t> sources[] = {
      {"uniform", [](util::Random& random) { return random(); }},
      {"dense", [](util::Random& random) { return random.below(2000); }},
      {"few", [](util::Random& random) { return random.below(8) << 61 | random.below(4); }},
      {"clustered",
       [](util::Random& random) { return random.below(20) << 40 | random.below(300); }},
      {"ends of the range", [](util::Random& random) { return random.below(300) - 150; }},
      {"one byte differs",
       [](util::Random& random) { return random.below(256) << (8 * random.below(8)); }},
      {"strided", [](util::Random& random) { return random.below(500) * 0x0101010101; }},
      {"few bits differ, in all bytes",
       [](util::Random& random) {
         return 0x8080808080808080 | (random() & random() & random() & 0x4040404040404040);
       }},
  };
  for (const auto& source : sources) run_against_map<IntItem>(source, seed, 6000);
}

std::string random_string(util::Random& random, std::size_t max_size, unsigned alphabet,
                          char first) {
  std::string key(random.below(max_size + 1), '\0');
  for (char& c : key) c = static_cast<char>(first + static_cast<char>(random.below(alphabet)));
  return key;
}

std::vector<KeySource<std::string>> string_sources() {
  return {
      {"short", [](util::Random& random) { return random_string(random, 4, 256, 0); }},
      {"zeros and prefixes", [](util::Random& random) { return random_string(random, 12, 2, 0); }},
      {"only zeros", [](util::Random& random) { return std::string(random.below(200), '\0'); }},
      {"high bytes", [](util::Random& random) { return random_string(random, 6, 3, '\xfd'); }},
      {"numbered",
       [](util::Random& random) { return "user" + std::to_string(random.below(3000)); }},
      {"long shared prefixes",
       [](util::Random& random) {
         std::string key(random.below(3) * 50, 'p');
         key += random_string(random, 3, 3, 'a');
         key += std::string(random.below(2) * 40, 'q');
         return key + random_string(random, 3, 2, 0);
       }},
      {"prefixes around what a node stores",
       [](util::Random& random) {
         std::string key(60, 'x');
         key[28 + random.below(10)] = static_cast<char>('w' + random.below(3));
         return key.substr(0, 26 + random.below(35));
       }},
      {"chains",
       [](util::Random& random) {
         return std::string(random.below(400), 'c') + (random.one_in(3) ? "d" : "");
       }},
      {"wide", [](util::Random& random) { return "w" + random_string(random, 2, 256, 0); }},
  };
}

// Integers: a node for two children has no place for a prefix.
TEST(Tree, ANodeForTwoIsReplacedWhenItGetsAPrefix) {
  constexpr std::uint64_t kAlone = 0x0100'0000'0000'0000, kLow = 0x0201'0000'0000'0000,
                          kHigh = 0x0202'0000'0000'0000;
  Pair<IntItem> pair;
  const auto expect = [&](std::size_t bytes) {
    EXPECT_EQ(pair.tree()->bytes(), bytes);
    for (const std::uint64_t key : {kAlone, kLow, kHigh}) {
      for (const std::uint64_t near : {key - 1, key, key + 1}) pair.check(near);
    }
    pair.check_order();
  };
  for (const std::uint64_t key : {kAlone, kLow, kHigh}) pair.insert(key);
  expect(2 * sizeof(Node2<std::uint64_t>));
  for (int i = 0; i < 3; ++i) {
    pair.erase(kAlone);
    expect(sizeof(Node4<std::uint64_t>));
    pair.insert(kAlone);  // splits the prefix
    expect(sizeof(Node2<std::uint64_t>) + sizeof(Node4<std::uint64_t>));
  }
  pair.insert(kHigh + (kHigh - kLow));
  pair.erase(kHigh);
  expect(2 * sizeof(Node2<std::uint64_t>));
}

TEST(TreeOfInts, EqualsAMap) {
  for (std::uint64_t seed : {1, 2, 3}) run_all_ints(seed);
}

TEST(TreeOfStrings, EqualsAMap) {
  for (std::uint64_t seed : {1, 2, 3}) {
    for (const auto& source : string_sources()) run_against_map<StringItem>(source, seed, 4000);
  }
}

TEST(TreeOfInts, EmptyHasNothing) {
  Pair<IntItem> pair;
  for (std::uint64_t key : {std::uint64_t{0}, std::uint64_t{5}, ~std::uint64_t{0}}) pair.check(key);
  pair.erase(1);
  pair.check_order();
}

TEST(TreeOfInts, FloorAtEveryBoundary) {
  constexpr std::uint64_t kSeed = 77;
  util::Random random(kSeed);
  Pair<IntItem> pair;
  pair.insert(0);
  pair.insert(~std::uint64_t{0});
  for (int i = 0; i < 3000; ++i)
    pair.insert(random() >> (8 * random.below(8)) << (8 * random.below(8)));
  for (const auto& [key, item] : pair.map()) {
    for (std::uint64_t delta : {0, 1, 2, 255, 256, 257, 65536}) {
      pair.check(key + delta);
      pair.check(key - delta);
      if (HasFatalFailure()) FAIL() << key << " " << delta << " seed " << kSeed;
    }
  }
}

TEST(TreeOfStrings, FloorAtEveryBoundary) {
  constexpr std::uint64_t kSeed = 78;
  util::Random random(kSeed);
  for (const auto& source : string_sources()) {
    SCOPED_TRACE(source.name);
    Pair<StringItem> pair;
    for (int i = 0; i < 500; ++i) pair.insert(source.next(random));
    for (const auto& [key, item] : pair.map()) {
      pair.check(key);
      pair.check(key + '\0');
      pair.check(key + '\xff');
      for (std::size_t cut = 0; cut < std::min<std::size_t>(key.size(), 80); ++cut) {
        std::string other = key.substr(0, cut);
        pair.check(other);
        for (int delta : {-1, 1})
          pair.check(other + static_cast<char>(key[cut] + delta) + key.substr(cut + 1));
      }
      if (HasFatalFailure()) FAIL() << "seed " << kSeed;
    }
  }
}

// Every number of children, growing and shrinking, at the top and below a byte.
TEST(TreeOfInts, EachNodeSize) {
  for (unsigned shift : {0u, 8u, 56u}) {
    Pair<IntItem> pair;
    for (std::uint64_t byte = 0; byte < 256; ++byte) {
      pair.insert((byte * 167 % 256) << shift);
      pair.check_order();
    }
    for (std::uint64_t byte = 0; byte < 256; ++byte) {
      pair.erase((byte * 89 % 256) << shift);
      pair.check_order();
      pair.check(byte << shift);
    }
    if (HasFatalFailure()) FAIL() << "shift " << shift;
  }
}

TEST(TreeOfStrings, LongestKeys) {
  Pair<StringItem> pair;
  const std::string longest(kMaxKeySize, '\0');
  pair.insert(longest);
  pair.insert(longest.substr(1));
  pair.insert("");
  std::string other = longest;
  other.back() = 1;
  pair.insert(other);
  other[40000] = 1;
  pair.insert(other);
  other[10] = 1;
  pair.insert(other);
  for (const auto& [key, item] : pair.map()) pair.check(key);
  pair.check_order();
  pair.erase(longest.substr(1));
  pair.erase(longest);
  pair.check(longest);
  pair.check_order();
}

// A way of thousands of nodes: nothing may recurse, and a neighbour may be as far away.
TEST(TreeOfStrings, DeepestTree) {
  HeapTree<ViewItem> tree;
  const std::string longest(kMaxKeySize, 'd');
  std::vector<ViewItem> items;
  for (std::size_t size = 0; size <= kMaxKeySize; size += 20)
    items.push_back({std::string_view(longest).substr(0, size)});
  for (auto& item : items) ASSERT_TRUE(tree->insert(item.key, &item));
  EXPECT_EQ(tree->find_floor(longest), &items.back());
  EXPECT_EQ(tree->find_above(items.back().key), nullptr);
  const std::string just_below = longest.substr(0, 60000) + "c";
  EXPECT_EQ(tree->find_floor(just_below), &items[3000]);
  EXPECT_EQ(tree->find_above(just_below), &items[3001]);
  EXPECT_EQ(tree.leak(), 0);
}

TEST(TreeOfInts, ScanStopsWhenTold) {
  Pair<IntItem> pair;
  for (std::uint64_t key = 0; key < 100; ++key) pair.insert(2 * key);
  std::vector<std::uint64_t> seen;
  pair.tree()->scan(51, [&](IntItem* item) {
    seen.push_back(item->key);
    return seen.size() < 3;
  });
  EXPECT_EQ(seen, (std::vector<std::uint64_t>{52, 54, 56}));
}

TEST(TreeOfInts, LivesInAnArena) {
  util::Arena arena;
  std::vector<IntItem> items(10'000);
  epoch::Reclaimer reclaimer;
  {
    Tree<IntItem*, IntItem::KeyOf> tree(DramMemory(arena, reclaimer));
    util::Random random(5);
    const epoch::Guard guard;
    for (auto& item : items) {
      item.key = random();
      tree.insert(item.key, &item);
    }
    for (auto& item : items) EXPECT_EQ(tree.find(item.key), &item);
    EXPECT_GT(tree.bytes(), 0u);
    EXPECT_GE(arena.bytes_in_use(), tree.bytes());
  }
  reclaimer.drain();
  EXPECT_EQ(arena.bytes_in_use(), 0u);
}

// Memory that runs out at the n-th allocation.
struct ScarceMemory {
  std::size_t* left;
  void* allocate(std::size_t bytes) {
    if (*left == 0) throw std::bad_alloc();
    --*left;
    return ::operator new (bytes, std::align_val_t{64});
  }
  void release(void* memory, std::size_t) noexcept {
    ::operator delete (memory, std::align_val_t{64});
  }
  template <class Node>
  void retire(Node* node) noexcept {
    release(node, sizeof(Node));
  }
};

TEST(TreeOfInts, AnInsertThatThrowsChangesNothing) {
  std::size_t left = 10;
  Tree<IntItem*, IntItem::KeyOf, ScarceMemory> tree(ScarceMemory{&left});
  std::map<std::uint64_t, std::unique_ptr<IntItem>> map;
  constexpr std::uint64_t kSeed = 9;
  util::Random random(kSeed);
  int failures = 0;
  for (int i = 0; i < 2000; ++i) {
    auto item = std::make_unique<IntItem>(IntItem{random.below(50) << 32 | random.below(50) << 8});
    const std::uint64_t key = item->key;
    try {
      const bool inserted = tree.insert(key, item.get());
      ASSERT_EQ(inserted, !map.contains(key));
      if (inserted) map.emplace(key, std::move(item));
    } catch (const std::bad_alloc&) {
      ++failures;
      ASSERT_EQ(tree.find(key), nullptr);
      left = 3;
    }
  }
  EXPECT_GT(failures, 10);
  std::size_t count = 0;
  tree.for_each([&](IntItem* item) { count += map.at(item->key).get() == item; });
  EXPECT_EQ(count, map.size()) << "seed " << kSeed;
}

}  // namespace
}  // namespace perdix::detail::art
