// For each engine and kinds, each allocation of each call fails in turn: the first, the second, and
// so on. A call that throws Errc::no_memory has changed nothing, and a call that returns is
// complete. Threads of the pool postpone their work while their allocations fail. At the end the
// index must equal the model, and the pool must be valid.
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/perdix.h>

#include "engine_list.h"
#include "epoch/guard.h"
#include "epoch/reclaimer.h"
#include "memory/failing_memory.h"
#include "pm/test_files.h"
#include "pool/claim_image.h"
#include "support/engines.h"
#include "support/pool_options.h"
#include "util/random.h"
#include "util/test_directory.h"
#include "util/test_name.h"

namespace perdix::test {
namespace {

using Count = Failing::Count;
using Threads = Failing::Threads;
using testing_files::TempDirectory;

constexpr std::uint64_t kKeys = 700;

/// How the tests open an index: by Index, whose calls are those of the engine's class. Names and
/// values of options allocate: a call whose allocations fail gets options made before it.
IndexOptions options_of(const IndexType& type, bool resume = false) {
  IndexOptions options = detail::index::options_or_defaults(type.options);
  if (type.buffered()) options.named["dram_budget"] = "unlimited";
  options.resume_in_background = resume;
  return options;
}

IndexInfo info_of(const IndexType& type, std::string name) {
  return {std::move(name), type.engine, type.key_kind, type.value_kind};
}

std::unique_ptr<Index> open_index(const Pool& pool, const IndexType& type, bool resume = false) {
  return Index::open_or_create(pool, info_of(type, "index"), options_of(type, resume));
}

/// A key or value as Index takes it.
std::string datum(Kind kind, std::uint64_t number, std::uint64_t tag) {
  if (kind == Kind::u64) {
    const auto bytes = encode_u64(number * 0x9e3779b97f4a7c15ull + tag);
    return {bytes.begin(), bytes.end()};
  }
  // Longer than what a std::string holds in itself, and some longer than a leaf.
  std::string text = "a prefix of many keys " + std::to_string(1000000 + number * 7919 % 1000000);
  if (tag != 0) text += "." + std::to_string(tag);
  if (number % 23 == 5) text.append(600 + 100 * (tag % 5), 'z');
  return text;
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

using Model = std::map<std::string, std::string>;

class Allocation : public ::testing::TestWithParam<IndexType> {
 protected:
  /// Made once: what it allocates is not of the calls that are tested.
  static const PoolOptions& options() {
    static const PoolOptions all = [] {
      PoolOptions options = options_for_all_engines();
      options.durability = Durability::process;
      options.max_size = 256 << 20;
      return options;
    }();
    return all;
  }

  static std::string key(std::uint64_t number) { return datum(GetParam().key_kind, number, 0); }
  static std::string value(std::uint64_t number, std::uint64_t tag) {
    return datum(GetParam().value_kind, number, tag);
  }

  void create() {
    pool_.emplace(Pool::create(path_, options()));
    index_ = open_index(*pool_, GetParam());
  }
  void open(bool resume = false) {
    pool_.emplace(Pool::open(path_, options()));
    index_ = open_index(*pool_, GetParam(), resume);
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

  /// A file like that of the pool, whose process was killed. A thread that brings the index back
  /// may still write: it may get a processor late, and it tidies up when nothing waits for it.
  std::filesystem::path killed() {
    pool_->core()->background().drain();
    pool_->core()->reclaimer().drain();
    const auto path = directory_.file("killed.pool");
    testing_files::copy_at_one_moment(path_, path);
    detail::pool::claim_image(path);
    return path;
  }

  void expect_value(const std::string& key) const {
    const auto found = index_->get(key);
    const auto known = model_.find(key);
    ASSERT_EQ(found.has_value(), known != model_.end()) << "after a call that threw, or returned";
    if (!found) return;
    ASSERT_EQ(*found, known->second) << "after a call that threw, or returned";
  }

  static void expect_holds(const Index& index, const Model& model) {
    Model found;
    index.for_each([&](std::string_view key, std::string_view value) {
      found.emplace(key, value);
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
        const auto index = open_index(pool, GetParam());
        expect_holds(*index, model_);
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
    const std::string k = key(number);
    const std::string v = value(number, tag);
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
    for (std::uint64_t i = 0; i < kKeys && !HasFailure(); ++i)
      step(i, static_cast<unsigned>(random.below(2)));
    for (std::uint64_t i = 0; i < kKeys && !HasFailure(); ++i)
      step(random.below(kKeys), static_cast<unsigned>(random.below(4)));
    for (std::uint64_t i = 0; i + 50 < kKeys && !HasFailure(); ++i) step(i, 3);
  }

  /// FastFair, Cceh and SkipList in their usual shapes may need no memory for a write: they have
  /// little or nothing in DRAM, a segment splits once with these keys, and lists of what is to be
  /// freed mostly have room.
  static bool needs_memory() {
    const auto& [name, engine] = std::tie(GetParam().name, GetParam().engine);
    return name != engine || !(engine == "fastfair" || engine == "cceh" || engine == "skiplist");
  }

  /// Calls have met failing allocations.
  void expect_failures() const {
    if (needs_memory()) {
      EXPECT_GT(failures_, 0u);
    }
  }

  TempDirectory directory_{testing_files::memory_directory()};
  std::filesystem::path path_ = directory_.file("test.pool");
  std::optional<Pool> pool_;
  std::unique_ptr<Index> index_;
  Model model_;
  std::uint64_t failures_ = 0;
};

/// Of the library, in shapes that stay as they are.
std::vector<IndexType> tested_types() {
  std::vector<IndexType> types = few_index_types();
  std::erase_if(types, [](const IndexType& type) {
    return type.name.ends_with("+growing") ||
           detail::index::find_traits(type.engine, EngineList()) == nullptr;
  });
  return types;
}

INSTANTIATE_TEST_SUITE_P(All, Allocation, ::testing::ValuesIn(tested_types()),
                         [](const auto& type) {
                           return detail::util::test_name(type.param.name + "_" +
                                                          type.param.kinds());
                         });

TEST_P(Allocation, OfAWriteFails) {
  create();
  work(Count::once);
  expect_failures();
  expect_all_right();
}

TEST_P(Allocation, AllOfAWriteFail) {
  create();
  work(Count::onwards);
  expect_failures();
  expect_all_right();
}

// What an erase leaves to be joined, and has no memory for, later ones join. (Hash indexes join
// where a pool is full.)
TEST_P(Allocation, OfAJoinFails) {
  create();
  if (!index_->ordered()) GTEST_SKIP() << "joins nothing when it erases";
  for (std::uint64_t i = 0; i < 2 * kKeys; ++i) put(i, 1);
  for (std::uint64_t i = 0; i < 2 * kKeys; ++i) {
    const std::string k = key(i);
    const auto erase = [&] { EXPECT_TRUE(index_->erase(k)); };
    if (attempt(1, Count::onwards, erase).threw) erase();
  }
  for (std::uint64_t i = 0; i < 1000; ++i) {
    index_->put(key(i % 3), value(0, i));
    EXPECT_TRUE(index_->erase(key(i % 3)));
  }
  EXPECT_LE(index_->stats().leaves, 4u);  // NbTree has four regions, each with a leaf
  model_.clear();
  expect_all_right();
}

// Also right after the opening, when leaves come back by and by.
TEST_P(Allocation, OfAWriteFailsWhileTheIndexComesBack) {
  create();
  fill();
  for (std::uint64_t round = 0; round < 4 && !HasFailure(); ++round) {
    close();
    open(round % 2 != 0);
    detail::util::Random random(round);
    for (int i = 0; i < 60 && !HasFailure(); ++i)
      write(random.below(kKeys), static_cast<unsigned>(random.below(4)), 2 + round, 1,
            round < 2 ? Count::once : Count::onwards);
  }
  expect_all_right();
}

TEST_P(Allocation, OfAReadFails) {
  create();
  fill();
  close();
  for (const Count count : {Count::once, Count::onwards}) {
    open();
    const auto& index = *index_;
    const auto nothing = [](bool) {};
    std::vector<std::string> keys;
    for (std::uint64_t i = 0; i < 40; ++i) keys.push_back(key(i));
    const std::vector<std::string_view> views(keys.begin(), keys.end());
    fail_each(
        count, [&] { (void)index.contains(views[2]); }, nothing);
    std::string found;
    fail_each(
        count, [&] { (void)index.get(views[4], found); }, nothing);
    EXPECT_EQ(found, value(4, 1));
    std::vector<std::optional<std::string>> values(views.size());
    fail_each(
        count, [&] { index.get_many(views, values); }, nothing);
    for (std::uint64_t i = 0; i < 40; ++i) EXPECT_EQ(values[i].has_value(), i % 2 == 0);
    std::size_t shown = 0;
    const auto show = [&](std::string_view, std::string_view) { return ++shown, true; };
    const auto show_100 = [&](std::string_view, std::string_view) { return ++shown < 100; };
    fail_each(
        count, [&] { shown = 0, index.for_each(show); }, nothing);
    EXPECT_EQ(shown, model_.size());
    if (index.ordered()) {
      fail_each(
          count, [&] { shown = 0, index.scan({}, show_100); }, nothing);
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
    close();
  }
  open();
  expect_all_right();
}

// What a visitor throws is its caller's.
TEST_P(Allocation, OfAVisitorIsItsOwn) {
  create();
  fill();
  const auto& index = *index_;
  EXPECT_THROW(
      index.for_each([](std::string_view, std::string_view) -> bool { throw std::bad_alloc(); }),
      std::bad_alloc);
  EXPECT_THROW(index.for_each([](std::string_view, std::string_view) -> bool {
    throw std::length_error("mine");
  }),
               std::length_error);
  expect_all_right();
}

TEST_P(Allocation, OfAnOpeningFails) {
  create();
  fill();
  for (std::uint64_t i = 0; i < 60; ++i) {
    index_->erase(key(i));
    model_.erase(key(i));
  }
  const auto clean = path_, copy = killed();
  close();
  const IndexInfo info = info_of(GetParam(), "index");
  const IndexOptions wanted = options_of(GetParam());
  for (const auto& path : {clean, copy}) {
    for (const Count count : {Count::once, Count::onwards}) {
      std::optional<Pool> pool;
      fail_each(
          count,
          [&] {
            pool.reset();
            pool.emplace(Pool::open(path, options()));
          },
          [&](bool threw) {
            if (threw) pool.reset();
          });
      ASSERT_TRUE(pool);
      const auto expect_opens = [&](const auto& open_index) {
        std::unique_ptr<Index> index;
        fail_each(
            count,
            [&] {
              index.reset();
              index = open_index();
            },
            [](bool) {});
        ASSERT_TRUE(index);
        expect_holds(*index, model_);
      };
      expect_opens([&] { return Index::open_or_create(*pool, info, wanted); });
      expect_opens([&] { return Index::open(*pool, "index"); });
      EXPECT_TRUE(pool->check().ok());
    }
  }
  open();
  expect_all_right();
}

TEST_P(Allocation, OfACallOfThePoolFails) {
  create();
  fill();
  const std::string long_name(100, 'n');
  const IndexInfo info = info_of(GetParam(), long_name);
  const IndexOptions wanted = options_of(GetParam());
  for (const Count count : {Count::once, Count::onwards}) {
    const Pool& pool = *pool_;
    fail_each(
        count, [&] { (void)pool.info(); }, [](bool) {});
    fail_each(
        count, [&] { (void)pool.indexes(); }, [](bool) {});
    fail_each(
        count, [&] { (void)pool.huge_pages(); }, [](bool) {});
    fail_each(
        count, [] { (void)Index::engines(); }, [](bool) {});
    // An index that is new is not there if its creation fails.
    std::unique_ptr<Index> another;
    fail_each(
        count, [&] { another = Index::open_or_create(pool, info, wanted); },
        [&](bool threw) {
          EXPECT_EQ(pool.indexes().size(), threw ? 1u : 2u);
          another.reset();
          if (!threw) pool_->drop(long_name);
        });
    index_.reset();
    // To free what it has begun may take memory; then the next opening does it.
    EXPECT_TRUE(count == Count::onwards || pool.info().unfinished_drops.empty());
    close();
    pool_.emplace(Pool::open(path_, options()));
    EXPECT_TRUE(pool.info().unfinished_drops.empty());
    CheckReport report;
    fail_each(
        count, [&] { report = pool.check(); }, [](bool) {});
    EXPECT_TRUE(report.ok()) << report.problems[0];
    close();
    fail_each(
        count, [&] { report = Pool::verify(path_, options()); }, [](bool) {});
    EXPECT_TRUE(report.ok()) << report.problems[0];
    open();
  }
  expect_all_right();
}

// What it has not freed the next opening frees.
TEST_P(Allocation, OfADropFails) {
  create();
  fill();
  close();
  const auto filled = directory_.file("filled.pool");
  std::filesystem::rename(path_, filled);
  for (const Count count : {Count::once, Count::onwards}) {
    for (std::uint64_t n = 1, more = 1; more != 0; n += 1 + n / 8) {
      SCOPED_TRACE("allocation " + std::to_string(n));
      std::filesystem::copy_file(filled, path_);
      pool_.emplace(Pool::open(path_, options()));
      const Outcome outcome = attempt(n, count, [&] { pool_->drop("index"); });
      more = outcome.hit ? 1 : 0;
      EXPECT_EQ(pool_->indexes().size(), outcome.threw ? 1u : 0u);
      const bool freed = pool_->info().unfinished_drops.empty();
      EXPECT_EQ(pool_->check().ok(), freed);
      close();
      pool_.emplace(Pool::open(path_, options()));
      EXPECT_TRUE(pool_->info().unfinished_drops.empty());
      expect_sound_pool();
      EXPECT_EQ(pool_->check().blocks == 0, !outcome.threw);
      close();
      std::filesystem::remove(path_);
      if (HasFailure()) return;
    }
  }
}

// The pool is released in any case, and has everything.
TEST_P(Allocation, OfAClosingFails) {
  create();
  for (const Count count : {Count::once, Count::onwards}) {
    for (std::uint64_t n = 1, more = 1; more != 0; ++n) {
      SCOPED_TRACE("allocation " + std::to_string(n));
      for (std::uint64_t i = 0; i < 100; ++i) put(i * 7 % kKeys, n);
      const Outcome outcome = attempt(n, count, [&] {
        index_.reset();
        pool_->close();
      });
      more = outcome.hit ? 1 : 0;
      pool_.reset();
      open();
      expect_holds(*index_, model_);
      if (HasFailure()) return;
    }
  }
  expect_all_right();
}

// Threads of the pool and of the index: what they could not do they, or others, do later.
TEST_P(Allocation, OfOtherThreadsFail) {
  create();
  fill();
  for (std::uint64_t round = 0; round < 8 && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    close();
    const Count count = round % 2 == 0 ? Count::once : Count::onwards;
    {
      const FailingMemory failing(1 + round / 2, {Threads::others, count});
      open(true);
      detail::util::Random random(round);
      for (std::uint64_t i = 0; i < 1500; ++i) {
        const std::uint64_t number = random.below(kKeys);
        if (random.below(3) == 0) {
          index_->erase(key(number));
          model_.erase(key(number));
        } else {
          put(number, 10 + round);
        }
      }
      if (round >= 6) close();
    }
    if (round >= 6) open();
    for (std::uint64_t i = 0; i < 50; ++i) put(i, 20 + round);
    expect_holds(*index_, model_);
    index_.reset();
    expect_sound_pool();
    index_ = open_index(*pool_, GetParam());
  }
  expect_all_right();
}

// What is retired while nothing can be allocated is disposed of, and not before its readers end.
class AllocationOfAReclaimer : public ::testing::Test {
 protected:
  using Reclaimer = detail::epoch::Reclaimer;

  struct Object : detail::epoch::Retirable {
    explicit Object(std::uint64_t& count) : disposed(count) {}
    ~Object() { ++disposed; }
    std::uint64_t& disposed;
  };

  template <class Retire>
  void expect_disposes_of(std::uint64_t objects, const Retire& retire) {
    std::vector<Object*> all;
    for (std::uint64_t i = 0; i < objects; ++i) all.push_back(new Object(disposed_));
    {
      const detail::epoch::Guard guard;
      const FailingMemory failing(1, {Threads::caller, Count::onwards});
      for (Object* object : all) retire(object);
      EXPECT_FALSE(reclaimer_.drain());
    }
    EXPECT_EQ(reclaimer_.pending(), objects);
    EXPECT_EQ(disposed_, 0u);
    EXPECT_TRUE(reclaimer_.drain());
    EXPECT_EQ(disposed_, objects);
    EXPECT_EQ(reclaimer_.pending(), 0u);
  }

  Reclaimer reclaimer_{false};
  std::uint64_t disposed_ = 0;
};

TEST_F(AllocationOfAReclaimer, LosesNothingThatHasAPlace) {
  expect_disposes_of(100'000, [&](Object* object) { reclaimer_.retire(object); });
}

// The list of one stripe has room for 32.
TEST_F(AllocationOfAReclaimer, UsesTheRoomOfAllStripes) {
  expect_disposes_of(2000, [&](Object* object) {
    const auto dispose = [](void* retired, void*) { delete static_cast<Object*>(retired); };
    reclaimer_.retire(object, dispose, nullptr);
  });
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
