// What the suites of all engines don't reach: the parts of the framework, logs that wrap, payloads
// outside of a ring, indexes that grow, and what opening finds after a process has died.
#include <array>
#include <atomic>
#include <barrier>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "epoch/guard.h"
#include "index/tips/cache.h"
#include "index/tips/indexes/btree.h"
#include "index/tips/indexes/hash_table.h"
#include "index/tips/scaling.h"
#include "index/tips/test_tips.h"
#include "index/tips/workers.h"
#include "plugins/art.h"
#include "plugins/bst.h"
#include "plugins/clht.h"
#include "plugins/lfbst.h"
#include "plugins/lfhash.h"
#include "pm/test_files.h"
#include "pool/pool_core.h"
#include "util/random.h"
#include "util/test_directory.h"

namespace perdix::detail::index::tips {
namespace {

using perdix::tips::plugins::Art;
using perdix::tips::plugins::Bst;
using perdix::tips::plugins::Clht;
using perdix::tips::plugins::LfBst;
using perdix::tips::plugins::LfHash;

template <class Index, class K, class V>
void expect_same(const Index& index, const std::map<K, V>& model) {
  std::map<K, V> all;
  index.for_each([&](auto key, auto value) { return all.emplace(K(key), V(value)).second; });
  EXPECT_EQ(all, model);
  for (const std::string& problem : index.check().problems) ADD_FAILURE() << problem;
}

TEST_F(TipsTest, WritesOfAKilledProcessAreThere) {
  std::map<U64, std::string> model;
  for (U64 key = 0; key < 5000; ++key) model[key * 977] = std::string(key % 90, 'v');
  for (U64 key = 0; key < 5000; key += 3) model.erase(key * 977);
  die_after([](const Pool& pool) {
    Tips<perdix::tips::BTree, U64, std::string> index(pool, "t");
    for (U64 key = 0; key < 5000; ++key) index.put(key * 977, std::string(key % 90, 'v'));
    for (U64 key = 0; key < 5000; key += 3) index.erase(key * 977);
    index.~Tips();
    new (&index) Tips<perdix::tips::BTree, U64, std::string>(pool, "t");
    index.put(1, "in the log");
  });
  model[1] = "in the log";
  const Pool pool = open();
  {
    const Tips<perdix::tips::BTree, U64, std::string> index(pool, "t");
    EXPECT_EQ(index.get(1), "in the log");
    expect_same(index, model);
  }
  EXPECT_TRUE(pool.check().ok());
}

TEST_F(TipsTest, LargePayloadsLieOutsideOfTheRings) {
  const std::string key(60000, 'k'), large(1 << 20, 'l'), huge(20 << 20, 'h');
  die_after([&](const Pool& pool) {
    Tips<perdix::tips::Hash, std::string, std::string> index(pool, "t");
    for (int i = 0; i < 20; ++i) index.put(key + std::to_string(i), large);
    index.put(key, huge);
    index.put(key, large);
    for (int i = 0; i < 10; ++i) index.erase(key + std::to_string(i));
  });
  Pool pool = open();
  {
    Tips<perdix::tips::Hash, std::string, std::string> index(pool, "t");
    EXPECT_EQ(index.get(key), large);
    EXPECT_EQ(index.size(), 11U);
    EXPECT_EQ(index.get(key + "3"), std::nullopt);
    EXPECT_EQ(index.get(key + "13"), large);
  }
  EXPECT_TRUE(pool.check().ok());
  const auto allocated = [&] { return pool.info().allocated; };
  pool.drop("t");
  EXPECT_EQ(allocated(), 0U);
}

TEST_F(TipsTest, LongValuesDoNotFillTheDram) {
  const Pool pool = open();
  Tips<perdix::tips::BTree, U64, std::string> index(pool, "t", small_logs());
  for (U64 key = 0; key < 300; ++key)
    index.put(key, std::string(key % 2 == 0 ? 200'000 : 9'000, 'v'));
  EXPECT_LT(index.stats().dram_bytes, 4U << 20) << "of 31 MB";
  EXPECT_EQ(index.get(7), std::string(9'000, 'v'));
  EXPECT_EQ(index.get(8), std::string(200'000, 'v'));
}

TEST_F(TipsTest, StatsCountTheWork) {
  const Pool pool = open();
  std::optional<Tips<perdix::tips::BTree, U64, U64>> index(std::in_place, pool, "t");
  for (U64 key = 0; key < 100; ++key) index->put(key, key);
  for (U64 key = 0; key < 150; ++key) EXPECT_EQ(index->get(key).has_value(), key < 100);
  const TipsStats stats = index->stats().tips;
  EXPECT_EQ(stats.cache_hits, 100U);
  EXPECT_EQ(stats.cache_misses, 50U);
  EXPECT_GE(stats.cached, 100U * 2 * sizeof(U64));
  EXPECT_EQ(stats.waiting, 0U);
  EXPECT_EQ(stats.replayed, 100U);
  EXPECT_GE(stats.replays, 1U);
  EXPECT_GE(stats.max_waiting, 1U);
  EXPECT_LE(stats.max_waiting, 100U);
  EXPECT_GE(stats.workers, 1U);
  EXPECT_GE(stats.workers_used, stats.replays);
  EXPECT_GE(stats.undo_records + stats.undo_saved, 100U) << "each of the puts changes something";
  index.reset();  // reclaims the logs, so its nodes are not new any more
  index.emplace(pool, "t");
  for (U64 key = 0; key < 100; ++key) index->put(key, key + 1);
  const TipsStats after = index->stats().tips;
  EXPECT_EQ(after.cache_hits, 0U);
  EXPECT_EQ(after.replayed, 100U);
  EXPECT_GE(after.undo_records, 100U * 2 * sizeof(U64) / 64) << "a line each";
  EXPECT_GE(after.undo_saved, 50U) << "and none again";
}

TEST_F(TipsTest, OptionsBoundTheCache) {
  const Pool pool = open();
  const auto cached = [&](const std::string& name, double share, U64 pairs, unsigned chain) {
    TipsOptions options;
    options.cache_share = share, options.cached_pairs = pairs, options.chain = chain;
    Tips<perdix::tips::Hash, U64, U64> index(pool, name, options);
    for (U64 key = 0; key < 100'000; ++key) index.put(key, key);
    index.size();
    const U64 before = index.stats().tips.cache_hits;
    for (U64 key = 0; key < 100'000; ++key) EXPECT_EQ(index.get(key), key);
    return index.stats().tips.cache_hits - before;
  };
  EXPECT_GE(cached("all", 0, 1'000'000, 5), 99'900U) << "few chains get too long";
  constexpr U64 kMinBudget = U64{4096} * 128;
  EXPECT_LE(cached("few", 0, 0, 1), kMinBudget / (sizeof(Entry) + 2 * sizeof(U64)));
  cached("share", 0, 0, 5);
  EXPECT_GE(cached("share", 1, 0, 5), 50'000U) << "its pairs at the opening have room";
}

TEST_F(TipsTest, RefusesOptionsOutOfRange) {
  struct Case {
    const char* name;
    void (*spoil)(TipsOptions& options);
  };
  const Case cases[] = {
      {"a share below 0", [](TipsOptions& o) { o.cache_share = -0.1; }},
      {"more than all", [](TipsOptions& o) { o.cache_share = 1.1; }},
      {"too many pairs", [](TipsOptions& o) { o.cached_pairs = (U64{1} << 32) + 1; }},
      {"no chain", [](TipsOptions& o) { o.chain = 0; }},
      {"a long chain", [](TipsOptions& o) { o.chain = 65; }},
      {"a small log", [](TipsOptions& o) { o.log_bytes = 128 << 10; }},
      {"an odd log", [](TipsOptions& o) { o.log_bytes = 300 << 10; }},
      {"a huge log", [](TipsOptions& o) { o.log_bytes = 512 << 20; }},
      {"few records", [](TipsOptions& o) { o.undo_records = 319; }},
      {"many records", [](TipsOptions& o) { o.undo_records = (1U << 22) + 1; }},
      {"no worker", [](TipsOptions& o) { o.min_workers = 0; }},
      {"more at least than at most", [](TipsOptions& o) { o.min_workers = 3, o.max_workers = 2; }},
      {"many workers", [](TipsOptions& o) { o.max_workers = 257; }},
      {"many workers at least", [](TipsOptions& o) { o.min_workers = 257; }},
  };
  const Pool pool = open();
  for (const Case& wrong : cases) {
    TipsOptions options;
    wrong.spoil(options);
    testing_files::expect_error(Errc::invalid_argument, "tips:hash: ", [&] {
      const Tips<perdix::tips::Hash, U64, U64> index(pool, "t", options);
      ADD_FAILURE() << wrong.name << " was accepted";
    });
    EXPECT_TRUE(pool.indexes().empty()) << wrong.name;
  }
}

TEST_F(TipsTest, ALogKeepsTheSizeOfItsCreation) {
  std::map<U64, U64> model;
  TipsOptions large;
  large.log_bytes = 1 << 20, large.undo_records = 320;
  large.min_workers = large.max_workers = 2;
  for (const TipsOptions& options : {large, TipsOptions()}) {
    const Pool pool = open();
    Tips<perdix::tips::BTree, U64, U64> index(pool, "t", options);
    for (U64 key = 0; key < 30'000; ++key) index.put(key * 7, key + model.size());
    for (U64 key = 0, size = model.size(); key < 30'000; ++key) model[key * 7] = key + size;
    expect_same(index, model);
    EXPECT_GE(index.stats().tips.reclamations, 1U);
  }
}

TEST_F(TipsTest, TheAddressIsFixedFromTheFirstIndexOn) {
  {
    const Pool pool = open();
    EXPECT_FALSE(pool.info().fixed_address);
    Tips<perdix::tips::BTree, U64, U64> index(pool, "t");
    index.put(1, 2);
    EXPECT_TRUE(pool.info().fixed_address);
  }
  const Pool pool = open();
  EXPECT_TRUE(pool.info().fixed_address);
  const Tips<perdix::tips::BTree, U64, U64> index(pool, "t");
  EXPECT_EQ(index.get(1), 2U);
}

template <class Plugin>
class EmptiedIndex : public TipsTest {};
using Plugins =
    ::testing::Types<perdix::tips::Hash, perdix::tips::Bst, perdix::tips::Art, perdix::tips::BTree,
                     perdix::tips::Clht, perdix::tips::LfHash, perdix::tips::LfBst>;
TYPED_TEST_SUITE(EmptiedIndex, Plugins);

TYPED_TEST(EmptiedIndex, GivesItsSpaceBack) {
  const Pool pool = this->open();
  Tips<TypeParam, U64, U64> index(pool, "t", this->small_logs());
  constexpr U64 kPairs = 100'000;
  for (U64 i = 0; i < kPairs; ++i) index.put(key_of<U64>(i), i);
  EXPECT_EQ(index.size(), kPairs);
  const U64 full = pool.info().allocated;
  for (U64 i = 0; i < kPairs; ++i) EXPECT_TRUE(index.erase(key_of<U64>(i)));
  EXPECT_EQ(index.size(), 0U);
  EXPECT_TRUE(index.check().ok());
  pool.core()->reclaim_space();
  EXPECT_LT(pool.info().allocated, full / 6);
}

/// Not even the nodes that an index has without pairs.
TYPED_TEST(EmptiedIndex, LeavesNothingWhenItIsDropped) {
  Pool pool = this->open();
  {
    Tips<TypeParam, U64, std::string> index(pool, "t");
    for (U64 i = 0; i < 1000; ++i) index.put(key_of<U64>(i), std::string(i % 100, 'v'));
    for (U64 i = 0; i < 1000; i += 3) EXPECT_TRUE(index.erase(key_of<U64>(i)));
  }
  pool.drop("t");
  EXPECT_EQ(pool.info().allocated, 0U);
}

// --- Before the inspection of what was opened has ended ---

template <class Typed>
class OpenedIndex : public TipsTest {
 protected:
  using Index = typename Typed::Index;
  using Key = typename Typed::Key;
  using Value = typename Typed::Value;

  static TipsOptions without_thread() {
    TipsOptions options;
    options.resume_in_background = false;
    return options;
  }
  static void fill(const Pool& pool) {
    Index index(pool, "t");
    for (U64 i = 0; i < kMany; ++i) index.put(key_of<Key>(i), datum<Value>(i));
  }
  static void put_one(const Pool& pool) {
    Index index(pool, "t", without_thread());
    index.put(datum<Key>(1), datum<Value>(1));
    EXPECT_FALSE(index.erase(datum<Key>(2)));
    EXPECT_TRUE(index.erase(key_of<Key>(1)));
  }
  static void expect_all(const Index& index) {
    for (U64 i = 2; i < kMany; i += 7) ASSERT_EQ(index.get(key_of<Key>(i)), datum<Value>(i)) << i;
    EXPECT_EQ(index.get(datum<Key>(1)), datum<Value>(1));
    EXPECT_EQ(index.get(key_of<Key>(1)), std::nullopt);
    EXPECT_EQ(index.get(datum<Key>(3)), std::nullopt);
  }
};

TYPED_TEST_SUITE(OpenedIndex, OpenedIndexes);

TYPED_TEST(OpenedIndex, AnswersBeforeItIsInspected) {
  this->die_after([](const Pool& pool) { TestFixture::fill(pool), TestFixture::put_one(pool); });
  const Pool pool = this->open();
  {
    const typename TestFixture::Index index(pool, "t", this->without_thread());
    this->expect_all(index);  // each of them on its own
    EXPECT_EQ(index.size(), kMany);
    this->expect_all(index);
  }
  EXPECT_TRUE(pool.check().ok());
}

TYPED_TEST(OpenedIndex, IsWrittenWhileItIsInspected) {
  this->die_after([](const Pool& pool) { TestFixture::fill(pool); });
  for (U64 round = 0; round < 3; ++round) {
    const Pool pool = this->open();
    this->put_one(pool);  // and is closed before it was inspected
    typename TestFixture::Index index(pool, "t");
    std::thread reader([&] { this->expect_all(index); });
    for (U64 i = kMany; i < kMany + 1000; ++i)
      index.put(key_of<typename TestFixture::Key>(i), datum<typename TestFixture::Value>(i));
    reader.join();
    EXPECT_EQ(index.size(), kMany + 1000);
    index.put(key_of<typename TestFixture::Key>(1), datum<typename TestFixture::Value>(1));
    for (U64 i = kMany; i < kMany + 1000; ++i)
      EXPECT_TRUE(index.erase(key_of<typename TestFixture::Key>(i)));
    for (const std::string& problem : index.check().problems) ADD_FAILURE() << problem;
  }
}

// What a damaged index leads to is an error of some calls, and never the end of the process. Each
// round damages a sound pool, since one word may lead to all that there is.
TYPED_TEST(OpenedIndex, MayBeDamaged) {
  std::vector<pm::Offset> blocks;
  {
    const Pool pool = this->open();
    this->fill(pool);
    blocks = typename TestFixture::Index(pool, "t").blocks();
  }
  const testing_files::TempDirectory folder{testing_files::memory_directory()};
  const auto sound = folder.file("sound.pool");
  std::filesystem::copy_file(this->path_, sound);
  unsigned right = 0;
  for (U64 round = 0; round < 8; ++round) {
    std::filesystem::copy_file(sound, this->path_,
                               std::filesystem::copy_options::overwrite_existing);
    const Pool pool = this->open();
    util::Random random(round);
    const auto some = [&] { return blocks[blocks.size() / 2 + random.below(blocks.size() / 2)]; };
    for (int i = 0; i < 20; ++i) {
      auto* const words = pool.core()->template at<U64>(some());
      const auto* const other = pool.core()->template at<std::byte>(some());
      words[random.below(4)] = random.one_in(2) ? random() : reinterpret_cast<U64>(other);
    }
    try {
      typename TestFixture::Index index(pool, "t", this->without_thread());
      for (U64 i = 0; i < kMany; i += 5) {
        try {
          const auto key = key_of<typename TestFixture::Key>(i);
          right += index.get(key) == datum<typename TestFixture::Value>(i) ? 1 : 0;
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), Errc::corrupt);
        }
      }
      (void)index.check();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::corrupt);
    }
  }
  EXPECT_GT(right, kMany / 5);  // of each round, if all were
}

// --- The plug-ins without the framework: one source, volatile too ---

template <class Index>
class VolatileIndex : public ::testing::Test {};
using Indexes = ::testing::Types<HashTable<Volatile, IntegerKeys>, Bst<Volatile, IntegerKeys>,
                                 BTree<Volatile, IntegerKeys>, Art<Volatile, IntegerKeys>,
                                 Clht<Volatile, IntegerKeys>, LfHash<Volatile, IntegerKeys>,
                                 LfBst<Volatile, IntegerKeys>>;
TYPED_TEST_SUITE(VolatileIndex, Indexes);

/// What such an index leaves.
template <class Index>
void free_nodes(const Index& index) {
  Everything everything;
  EXPECT_TRUE(index.inspect(everything));
  for (void* node : everything.nodes) Volatile::free(node);
}

TYPED_TEST(VolatileIndex, IsAMap) {
  TypeParam index;
  std::map<Word, Word> model;
  for (const U64 range : {20U, 3000U, 3000U, 50U}) {
    util::Random random(range);
    for (int i = 0; i < 20000; ++i) {
      const Word key = random.below(range) * 0x9e3779b97f4a7c15;
      Word old_key = 0, old = 0;
      if (random.one_in(2)) {
        const auto found = model.find(key);
        EXPECT_EQ(index.put(key, random.below(100), old), found != model.end());
        if (found != model.end()) {
          EXPECT_EQ(old, found->second);
        }
        EXPECT_TRUE(index.find(key, old));
        model[key] = old;
      } else {
        const auto found = model.find(key);
        EXPECT_EQ(index.erase(key, old_key, old), found != model.end());
        if (found != model.end()) {
          EXPECT_EQ(old, found->second);
        }
        model.erase(key);
        EXPECT_FALSE(index.find(key, old));
      }
    }
    Everything everything;
    EXPECT_TRUE(index.inspect(everything));
    EXPECT_EQ(everything.pairs, model);
    EXPECT_EQ(index.size(), model.size());
  }
  Word old_key = 0, old = 0;
  for (const auto& [key, value] : model) EXPECT_TRUE(index.erase(key, old_key, old));
  EXPECT_EQ(index.size(), 0U);
  free_nodes(index);
}

/// Counts the lines that an operation of an index changes.
struct Counted : Volatile {
  static inline std::set<std::uintptr_t> lines;
  static void add(const void* p, std::size_t bytes) {
    const auto begin = reinterpret_cast<std::uintptr_t>(p);
    for (std::uintptr_t at = begin / 64; at <= (begin + bytes - 1) / 64; ++at) lines.insert(at);
  }
};

/// Keys of which many have the same hash, as far as a table looks.
struct CrowdedKeys : IntegerKeys {
  static std::uint64_t hash(Word key) { return key % 7 == 0 ? util::hash(key) : key; }
};

template <class Index>
class CountedIndex : public ::testing::Test {};
using CountedIndexes = ::testing::Types<HashTable<Counted, CrowdedKeys>, Bst<Counted, IntegerKeys>,
                                        BTree<Counted, CrowdedKeys>, Art<Counted, IntegerKeys>,
                                        Clht<Counted, CrowdedKeys>, LfHash<Counted, CrowdedKeys>,
                                        LfBst<Counted, IntegerKeys>>;
TYPED_TEST_SUITE(CountedIndex, CountedIndexes);

// Else an operation might find no room for an undo record between two stores.
TYPED_TEST(CountedIndex, ChangesFewLinesAtOnce) {
  constexpr Word kPairs = 4000;
  TypeParam index;
  Word old_key = 0, old = 0;
  std::size_t most = 0;
  const auto count = [&](const auto& call) {
    Counted::lines.clear();
    call();
    most = std::max(most, Counted::lines.size());
  };
  for (Word key = 0; key < kPairs; ++key) count([&] { index.put(key, key, old); });
  for (Word key = 0; key < kPairs; ++key) count([&] { index.erase(key, old_key, old); });
  EXPECT_EQ(index.size(), 0U);
  EXPECT_LE(most, Uno::kUndoRoom);
  EXPECT_GT(most, 1U);
  free_nodes(index);
}

template <class Index>
class UnorderedIndex : public ::testing::Test {};
using UnorderedIndexes =
    ::testing::Types<HashTable<Volatile, IntegerKeys>, Clht<Volatile, IntegerKeys>,
                     LfHash<Volatile, IntegerKeys>>;
TYPED_TEST_SUITE(UnorderedIndex, UnorderedIndexes);

// Others make it grow, and then shrink, while it is shown in parts.
TYPED_TEST(UnorderedIndex, ShowsEachPairOnceWhileItsSizeChanges) {
  constexpr Word kStay = 1000, kOthers = 20'000;
  TypeParam index;
  Word old_key = 0, old = 0;
  for (Word key = 0; key < kStay; ++key) index.put(key, key, old);
  for (const bool grows : {true, false}) {
    std::map<Word, unsigned> shown;
    const auto count = [](void* context, Word key, Word) {
      return ++(*static_cast<std::map<Word, unsigned>*>(context))[key] > 0;
    };
    Word next = kStay;
    for (std::uint64_t position = 0; (position = index.walk(position, &shown, count)) != 0;) {
      for (int i = 0; i < 40 && next < kStay + kOthers; ++i, ++next)
        grows ? index.put(next, next, old) : index.erase(next, old_key, old);
    }
    for (; next < kStay + kOthers; ++next)
      grows ? index.put(next, next, old) : index.erase(next, old_key, old);
    for (Word key = 0; key < kStay; ++key) EXPECT_EQ(shown[key], 1U) << key << ' ' << grows;
    for (const auto& [key, times] : shown) EXPECT_EQ(times, 1U) << key << ' ' << grows;
  }
  EXPECT_EQ(index.size(), kStay);
  free_nodes(index);
}

/// Whatever the machine has: there are at most as many workers as there must be at least.
TEST(ScalingTest, MayUseTheWorkersThatItMustHave) {
  EXPECT_EQ(max_workers({.min_workers = 2, .max_workers = 3}), 3U);
  EXPECT_EQ(max_workers({.min_workers = 256}), std::max(256U, std::thread::hardware_concurrency()));
  EXPECT_GE(max_workers({}), 1U);
}

TEST(ScalingTest, FollowsTheWriters) {
  Scaling scaling(1, 12);
  const auto busy = [&](double seconds) { scaling.adapt(200, 100, seconds); };
  const auto idle = [&] { scaling.adapt(10, 100, 1); };
  for (const unsigned expected : {2U, 3U, 4U, 8U, 12U}) {
    busy(expected == 4 ? 0.1 : 1);  // three workers are the fastest
    EXPECT_EQ(scaling.workers(), expected);
  }
  for (int i = 0; i < 3; ++i) {
    busy(1);
    EXPECT_EQ(scaling.workers(), 3U);
  }
  scaling.adapt(70, 100, 1);
  EXPECT_EQ(scaling.workers(), 3U) << "they keep up";
  for (const unsigned expected : {2U, 1U, 1U}) {
    idle();
    EXPECT_EQ(scaling.workers(), expected);
  }
  busy(1);
  EXPECT_EQ(scaling.workers(), 2U);
}

constexpr unsigned kChain = 5;
constexpr std::uint64_t kNoBudget = std::uint64_t{1} << 40;

TEST(CacheTest, KeepsWhatIsQueuedAndFewOfTheRest) {
  epoch::Reclaimer reclaimer(false);
  {
    Cache cache(reclaimer, {1, kChain, kNoBudget});
    std::vector<Entry*> queued;
    for (U64 i = 0; i < 40; ++i) {
      const std::string key = std::to_string(i);
      Entry* const entry = cache.make_entry(Operation::put, 0, key, "v").release();
      if (i % 2 == 0) entry->set(Entry::kQueued), queued.push_back(entry);
      cache.add(cache.bucket(0), *entry, nullptr);
    }
    const auto found = [&](U64 i) {
      return Cache::find(cache.bucket(0), 0, std::to_string(i)) != nullptr;
    };
    for (U64 i = 0; i < 40; i += 2) EXPECT_TRUE(found(i)) << i;
    EXPECT_FALSE(found(1));
    for (Entry* entry : queued) cache.dequeue(*entry);
    Entry* const last = cache.make_entry(Operation::put, 0, "last", "v").release();
    cache.add(cache.bucket(0), *last, nullptr);
    unsigned left = 0;
    for (U64 i = 0; i < 40; ++i) left += found(i) ? 1 : 0;
    EXPECT_EQ(left, kChain - 1);
  }
  reclaimer.drain();
}

TEST(CacheTest, KeepsItsBudgetOfWhatWasReplayed) {
  constexpr std::uint64_t kBudget = 4096;
  epoch::Reclaimer reclaimer(false);
  {
    Cache cache(reclaimer, {10, kChain, kBudget});
    const std::uint64_t empty = cache.dram_bytes();
    std::vector<Entry*> queued;
    for (U64 i = 0; i < 400; ++i) {
      const U64 hash = i << 54;  // a separate bucket
      Entry* const entry =
          cache.make_entry(Operation::put, hash, std::to_string(i), "value").release();
      if (i % 4 != 0) entry->set(Entry::kQueued), queued.push_back(entry);
      cache.add(cache.bucket(hash), *entry, nullptr);
    }
    cache.trim();
    const auto found = [&](U64 i) {
      return Cache::find(cache.bucket(i << 54), i << 54, std::to_string(i)) != nullptr;
    };
    for (U64 i = 0; i < 400; ++i) EXPECT_TRUE(i % 4 == 0 || found(i)) << i;
    EXPECT_TRUE(found(396)) << "the budget has room for some";
    for (Entry* entry : queued) cache.dequeue(*entry);
    EXPECT_GT(cache.dram_bytes(), empty + kBudget);
    cache.trim();
    EXPECT_LE(cache.dram_bytes(), empty + kBudget);
    EXPECT_GT(cache.dram_bytes(), empty + kBudget / 2) << "and no more than necessary goes";
  }
  reclaimer.drain();
}

TEST(CacheTest, FindsAKeyWhileItsEntryIsReplaced) {
  epoch::Reclaimer reclaimer;
  {
    Cache cache(reclaimer, {1, kChain, kNoBudget});
    Cache::Bucket& bucket = cache.bucket(0);
    const auto put = [&](std::string_view key) {
      const std::lock_guard lock(bucket.lock);
      cache.add(bucket, *cache.make_entry(Operation::put, 0, key, "v").release(),
                Cache::find(bucket, 0, key));
    };
    for (const std::string_view key : {"a", "b", "c"}) put(key);
    std::atomic<bool> done{false};
    std::thread writer([&] {
      for (int i = 0; i < 300'000; ++i) put(i % 2 == 0 ? "a" : "b");
      done = true;
    });
    U64 missed = 0;
    while (!done) {
      const epoch::Guard guard;
      missed += Cache::look_up(bucket, 0, "a") == nullptr ? 1 : 0;
    }
    writer.join();
    EXPECT_EQ(missed, 0U);
  }
  reclaimer.drain();
}

TEST(WorkersTest, EachTaskOfARoundIsDoneOnce) {
  Workers workers;
  std::array<std::atomic<unsigned>, 5> done{};
  for (unsigned round = 1; round <= 2000; ++round) {
    const unsigned count = 1 + round % done.size();
    for (auto& times : done) times = 0;
    workers.run(count, [&](unsigned i) { done[i].fetch_add(1); });
    for (unsigned i = 0; i < done.size(); ++i) ASSERT_EQ(done[i].load(), i < count ? 1U : 0U) << i;
  }
}

TEST(WorkersTest, TasksOfARoundRunAtOnce) {
  Workers workers;
  std::barrier all(3);
  workers.run(3, [&](unsigned) { all.arrive_and_wait(); });
}

}  // namespace
}  // namespace perdix::detail::index::tips
