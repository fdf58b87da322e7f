// Each part of an index by itself, on layers of a small shape.
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/pool.h>

#include "epoch/guard.h"
#include "index/elimda/check.h"
#include "index/elimda/for_each.h"
#include "index/elimda/recovery.h"
#include "index/elimda/test_map.h"
#include "util/test_directory.h"

namespace perdix::detail::index::elimda {
namespace {

using Number = std::uint64_t;

/// What an index of numbers consists of.
struct Parts {
  pool::IndexHandle handle;
  Store<Number> store;
  KeyCount count;
  PairChanges<Number> changes{store, count};
  Segmentation<Number> segmentation{store, changes};
  Relocator<Number> relocator{store, segmentation};
  Flusher<Number> flusher{store, relocator};
  MoreLogs<Number> more_logs{store};
  DirectUnits direct;
  epoch::DrainFirst drain_first{store.pool.reclaimer()};

  Parts(const Pool& pool, const Shape& shape, bool straight = false)
      : handle(pool.core()->open_index("t", kEngineName, Kind::u64, Kind::u64)),
        store(*pool.core(), open_root(*pool.core(), handle.root(), shape), Kind::u64, 16,
              straight) {
    Recovery<Number>(store, flusher).run();
  }

  KeyHash hash_of(Number key) const { return store.words.hash_of(key); }
  Found find(Number key) const {
    const epoch::Guard guard;
    return store.find(key, hash_of(key));
  }

  /// Appends to the log of a key, which has room.
  void append(Number key, Number value) {
    const CollectingLog log = store.logs.set()->log_of(hash_of(key));
    LogLine& line = log.line();
    log.pairs()[line.count] = {key, value};
    auto head = LogWord::unpack(log.word());
    log.word() = LogWord{++head.count, head.number}.pack();
    line.set_print(line.count, LogLine::print_of(hash_of(key).signature()));
    line.count = head.count;
  }
  /// Moves the pairs of a key's log to the DRAM table.
  void flush(Number key) {
    const epoch::Guard guard;
    const CollectingLog log = store.logs.set()->log_of(hash_of(key));
    std::optional<Flush> flush;
    std::unique_lock lock(log.line().lock);
    ASSERT_TRUE(flusher.begin(flush, lock, log));
    lock.unlock();
    if (flush) flusher.finish(*flush);
  }
  void add(Number key, Number value) {
    append(key, value);
    flush(key);
  }
  /// Keys of the first bucket of the first segment at any depth, and of the first log.
  std::vector<Number> keys_of_one_bucket(std::size_t wanted) const {
    std::vector<Number> keys;
    for (Number key = 0; keys.size() < wanted; ++key) {
      if (hash_of(key).prefix(8) == 0 && hash_of(key).bucket(store.shape.buckets) == 0)
        keys.push_back(key);
    }
    return keys;
  }
  std::vector<std::string> problems() {
    store.cold.require_warm();
    const epoch::Guard guard;
    Inspection<Number> inspection(store);
    inspection.run();
    return inspection.report().problems;
  }
};

class ElimDaParts : public testing::Test {
 protected:
  static Shape shape(Shape shape) {
    shape.seed = kTestSeed;
    return shape;
  }
  static PoolOptions options() {
    PoolOptions options;
    options.max_size = std::uint64_t{256} << 20;
    return options;
  }

  const testing_files::TempDirectory folder_;
  const Pool pool_ = Pool::create(folder_.path() / "pool", options());
};

TEST_F(ElimDaParts, WordsHaveTheSignatureOfTheirKey) {
  const Words<Number> numbers(*pool_.core(), kTestSeed, Kind::u64);
  EXPECT_EQ(numbers.signature_of(5), numbers.hash_of(5).signature());
  EXPECT_TRUE(numbers.all_inline());
  const Words<std::string> strings(*pool_.core(), kTestSeed, Kind::u64);
  EXPECT_FALSE(strings.all_inline());
  alloc::Session session = pool_.core()->allocator().session();
  for (const std::string key : {"", "a", "string"}) {
    const KeyHash hash = strings.hash_of(key);
    const Word word = strings.keys().write(session, key, hash.signature());
    EXPECT_EQ(strings.signature_of(word), hash.signature()) << key;
    EXPECT_TRUE(strings.is_key(word, key, hash)) << key;
    EXPECT_EQ(strings.blobs({word, 0}), key.empty() ? 0u : 1u) << key;
  }
}

TEST(ElimDaKeyCount, CountsOnlyWhatItDoesNotKnow) {
  KeyCount count;
  unsigned counted = 0;
  const auto keys = [&] {
    return count.keys([&] { return ++counted, Number{10}; }, [] { return true; });
  };
  EXPECT_EQ(keys(), 10u);
  EXPECT_TRUE(count.known());
  count.added();
  count.added();
  count.removed();
  EXPECT_EQ(keys(), 11u);
  EXPECT_EQ(counted, 1u);
  count.forget();
  EXPECT_FALSE(count.known());
  EXPECT_EQ(keys(), 10u);
  EXPECT_EQ(counted, 2u);
}

TEST(ElimDaKeyCount, IsNotKnownWhereAWriterWasActive) {
  KeyCount count;
  const auto quiet = [] { return true; };
  EXPECT_EQ(count.keys([] { return Number{1}; }, [] { return false; }), 1u);
  EXPECT_FALSE(count.known());
  EXPECT_EQ(count.keys([&] { return count.added(), Number{2}; }, quiet), 2u);
  EXPECT_FALSE(count.known());
  EXPECT_EQ(count.keys([&] { return count.removed(), Number{1}; }, quiet), 1u);
  EXPECT_FALSE(count.known());
  EXPECT_EQ(count.keys([&] { return count.forget(), Number{2}; }, quiet), 2u);
  EXPECT_FALSE(count.known());
  EXPECT_EQ(count.keys([] { return Number{2}; }, quiet), 2u);
  EXPECT_TRUE(count.known());
}

/// A write is seen, but not counted, as long as its thread holds the lock of the log or bucket.
TEST_F(ElimDaParts, IsQuietWhereNoLockIsHeld) {
  for (const bool straight : {false, true}) {
    const Pool pool = Pool::create(folder_.path() / (straight ? "straight" : "logs"), options());
    Parts parts(pool, shape(kSmall), straight);
    const epoch::Guard guard;
    (void)parts.find(1);  // warm
    EXPECT_TRUE(parts.store.quiet());
    {
      std::unique_lock<util::SpinLock> lock;
      const auto log = parts.store.lock_log(lock, parts.hash_of(1));
      EXPECT_EQ(log.has_value(), !straight);
      EXPECT_EQ(parts.store.quiet(), straight);
    }
    {
      const Locked locked = parts.store.lock_bucket(parts.hash_of(1));
      EXPECT_EQ(parts.store.quiet(), !straight) << "keys come and go under the lock of a log";
    }
    EXPECT_TRUE(parts.store.quiet());
  }
}

TEST_F(ElimDaParts, DirectUnitsAreFilledFromTheirFirstPlaceOn) {
  Parts parts(pool_, shape(kSmall));
  BackupLog& log = parts.store.backup;
  DirectUnits direct;
  const auto reserve = [&] {
    return direct.reserve(parts.store.pm(), parts.store.shape, log, {0}, 0);
  };
  const BackupRef first = reserve();
  for (unsigned i = 1; i < kSmall.unit_pairs; ++i) EXPECT_EQ(reserve(), first + i);
  const BackupRef other = reserve();
  EXPECT_NE(other / kSmall.unit_pairs, first / kSmall.unit_pairs);
  EXPECT_EQ(UnitWord::unpack(log.word(first)).log, UnitWord::kNoLog);
  EXPECT_EQ(UnitWord::unpack(log.word(first)).number, 1u);
  EXPECT_EQ(log.used_units(), 2u);
  for (unsigned i = 0; i < kSmall.unit_pairs; ++i) log.forget(first + i);
  EXPECT_EQ(log.used_units(), 1u);
  for (unsigned i = 1; i < kSmall.unit_pairs; ++i) reserve();
  EXPECT_EQ(reserve(), first) << "a unit is used again";
  EXPECT_EQ(UnitWord::unpack(log.word(first)).number, 2u) << "as no earlier use of it";
}

TEST_F(ElimDaParts, PairsMoveFromLayerToLayer) {
  Parts parts(pool_, shape(kSmall));
  const auto keys = parts.keys_of_one_bucket(kSmall.d_pairs + 1);
  parts.append(keys[0], 1);
  EXPECT_EQ(parts.find(keys[0]).where, Where::log);
  parts.flush(keys[0]);
  EXPECT_EQ(parts.find(keys[0]).where, Where::d_bucket);
  for (std::size_t i = 1; i < keys.size(); ++i) parts.add(keys[i], i + 1);
  EXPECT_EQ(parts.find(keys[0]).where, Where::p_bucket);
  EXPECT_EQ(parts.relocator.relocations(), 1u);
  EXPECT_EQ(parts.find(keys.back()).where, Where::d_bucket);
  for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(parts.find(keys[i]).value, i + 1);
  EXPECT_FALSE(parts.find(1'000'000));
  EXPECT_EQ(parts.problems(), std::vector<std::string>());
}

TEST_F(ElimDaParts, ChangesReachEveryLayer) {
  Parts parts(pool_, shape(kSmall));
  const auto keys = parts.keys_of_one_bucket(kSmall.d_pairs + 2);
  for (std::size_t i = 0; i + 1 < keys.size(); ++i) parts.add(keys[i], 1);
  parts.append(keys.back(), 1);
  std::set<Where> places;
  const epoch::Guard guard;
  for (const Number key : keys) {
    places.insert(parts.find(key).where);
    const KeyHash hash = parts.hash_of(key);
    const NewValue one(Number{1}), two(Number{2});
    EXPECT_EQ(parts.changes.replace(key, hash, two, &two), Replaced::differs);
    EXPECT_EQ(parts.changes.replace(key, hash, two, &one), Replaced::yes);
    EXPECT_EQ(parts.find(key).value, 2u);
    EXPECT_FALSE(parts.changes.erase(key, hash, &one));
    EXPECT_TRUE(parts.changes.erase(key, hash, &two));
    EXPECT_FALSE(parts.find(key));
    EXPECT_FALSE(parts.changes.erase(key, hash, nullptr));
    EXPECT_EQ(parts.changes.replace(key, hash, two, nullptr), Replaced::absent);
  }
  EXPECT_EQ(places, (std::set{Where::p_bucket, Where::d_bucket, Where::log}));
  EXPECT_EQ(parts.problems(), std::vector<std::string>());
}

TEST_F(ElimDaParts, SegmentsSplitWhenABucketIsFullAndJoinWhenOneIsEmpty) {
  Parts parts(pool_, shape(kSmall));
  std::map<Number, Number> model;
  for (Number key = 0; parts.store.dram.segments() < 4; ++key) {
    parts.add(key, key + 1);
    model.emplace(key, key + 1);
  }
  for (const auto& [key, value] : model) ASSERT_EQ(parts.find(key).value, value);
  EXPECT_EQ(parts.problems(), std::vector<std::string>());
  EXPECT_FALSE(parts.segmentation.give_back());
  for (const auto& [key, value] : model) {
    const epoch::Guard guard;
    EXPECT_TRUE(parts.changes.erase(key, parts.hash_of(key), nullptr));
  }
  EXPECT_TRUE(parts.segmentation.give_back());
  EXPECT_EQ(parts.store.dram.segments(), 1u);
  EXPECT_EQ(parts.problems(), std::vector<std::string>());
}

TEST_F(ElimDaParts, MoreLogsHaveThePairsOfThoseBefore) {
  Parts parts(pool_, shape(kGrowing));
  for (Number key = 0; key < 6; ++key) parts.append(key, key + 1);
  const epoch::Guard guard;
  EXPECT_TRUE(parts.changes.erase(3, parts.hash_of(3), nullptr));
  parts.more_logs.grow();
  EXPECT_EQ(parts.store.logs.set()->count(), 4u);
  parts.store.dram.count_segments(3);  // as if
  parts.more_logs.grow();
  parts.store.dram.count_segments(-3);
  EXPECT_EQ(parts.store.logs.set()->count(), 16u);
  for (Number key = 0; key < 6; ++key) {
    EXPECT_EQ(parts.find(key).where, key == 3 ? Where::nowhere : Where::log) << key;
    EXPECT_EQ(parts.find(key).value, key == 3 ? 0 : key + 1) << key;
  }
  EXPECT_EQ(parts.problems(), std::vector<std::string>());
}

TEST_F(ElimDaParts, AWalkShowsEachKeyOnceWithItsFirstValue) {
  Parts parts(pool_, shape(kSmall));
  std::map<Number, Number> model, shown;
  for (Number key = 0; key < 100; ++key) {
    parts.add(key, key + 1);
    if (key % 3 == 0) parts.add(key / 2, 0);  // a duplicate
    model.emplace(key, key + 1);
  }
  parts.append(100, 101);
  model.emplace(100, 101);
  const auto show = [&](const CopiedPairs<Number>& pairs) {
    return pairs.template for_each<Number>([&](Number key, Number value) {
      EXPECT_TRUE(shown.emplace(key, value).second) << key;
      return true;
    });
  };
  Walk<Number>(parts.store).show_all(show, parts.store.words.values());
  EXPECT_EQ(shown, model);
}

TEST_F(ElimDaParts, SegmentsAreColdUntilTheyAreNeeded) {
  {
    Parts parts(pool_, shape(kSmall));
    for (Number key = 0; key < 100; ++key) parts.add(key, key + 1);
  }
  Parts parts(pool_, shape(kSmall));
  const auto cold = [&] {
    const epoch::Guard guard;
    unsigned buckets = 0;
    parts.store.dram.for_each_segment([&](const Segment& segment) {
      for (unsigned i = 0; i < kSmall.buckets; ++i) buckets += segment.slot(i).bucket() == nullptr;
    });
    return buckets;
  };
  const unsigned all = parts.store.dram.segments() * kSmall.buckets;
  ASSERT_GT(all, kSmall.buckets);
  EXPECT_EQ(cold(), all);
  EXPECT_EQ(parts.find(5).value, 6u);
  EXPECT_EQ(cold(), all - kSmall.buckets);
  EXPECT_EQ(parts.store.cold.seconds(), 0);
  parts.store.cold.require_warm();
  EXPECT_EQ(cold(), 0u);
  EXPECT_GT(parts.store.cold.seconds(), 0);
  for (Number key = 0; key < 100; ++key) EXPECT_EQ(parts.find(key).value, key + 1);
}

/// What counts in a unit under the number of its log is no longer the log's (E5); if not all words
/// of the unit are there, the log has them still. Here the log with the name 0.
TEST_F(ElimDaParts, ACrashBetweenACopyAndItsEndIsMended) {
  constexpr Shape kTwoWords{4, 32, 32, 64, 2};  // two words for a unit
  for (const bool complete : {false, true}) {
    SCOPED_TRACE(complete);
    const Pool pool = Pool::create(folder_.path() / (complete ? "complete" : "half"), options());
    std::vector<Number> keys;
    {
      Parts parts(pool, shape(kTwoWords));
      for (Number key = 0; keys.size() < 20; ++key) {
        if (parts.hash_of(key).prefix(2) == 0) keys.push_back(key);
      }
      for (const Number key : keys) parts.append(key, key + 1);
      const CollectingLog log = parts.store.logs.set()->log(0);
      ASSERT_EQ(log.line().count, keys.size());
      EXPECT_EQ(log.name(), 0);
      log.begin_copy();
      const BackupLog::Unit unit = parts.store.backup.take({0}, 0);
      for (unsigned i = 0; i < keys.size(); ++i) parts.store.backup.pairs(unit)[i] = log.pairs()[i];
      const std::uint32_t number = LogWord::unpack(log.word()).number;
      parts.store.backup.words(unit)[0] = UnitWord{0xffff, 0, number}.pack();
      parts.store.backup.words(unit)[1] = complete ? UnitWord{0xf, 0, number}.pack() : 0;
    }
    Parts parts(pool, shape(kTwoWords));
    EXPECT_EQ(parts.store.logs.set()->log(0).line().count, complete ? 0 : keys.size());
    EXPECT_EQ(parts.store.backup.used_units(), complete ? 1u : 0u);
    for (const Number key : keys) {
      EXPECT_EQ(parts.find(key).where, complete ? Where::d_bucket : Where::log);
      EXPECT_EQ(parts.find(key).value, key + 1);
    }
    EXPECT_EQ(parts.problems(), std::vector<std::string>());
    for (const Number key : keys) {
      const epoch::Guard guard;
      EXPECT_TRUE(parts.changes.erase(key, parts.hash_of(key), nullptr));
      EXPECT_FALSE(parts.find(key));
    }
  }
}

TEST_F(ElimDaParts, AnInspectionFindsContradictions) {
  Parts parts(pool_, shape(kSmall));
  for (Number key = 0; key < 100; ++key) parts.add(key, key + 1);
  ASSERT_EQ(parts.problems(), std::vector<std::string>());
  const Place place{&parts.store.dram.segment_of({0}), 0, nullptr};
  std::uint64_t& live = *parts.store.table.live_words(place.segment->offset, 0);
  const std::uint64_t before = live;
  ASSERT_NE(before, 0u);
  live &= live - 1;
  EXPECT_FALSE(parts.problems().empty());
  live = before;
  parts.append(1000, 1);
  parts.store.logs.set()->log_of(parts.hash_of(1000)).line().count -= 1;
  EXPECT_EQ(parts.problems().size(), 1u);
}

}  // namespace
}  // namespace perdix::detail::index::elimda
