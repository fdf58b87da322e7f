// Each allocation of each call fails in turn, for each engine and kinds: the first, the second,
// and so on until the call needs no more. A call that throws Errc::no_memory has changed nothing,
// and one that returns has done all. So has what threads of the pool do: while their allocations
// fail they leave it for later. Then the index holds what the model holds, and the pool is sound.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <perdix/perdix.h>

#include "engine_list.h"
#include "memory/failing_memory.h"
#include "pool/claim_image.h"
#include "util/random.h"
#include "util/test_directory.h"

namespace perdix::test {
namespace {

using Count = Failing::Count;
using Threads = Failing::Threads;
using testing_files::TempDirectory;

using U64 = std::uint64_t;
using Bytes = std::string;

constexpr std::uint64_t kBuffers = IndexOptions::kUnlimited;
constexpr std::uint64_t kKeys = 700;

enum class Way { usual, buffers, small };

template <class EngineTraits, class KeyType, class ValueType, Way way = Way::usual>
struct Type {
  using K = KeyType;
  using V = ValueType;
  using Index = typename EngineTraits::template Index<K, V>;
  static constexpr Way kWay = way;

  static std::string name() {
    const auto kinds =
        std::string(to_string(kKindOf<K>)) + "_" + std::string(to_string(kKindOf<V>));
    static constexpr std::array kWays = {"_", "_buffered_", "_small_"};
    return std::string(EngineTraits::kTraits.engine) + kWays[static_cast<std::size_t>(way)] + kinds;
  }

  static Index open(const Pool& pool, std::string_view name = "index", bool resume = false) {
    IndexOptions options;
    if (way == Way::buffers) options.dram_budget = kBuffers;
    if constexpr (way == Way::small) options = *EngineTraits::kTraits.small;
    options.resume_in_background = resume;
    if constexpr (std::is_constructible_v<Index, const Pool&, std::string_view, IndexOptions>)
      return Index(pool, name, options);
    else
      return Index(pool, name);
  }
};

template <class T>
T datum(std::uint64_t number, std::uint64_t tag) {
  if constexpr (std::is_same_v<T, std::uint64_t>) {
    return number * 0x9e3779b97f4a7c15ull + tag;
  } else {
    // Longer than what a std::string holds in itself, and some longer than a leaf.
    std::string text = "a prefix of many keys " + std::to_string(1000000 + number * 7919 % 1000000);
    if (tag != 0) text += "." + std::to_string(tag);
    if (number % 23 == 5) text.append(600 + 100 * (tag % 5), 'z');
    return text;
  }
}

/// What a call did while an allocation failed.
struct Outcome {
  bool hit;    ///< an allocation failed
  bool threw;  ///< no_memory
};

template <class Call>
Outcome attempt(std::uint64_t n, Count count, const Call& call) {
  const FailingMemory failing(n, {Threads::caller, count});
  try {
    call();
    FailingMemory::stop();
    return {FailingMemory::hit(), false};
  } catch (const Error& error) {
    FailingMemory::stop();
    EXPECT_EQ(to_string(error.code()), "no_memory") << error.what();
    return {FailingMemory::hit(), true};
  }
}

/// Calls until no allocation fails any more, which then may not throw; after each failure
/// after(threw). Returns the number of failures.
template <class Call, class After>
std::uint64_t fail_each(Count count, const Call& call, const After& after) {
  for (std::uint64_t n = 1;; n += 1 + n / 24) {
    SCOPED_TRACE("allocation " + std::to_string(n));
    const Outcome outcome = attempt(n, count, call);
    EXPECT_TRUE(outcome.hit || !outcome.threw);
    after(outcome.threw);
    if (!outcome.hit || testing::Test::HasFailure()) return n - 1;
  }
}

template <class Index>
constexpr bool kOrdered = requires(const Index& index, typename Index::Key key) {
  index.scan(key, std::size_t{1});
};

template <class T>
class Allocation : public ::testing::Test {
 protected:
  using K = typename T::K;
  using V = typename T::V;
  using Index = typename T::Index;

  static PoolOptions options() {
    PoolOptions options;
    options.durability = Durability::process;
    options.max_size = 256 << 20;
    return options;
  }

  static K key(std::uint64_t number) { return datum<K>(number, 0); }
  static V value(std::uint64_t number, std::uint64_t tag) { return datum<V>(number, tag); }

  void create() {
    pool_.emplace(Pool::create(path_, options()));
    index_ = T::open(*pool_);
  }
  void open(bool resume = false) {
    pool_.emplace(Pool::open(path_, options()));
    index_ = T::open(*pool_, "index", resume);
  }
  void close() {
    index_.reset();
    pool_.reset();
  }

  void put(std::uint64_t number, std::uint64_t tag) {
    index_->put(key(number), value(number, tag));
    model_[key(number)] = value(number, tag);
  }
  void fill() {
    for (std::uint64_t i = 0; i < kKeys; i += 2) put(i, 1);
  }

  /// A file like that of the pool, whose process was killed. Nothing is written while it is copied,
  /// or it were of no one moment.
  std::filesystem::path killed() {
    pool_->core()->background().drain();
    pool_->core()->reclaimer().drain();
    const auto path = directory_.file("killed.pool");
    std::filesystem::copy_file(path_, path, std::filesystem::copy_options::overwrite_existing);
    detail::pool::claim_image(path);
    return path;
  }

  void expect_value(const K& key) const {
    const auto found = index_->get(key);
    const auto known = model_.find(key);
    ASSERT_EQ(found.has_value(), known != model_.end()) << "after a call that threw, or returned";
    if (!found) return;
    ASSERT_EQ(*found, known->second) << "after a call that threw, or returned";
  }

  static void expect_holds(const Index& index, const std::map<K, V>& model) {
    std::map<K, V> found;
    index.for_each([&](View<K> key, View<V> value) {
      found.emplace(K(key), V(value));
      return true;
    });
    EXPECT_TRUE(found == model) << found.size() << " pairs, not " << model.size();
    EXPECT_EQ(index.size(), model.size());
    const CheckReport report = index.check();
    EXPECT_TRUE(report.ok()) << (report.ok() ? "" : report.problems[0]);
  }

  void expect_sound_pool() const {
    const CheckReport report = pool_->check();
    EXPECT_TRUE(report.ok()) << (report.ok() ? "" : report.problems[0]);
  }

  /// In this process, after closing, and after a kill.
  void expect_all_right() {
    expect_holds(*index_, model_);
    const auto copy = killed();
    index_.reset();
    expect_sound_pool();
    close();  // both may want the same addresses
    {
      Pool pool = Pool::open(copy, options());
      {
        const auto index = T::open(pool);
        expect_holds(index, model_);
      }
      EXPECT_TRUE(pool.check().ok());
    }
    open();
    expect_holds(*index_, model_);
    index_.reset();
    expect_sound_pool();
    close();
  }

  /// One write, with the n-th allocation failing for n = first, first + 1, ... until it returns.
  void write(std::uint64_t number, unsigned which, std::uint64_t tag, std::uint64_t first,
             Count count) {
    const K k = key(number);
    const V v = value(number, tag);
    const bool there = model_.contains(k);
    bool done = true;
    for (std::uint64_t n = first;; ++n) {
      const Outcome outcome = attempt(n, count, [&] {
        switch (which) {
          case 0: index_->put(k, v); break;
          case 1: done = index_->insert(k, v); break;
          case 2: done = index_->update(k, v); break;
          default: done = index_->erase(k); break;
        }
      });
      ASSERT_TRUE(outcome.hit || !outcome.threw);
      if (outcome.hit) ++failures_;
      if (!outcome.threw) break;
      ASSERT_NO_FATAL_FAILURE(expect_value(k));
    }
    ASSERT_EQ(done, which == 0 || there == (which != 1));
    if (which == 3) {
      model_.erase(k);
    } else if (done) {
      model_[k] = v;
    }
    ASSERT_NO_FATAL_FAILURE(expect_value(k));
  }

  /// Fills the index, churns and empties it.
  void work(Count count) {
    detail::util::Random random(1);
    const auto step = [&](std::uint64_t number, unsigned which) {
      SCOPED_TRACE("key " + std::to_string(number) + ", call " + std::to_string(which));
      write(number, which, 2 + random.below(5), 1 + random.below(3), count);
    };
    for (std::uint64_t i = 0; i < kKeys && !this->HasFailure(); ++i)
      step(i, static_cast<unsigned>(random.below(2)));
    for (std::uint64_t i = 0; i < kKeys && !this->HasFailure(); ++i)
      step(random.below(kKeys), static_cast<unsigned>(random.below(4)));
    for (std::uint64_t i = 0; i + 50 < kKeys && !this->HasFailure(); ++i) step(i, 3);
  }

  /// FastFair has nothing in DRAM, so its writes may need no memory. Nor may those of Cceh with
  /// numbers, but for a split, and its usual segments split once with these keys.
  static constexpr bool kNeedsMemory =
      !std::is_same_v<Index, FastFair<K, V>> &&
      !(std::is_same_v<Index, Cceh<U64, U64>> && T::kWay == Way::usual);

  /// Calls have met failing allocations.
  void expect_failures() const {
    if constexpr (kNeedsMemory) {
      EXPECT_GT(failures_, 0u);
    }
  }

  TempDirectory directory_{testing_files::memory_directory()};
  std::filesystem::path path_ = directory_.file("test.pool");
  std::optional<Pool> pool_;
  std::optional<Index> index_;
  std::map<K, V> model_;
  std::uint64_t failures_ = 0;
};

template <class EngineTraits, Way way = Way::usual>
using AllKinds =
    std::tuple<Type<EngineTraits, U64, U64, way>, Type<EngineTraits, U64, Bytes, way>,
               Type<EngineTraits, Bytes, U64, way>, Type<EngineTraits, Bytes, Bytes, way>>;

/// Most indexes of Tips have no mixed kinds here: these are the framework's, which is the same.
template <class EngineTraits>
constexpr bool kHasMixedKinds =
    !EngineTraits::kTraits.engine.starts_with("tips:") ||
    EngineTraits::kTraits.engine == "tips:hash" || EngineTraits::kTraits.engine == "tips:btree";

template <class EngineTraits>
using Kinds =
    std::conditional_t<kHasMixedKinds<EngineTraits>, AllKinds<EngineTraits>,
                       std::tuple<Type<EngineTraits, U64, U64>, Type<EngineTraits, Bytes, Bytes>>>;

/// All engines; SpTree with write buffers, too, and ElimDa and CCEH in shapes for few keys.
template <class... EngineTraits>
auto types_of(const std::tuple<EngineTraits...>*) {
  const auto as_types = []<class... T>(const std::tuple<T...>&) { return testing::Types<T...>(); };
  return as_types(std::tuple_cat(Kinds<EngineTraits>()...,
                                 AllKinds<detail::index::sptree::TestTraits, Way::buffers>(),
                                 AllKinds<detail::index::elimda::TestTraits, Way::small>(),
                                 AllKinds<detail::index::cceh::TestTraits, Way::small>()));
}
using Types = decltype(types_of(static_cast<const EngineList*>(nullptr)));

struct Names {
  template <class T>
  static std::string GetName(int) {
    return T::name();
  }
};

TYPED_TEST_SUITE(Allocation, Types, Names);

TYPED_TEST(Allocation, OfAWriteFails) {
  this->create();
  this->work(Count::once);
  this->expect_failures();
  this->expect_all_right();
}

TYPED_TEST(Allocation, AllOfAWriteFail) {
  this->create();
  this->work(Count::onwards);
  this->expect_failures();
  this->expect_all_right();
}

// What an erase leaves to be joined, and has no memory for, later ones join. (Hash indexes join
// where a pool is full.)
TYPED_TEST(Allocation, OfAJoinFails) {
  if (!kOrdered<typename TypeParam::Index>) GTEST_SKIP() << "joins nothing when it erases";
  this->create();
  for (std::uint64_t i = 0; i < 2 * kKeys; ++i) this->put(i, 1);
  for (std::uint64_t i = 0; i < 2 * kKeys; ++i) {
    const auto key = this->key(i);
    const auto erase = [&] { EXPECT_TRUE(this->index_->erase(key)); };
    if (attempt(1, Count::onwards, erase).threw) erase();
  }
  for (std::uint64_t i = 0; i < 1000; ++i) {
    this->index_->put(this->key(i % 3), this->value(0, i));
    EXPECT_TRUE(this->index_->erase(this->key(i % 3)));
  }
  EXPECT_LE(this->index_->stats().leaves, 4u);  // NbTree has four regions, each with a leaf
  this->model_.clear();
  this->expect_all_right();
}

// Also right after the opening, when leaves come back by and by.
TYPED_TEST(Allocation, OfAWriteFailsWhileTheIndexComesBack) {
  this->create();
  this->fill();
  for (std::uint64_t round = 0; round < 4 && !this->HasFailure(); ++round) {
    this->close();
    this->open(round % 2 != 0);
    detail::util::Random random(round);
    for (int i = 0; i < 60 && !this->HasFailure(); ++i)
      this->write(random.below(kKeys), static_cast<unsigned>(random.below(4)), 2 + round, 1,
                  round < 2 ? Count::once : Count::onwards);
  }
  this->expect_all_right();
}

TYPED_TEST(Allocation, OfAReadFails) {
  using Key = typename TypeParam::K;
  using Value = typename TypeParam::V;
  this->create();
  this->fill();
  this->close();
  for (const Count count : {Count::once, Count::onwards}) {
    this->open();
    const auto& index = *this->index_;
    const auto nothing = [](bool) {};
    std::vector<Key> keys;
    for (std::uint64_t i = 0; i < 40; ++i) keys.push_back(this->key(i));
    const std::vector<View<Key>> views(keys.begin(), keys.end());
    fail_each(
        count, [&] { (void)index.contains(views[2]); }, nothing);
    Value value{};
    fail_each(
        count, [&] { (void)index.get(views[4], value); }, nothing);
    EXPECT_EQ(value, this->value(4, 1));
    std::vector<std::optional<Value>> values(views.size());
    fail_each(
        count, [&] { index.get_many(views, values); }, nothing);
    for (std::uint64_t i = 0; i < 40; ++i) EXPECT_EQ(values[i].has_value(), i % 2 == 0);
    std::size_t shown = 0;
    const auto show = [&](View<Key>, View<Value>) { return ++shown, true; };
    fail_each(
        count, [&] { shown = 0, index.for_each(show); }, nothing);
    EXPECT_EQ(shown, this->model_.size());
    if constexpr (kOrdered<typename TypeParam::Index>) {
      fail_each(
          count, [&] { shown = index.scan(Key{}, 100).size(); }, nothing);
      EXPECT_EQ(shown, 100u);
    }
    fail_each(
        count, [&] { (void)index.size(); }, nothing);
    fail_each(
        count, [&] { (void)index.stats(); }, nothing);
    CheckReport report;
    fail_each(
        count, [&] { report = index.check(); }, nothing);
    EXPECT_TRUE(report.ok()) << report.problems[0];
    this->close();
  }
  this->open();
  this->expect_all_right();
}

// What a visitor throws is its caller's.
TYPED_TEST(Allocation, OfAVisitorIsItsOwn) {
  using Key = typename TypeParam::K;
  using Value = typename TypeParam::V;
  this->create();
  this->fill();
  const auto& index = *this->index_;
  EXPECT_THROW(index.for_each([](View<Key>, View<Value>) -> bool { throw std::bad_alloc(); }),
               std::bad_alloc);
  EXPECT_THROW(
      index.for_each([](View<Key>, View<Value>) -> bool { throw std::length_error("mine"); }),
      std::length_error);
  this->expect_all_right();
}

TYPED_TEST(Allocation, OfAnOpeningFails) {
  this->create();
  this->fill();
  for (std::uint64_t i = 0; i < 60; ++i) {
    this->index_->erase(this->key(i));
    this->model_.erase(this->key(i));
  }
  const auto clean = this->path_, copy = this->killed();
  this->close();
  for (const auto& path : {clean, copy}) {
    for (const Count count : {Count::once, Count::onwards}) {
      std::optional<Pool> pool;
      fail_each(
          count,
          [&] {
            pool.reset();
            pool.emplace(Pool::open(path, this->options()));
          },
          [&](bool threw) {
            if (threw) pool.reset();
          });
      ASSERT_TRUE(pool);
      std::optional<typename TypeParam::Index> index;
      fail_each(
          count,
          [&] {
            index.reset();
            index = TypeParam::open(*pool);
          },
          [](bool) {});
      ASSERT_TRUE(index);
      this->expect_holds(*index, this->model_);
      std::unique_ptr<Index> facade;
      index.reset();
      fail_each(
          count,
          [&] {
            facade.reset();
            facade = Index::open(*pool, "index");
          },
          [](bool) {});
      ASSERT_TRUE(facade);
      EXPECT_EQ(facade->size(), this->model_.size());
      facade.reset();
      EXPECT_TRUE(pool->check().ok());
    }
  }
  this->open();
  this->expect_all_right();
}

TYPED_TEST(Allocation, OfACallOfThePoolFails) {
  this->create();
  this->fill();
  const std::string long_name(100, 'n');
  for (const Count count : {Count::once, Count::onwards}) {
    const Pool& pool = *this->pool_;
    fail_each(
        count, [&] { (void)pool.info(); }, [](bool) {});
    fail_each(
        count, [&] { (void)pool.indexes(); }, [](bool) {});
    fail_each(
        count, [&] { (void)pool.huge_pages(); }, [](bool) {});
    fail_each(
        count, [] { (void)Index::engines(); }, [](bool) {});
    // An index that is new is not there if its creation fails.
    std::optional<typename TypeParam::Index> another;
    fail_each(
        count, [&] { another = TypeParam::open(pool, long_name); },
        [&](bool threw) {
          EXPECT_EQ(pool.indexes().size(), threw ? 1u : 2u);
          another.reset();
          if (!threw) this->pool_->drop(long_name);
        });
    this->index_.reset();
    // To free what it has begun may take memory; then the next opening does it.
    EXPECT_TRUE(count == Count::onwards || pool.info().unfinished_drops.empty());
    this->close();
    this->pool_.emplace(Pool::open(this->path_, this->options()));
    EXPECT_TRUE(pool.info().unfinished_drops.empty());
    CheckReport report;
    fail_each(
        count, [&] { report = pool.check(); }, [](bool) {});
    EXPECT_TRUE(report.ok()) << report.problems[0];
    this->close();
    fail_each(
        count, [&] { report = Pool::verify(this->path_, this->options()); }, [](bool) {});
    EXPECT_TRUE(report.ok()) << report.problems[0];
    this->open();
  }
  this->expect_all_right();
}

// What it has not freed the next opening frees.
TYPED_TEST(Allocation, OfADropFails) {
  for (const Count count : {Count::once, Count::onwards}) {
    for (std::uint64_t n = 1, more = 1; more != 0; n += 1 + n / 8) {
      SCOPED_TRACE("allocation " + std::to_string(n));
      this->create();
      this->fill();
      this->index_.reset();
      const Outcome outcome = attempt(n, count, [&] { this->pool_->drop("index"); });
      more = outcome.hit ? 1 : 0;
      EXPECT_EQ(this->pool_->indexes().size(), outcome.threw ? 1u : 0u);
      const bool freed = this->pool_->info().unfinished_drops.empty();
      EXPECT_EQ(this->pool_->check().ok(), freed);
      this->close();
      this->pool_.emplace(Pool::open(this->path_, this->options()));
      EXPECT_TRUE(this->pool_->info().unfinished_drops.empty());
      this->expect_sound_pool();
      EXPECT_EQ(this->pool_->check().blocks == 0, !outcome.threw);
      this->close();
      std::filesystem::remove(this->path_);
      if (this->HasFailure()) return;
    }
  }
}

// The pool is released in any case, and has everything.
TYPED_TEST(Allocation, OfAClosingFails) {
  this->create();
  for (const Count count : {Count::once, Count::onwards}) {
    for (std::uint64_t n = 1, more = 1; more != 0; ++n) {
      SCOPED_TRACE("allocation " + std::to_string(n));
      for (std::uint64_t i = 0; i < 100; ++i) this->put(i * 7 % kKeys, n);
      const Outcome outcome = attempt(n, count, [&] {
        this->index_.reset();
        this->pool_->close();
      });
      more = outcome.hit ? 1 : 0;
      this->pool_.reset();
      this->open();
      this->expect_holds(*this->index_, this->model_);
      if (this->HasFailure()) return;
    }
  }
  this->expect_all_right();
}

// Threads of the pool and of the index: what they could not do they, or others, do later.
TYPED_TEST(Allocation, OfOtherThreadsFail) {
  this->create();
  this->fill();
  for (std::uint64_t round = 0; round < 8 && !this->HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    this->close();
    const Count count = round % 2 == 0 ? Count::once : Count::onwards;
    {
      const FailingMemory failing(1 + round / 2, {Threads::others, count});
      this->open(true);
      detail::util::Random random(round);
      for (std::uint64_t i = 0; i < 1500; ++i) {
        const std::uint64_t number = random.below(kKeys);
        if (random.below(3) == 0) {
          this->index_->erase(this->key(number));
          this->model_.erase(this->key(number));
        } else {
          this->put(number, 10 + round);
        }
      }
      if (round >= 6) this->close();
    }
    if (round >= 6) this->open();
    for (std::uint64_t i = 0; i < 50; ++i) this->put(i, 20 + round);
    this->expect_holds(*this->index_, this->model_);
    this->index_.reset();
    this->expect_sound_pool();
    this->index_ = TypeParam::open(*this->pool_);
  }
  this->expect_all_right();
}

TEST(AllocationOfAPool, OfACreationFails) {
  const TempDirectory directory(testing_files::memory_directory());
  const auto path = directory.file("new.pool");
  for (const Count count : {Count::once, Count::onwards}) {
    fail_each(
        count, [&] { (void)Pool::create(path, PoolOptions{}); },
        [&](bool threw) {
          EXPECT_EQ(std::filesystem::exists(path), !threw);
          std::filesystem::remove(path);
        });
    fail_each(
        count, [&] { (void)Pool::open_or_create(path, PoolOptions{}); },
        [&](bool threw) {
          EXPECT_EQ(std::filesystem::exists(path), !threw);
          std::filesystem::remove(path);
        });
  }
}

}  // namespace
}  // namespace perdix::test
