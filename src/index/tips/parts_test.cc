// The parts of a Core, each for itself.
#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/error.h>

#include "epoch/guard.h"
#include "index/tips/changes.h"
#include "index/tips/destroy.h"
#include "index/tips/framework.h"
#include "index/tips/indexes/btree.h"
#include "index/tips/inspection.h"
#include "index/tips/key_order.h"
#include "index/tips/reach.h"
#include "index/tips/recovery.h"
#include "index/tips/settings.h"
#include "index/tips/test_tips.h"
#include "index/tips/upkeep.h"
#include "index/tips/writer.h"
#include "pool/pool_core.h"
#include "util/random.h"

namespace perdix::detail::index::tips {
namespace {

/// A tree of strings that finds no space when a test wants it.
struct FillingTree final : PluginOf<BTree<Durable, StringKeys>> {
  using Base = PluginOf<BTree<Durable, StringKeys>>;
  explicit FillingTree(std::string_view its_name = "btree") : Base(its_name, Kind::bytes) {}
  bool put(void* index, Word key, Word value, Word* old) const override {
    require_space();
    return Base::put(index, key, value, old);
  }
  bool erase(void* index, Word key, Word* old_key, Word* old_value) const override {
    require_space();
    return Base::erase(index, key, old_key, old_value);
  }
  void require_space() const {
    if (is_full) throw Error(Errc::out_of_space, "as the test wants it");
  }

  bool is_full = false;
};

constexpr Kinds kKinds{Kind::bytes, Kind::bytes};
constexpr std::uint64_t kRingBytes = std::uint64_t{256} << 10;

/// What lies in PM and what works on it, as after an opening.
struct Ground {
  Ground(pool::PoolCore& pool, std::uint64_t& root, const Plugin& plugin)
      : header(open_header(pool, root, plugin, kRingBytes)),
        guest(plugin, object_behind(header), kKinds),
        framework(pool, root, header),
        inspection(pool, guest, framework.uno),
        changes(pool, guest, framework.uno),
        cache(pool.reclaimer(), {4, 5, 1 << 20}) {
    framework.roll_back_or_finish();
    framework.logs.recover([](const LoggedWrite&) {});
    framework.logs.make_first_ring();
  }

  NewEntry entry(Operation operation, std::string_view key, std::string_view value = {}) {
    return cache.make_entry(operation, cache.hash_of(key), key, value);
  }
  void put(std::string_view key, std::string_view value) {
    EXPECT_TRUE(changes.apply(*entry(Operation::put, key, value)));
  }
  std::optional<std::string> get(std::string_view key) const {
    const epoch::Guard guard;
    std::optional<std::string> found;
    inspection.find(key, [&](std::string_view value) { found = value; });
    return found;
  }

  Header& header;
  Guest guest;
  Framework framework;
  Inspection inspection;
  Changes changes;
  Cache cache;
};

class TipsParts : public TipsTest {
 protected:
  Ground ground() { return {core_, handle_.root(), plugin_}; }

  FillingTree plugin_;
  const Pool pool_ = open();
  pool::PoolCore& core_ = *pool_.core();
  const pool::IndexHandle handle_ = core_.open_index("t", "tips:btree", Kind::bytes, Kind::bytes);
};

TEST(TipsWords, StandForTheirBytes) {
  for (const std::size_t size : {0, 1, 119, 120, 121, 5000}) {
    const std::string key(size, 'k');
    const KeyWord word(key, Kind::bytes);
    const Word of = word.word();
    EXPECT_EQ(bytes_of(of, Kind::bytes), key);
  }
  const U64 number = 0x0102030405060708;
  const KeyWord word({reinterpret_cast<const char*>(&number), sizeof number}, Kind::u64);
  EXPECT_EQ(word.word(), number);
  EXPECT_EQ(bytes_of(number, Kind::u64).data(), reinterpret_cast<const char*>(&number));
}

TEST(TipsTrail, EndsALongWayThatLeadsRoundInCircles) {
  Trail trail;
  unsigned steps = 0;
  while (steps < 5000 && !trail.comes_again(64 * (steps % 700))) ++steps;
  EXPECT_GE(steps, 1000U);
  EXPECT_LE(steps, 1700U);
  Trail straight;
  for (std::uintptr_t at = 0; at < 5000; ++at) ASSERT_FALSE(straight.comes_again(64 * at));
}

TEST(TipsSettings, LogsFitThePoolAndTheMachine) {
  EXPECT_EQ(default_log_bytes(U64{16} << 20), kMinLogBytes);
  U64 before = kMinLogBytes;
  for (unsigned bits = 20; bits < 48; ++bits) {
    const U64 bytes = default_log_bytes(U64{1} << bits);
    EXPECT_TRUE(std::has_single_bit(bytes));
    EXPECT_GE(bytes, before) << bits;
    EXPECT_LE(bytes, std::max<U64>((U64{1} << bits) / 64, kMinLogBytes)) << bits;
    EXPECT_LE(bytes, U64{32} << 20);
    before = bytes;
  }
}

TEST_F(TipsParts, ABatchIsInTheOrderOfItsKeysAndOfTheWritesOfAKey) {
  Ground all = ground();
  util::Random random(1);
  std::vector<NewEntry> owned;
  std::vector<RankedEntry> batch;
  for (U64 i = 0; i < 500; ++i) {
    const std::string key(random.below(12), static_cast<char>('a' + random.below(3)));
    owned.push_back(all.entry(Operation::put, key, std::to_string(i)));
    owned.back()->set_number(i);
    batch.emplace_back(*owned.back(), Kind::bytes);
  }
  sort_by_key(batch, Kind::bytes);
  ASSERT_EQ(batch.size(), owned.size());
  for (std::size_t i = 1; i < batch.size(); ++i) {
    const Entry &before = *batch[i - 1].entry, &after = *batch[i].entry;
    EXPECT_LE(before.key(), after.key());
    if (before.key() == after.key()) {
      EXPECT_LT(before.number(), after.number());
    }
  }
  EXPECT_LT(rank_of(std::string_view("\x02\x01\0\0\0\0\0\0", 8), Kind::u64), 259U);
}

TEST_F(TipsParts, AHeaderIsMadeOnceAndForOnePlugIn) {
  Header& made = open_header(core_, handle_.root(), plugin_, kRingBytes);
  EXPECT_EQ(&open_header(core_, handle_.root(), plugin_, 2 * kRingBytes), &made);
  EXPECT_EQ(made.ring_bytes, kRingBytes);
  EXPECT_EQ(&header_at(core_, handle_.root()), &made);
  EXPECT_EQ(plugin_behind(core_, made, Kind::bytes).name, "btree");
  const auto code_of = [&](const Plugin& plugin) {
    try {
      open_header(core_, handle_.root(), plugin, kRingBytes);
    } catch (const Error& error) {
      return error.code();
    }
    return Errc::not_found;
  };
  EXPECT_EQ(code_of(FillingTree("hash")), Errc::corrupt);
  FillingTree other;
  other.object_bytes += 64;
  EXPECT_EQ(code_of(other), Errc::wrong_engine);
  EXPECT_THROW(header_at(core_, handle_.root() + sizeof(Header)), Error);
  made.magic ^= 1;
  EXPECT_EQ(code_of(plugin_), Errc::corrupt);
  made.magic ^= 1;
}

TEST_F(TipsParts, ChangesReplaceAndFreeWhatTheyMade) {
  Ground all = ground();
  all.put("a", "1");
  all.put("b", "2");
  const std::string old = *all.get("a");
  all.put("a", std::string(300, 'v'));
  EXPECT_EQ(old, "1");
  EXPECT_EQ(all.get("a"), std::string(300, 'v'));
  EXPECT_TRUE(all.changes.apply(*all.entry(Operation::erase, "b")));
  EXPECT_TRUE(all.changes.apply(*all.entry(Operation::erase, "b"))) << "not there";
  EXPECT_EQ(all.get("b"), std::nullopt);
  all.framework.reclaim(0);
  Reach reach(core_, kKinds);
  EXPECT_TRUE(all.guest.inspect(reach));
  EXPECT_EQ(reach.blocks(), 3U) << "a node, a key, a value";
}

TEST_F(TipsParts, AChangeWithoutSpaceHasNotHappened) {
  Ground all = ground();
  all.put("a", "1");
  plugin_.is_full = true;
  EXPECT_FALSE(all.changes.apply(*all.entry(Operation::put, "a", "2")));
  EXPECT_FALSE(all.changes.apply(*all.entry(Operation::put, "b", "2")));
  EXPECT_FALSE(all.changes.apply(*all.entry(Operation::erase, "a")));
  plugin_.is_full = false;
  EXPECT_EQ(all.get("a"), "1");
  EXPECT_EQ(all.guest.size(), 1U);
  all.framework.reclaim(0);
  Reach reach(core_, kKinds);
  EXPECT_TRUE(all.guest.inspect(reach));
  EXPECT_EQ(reach.blocks(), 3U);
}

TEST_F(TipsParts, APutNeedsItsStringsAndItsNodesAndAnEraseNothing) {
  Ground all = ground();
  unsigned blocks = 0;
  const auto count = [&](unsigned, unsigned number) { blocks += number; };
  all.changes.need_of(*all.entry(Operation::erase, "a")).for_each(count);
  EXPECT_EQ(blocks, 0U);
  all.changes.need_of(*all.entry(Operation::put, "a", "b")).for_each(count);
  unsigned nodes = 0;
  for (const TakenNodes& taken : plugin_.put_takes) nodes += taken.count;
  EXPECT_EQ(blocks, nodes + 2);
}

TEST_F(TipsParts, AnOpeningTakesBackUnreclaimedWrites) {
  {
    Ground all = ground();
    all.put("a", "1");
    all.framework.reclaim(0);
    EXPECT_EQ(all.framework.reclamations(), 1U);
    all.framework.reclaim(0);
    EXPECT_EQ(all.framework.reclamations(), 1U) << "nothing has changed";
    all.put("a", "2");
    all.put("b", "2");
  }
  const Ground again = ground();
  EXPECT_EQ(again.get("a"), "1");
  EXPECT_EQ(again.get("b"), std::nullopt);
  EXPECT_EQ(again.guest.size(), 1U);
}

TEST_F(TipsParts, RecordsThatWereReclaimedMeanNothing) {
  std::vector<std::string> shown;
  const auto recovered = [&] {
    shown.clear();
    OperationLogs(core_, header_at(core_, handle_.root())).recover([&](const LoggedWrite& write) {
      shown.emplace_back(write.key);
    });
    return shown;
  };
  Ground all = ground();
  OperationLogs::Ring* ring = nullptr;
  for (const char* key : {"a", "b"}) {
    const auto lock = all.framework.logs.lock_ring(ring);
    ASSERT_TRUE(all.framework.logs.append(*ring, *all.entry(Operation::put, key, "1")));
  }
  EXPECT_EQ(recovered(), (std::vector<std::string>{"a", "b"}));
  all.framework.reclaim(1);
  EXPECT_EQ(all.framework.reclaimed(), 1U);
  EXPECT_EQ(recovered(), (std::vector<std::string>{"b"}));
}

TEST_F(TipsParts, AnInspectionFollowsTheWholeIndexOnce) {
  {
    Ground all = ground();
    for (int i = 0; i < 500; ++i) all.put("key " + std::to_string(i), "value");
    all.framework.reclaim(0);
  }
  Ground all = ground();
  std::stop_source stop;
  stop.request_stop();
  EXPECT_FALSE(all.inspection.run(stop.get_token()));
  EXPECT_FALSE(all.inspection.is_done());
  EXPECT_EQ(all.get("key 7"), "value") << "doubts";
  EXPECT_EQ(all.get("key"), std::nullopt);
  EXPECT_TRUE(all.inspection.run());
  EXPECT_TRUE(all.inspection.is_done());
  EXPECT_TRUE(all.inspection.run(stop.get_token())) << "it was done";
  EXPECT_EQ(all.get("key 7"), "value");
}

TEST_F(TipsParts, AnInspectionOfADamagedIndexThrows) {
  Ground all = ground();
  all.put("a", "1");
  Everything everything;
  ASSERT_TRUE(all.guest.inspect(everything));
  auto* const value = reinterpret_cast<Bytes*>(everything.pairs.begin()->second);
  value->size = std::uint64_t{1} << 40;
  EXPECT_THROW(all.get("a"), Error);
  EXPECT_THROW(all.inspection.run(), Error);
  EXPECT_FALSE(all.inspection.is_done());
  value->size = 1;
  EXPECT_EQ(all.get("a"), "1");
}

/// With a replay, whose thread is that of the test.
class TipsReplay : public TipsParts {
 protected:
  void log(std::string_view key, std::string_view value) {
    NewEntry entry = all_.entry(Operation::put, key, value);
    OperationLogs::Ring* ring = nullptr;
    const auto lock = all_.framework.logs.lock_ring(ring);
    ASSERT_TRUE(all_.framework.logs.append(*ring, *entry));
    Cache::Bucket& bucket = all_.cache.bucket(entry->hash());
    Entry* const old = Cache::find(bucket, entry->hash(), key);
    if (old != nullptr) old->supersede(entry->number());
    entry->set(Entry::kQueued);
    ring->queue.push(*entry, Kind::bytes);
    all_.cache.add(bucket, *entry.release(), old);
  }
  std::map<std::string, std::string> deferred() const {
    std::map<std::string, std::string> found;
    replayer_.for_each_deferred([&](const Entry& entry) {
      EXPECT_TRUE(found.emplace(entry.key(), entry.value()).second) << entry.key();
    });
    return found;
  }

  Ground all_ = ground();
  Replayer replayer_{all_.framework, all_.inspection, all_.changes, all_.cache, TipsOptions{}};
};

TEST_F(TipsReplay, MakesTheLastWriteOfEachKey) {
  log("a", "1");
  log("b", "1");
  log("a", "2");
  EXPECT_FALSE(replayer_.is_caught_up());
  replayer_.run();
  EXPECT_TRUE(replayer_.is_caught_up());
  EXPECT_FALSE(replayer_.is_settled());
  EXPECT_EQ(all_.get("a"), "2");
  EXPECT_EQ(all_.get("b"), "1");
  TipsStats stats;
  replayer_.count(stats);
  EXPECT_EQ(stats.replayed, 2U) << "the first write of a was superseded";
  EXPECT_EQ(stats.max_waiting, 3U);
  replayer_.reclaim();
  EXPECT_EQ(all_.framework.reclaimed(), 3U);
}

TEST_F(TipsReplay, KeepsWritesThatFindNoSpace) {
  log("a", "1");
  plugin_.is_full = true;
  replayer_.run();
  EXPECT_TRUE(replayer_.is_out_of_space());
  EXPECT_FALSE(replayer_.is_caught_up());
  log("b", "1");
  log("a", "2");
  replayer_.settle();
  EXPECT_EQ(deferred(), (std::map<std::string, std::string>{{"a", "2"}, {"b", "1"}}));
  replayer_.reclaim();
  EXPECT_LE(all_.framework.reclaimed(), 1U) << "a record whose entry waits was given up";
  EXPECT_TRUE(replayer_.is_settled());
  plugin_.is_full = false;
  replayer_.run();
  EXPECT_FALSE(replayer_.is_out_of_space());
  EXPECT_TRUE(replayer_.is_caught_up());
  EXPECT_EQ(deferred(), (std::map<std::string, std::string>{}));
  EXPECT_EQ(all_.get("a"), "2");
}

TEST_F(TipsReplay, ShowsTheWritesOfTheLogsAgain) {
  log("a", "1");
  log("a", "2");
  Ground later = ground();
  Replayer again(later.framework, later.inspection, later.changes, later.cache, TipsOptions{});
  again.recover();
  EXPECT_TRUE(again.has_deferred());
  const U64 hash = later.cache.hash_of("a");
  EXPECT_EQ(Cache::find(later.cache.bucket(hash), hash, "a")->value(), "2");
  again.run();
  EXPECT_EQ(later.get("a"), "2");
  EXPECT_TRUE(again.is_caught_up());
}

/// With all that a write needs.
class TipsWriter : public TipsParts {
 protected:
  bool put(std::string_view key, std::string_view value, Decide decide = nullptr) {
    return writer_.write(Operation::put, key, value, Condition(decide, nullptr));
  }
  bool erase(std::string_view key) {
    return writer_.write(Operation::erase, key, {},
                         Condition([](void*, Found found) { return found.has_value(); }, nullptr));
  }
  std::optional<std::string> get(std::string_view key) {
    upkeep_.catch_up();
    return all_.get(key);
  }
  static bool is_new(void*, Found found) { return !found; }

  Ground all_ = ground();
  Upkeep upkeep_{core_, all_.framework, all_.inspection, all_.changes, all_.cache, Settings{}};
  Writer writer_{core_, all_.framework, all_.inspection, all_.changes, all_.cache, upkeep_};
};

TEST_F(TipsWriter, WritesWhatItsConditionAllows) {
  EXPECT_TRUE(put("a", "1", is_new));
  EXPECT_FALSE(put("a", "2", is_new)) << "in the cache, or in the index";
  EXPECT_EQ(get("a"), "1");
  EXPECT_FALSE(put("a", "2", is_new)) << "in the index";
  EXPECT_TRUE(put("a", "2"));
  EXPECT_EQ(get("a"), "2");
  EXPECT_TRUE(erase("a"));
  EXPECT_FALSE(erase("a"));
  EXPECT_EQ(get("a"), std::nullopt);
  EXPECT_TRUE(put("a", "3", is_new));
}

TEST_F(TipsWriter, WritesThroughAndCancelsWritesThatFindNoSpace) {
  EXPECT_TRUE(put("a", "1"));
  EXPECT_EQ(get("a"), "1");
  WriteThrough through(all_.framework.logs, all_.inspection, all_.changes, all_.cache);
  const auto write = [&](std::string_view key) {
    NewEntry entry = all_.entry(Operation::put, key, "2");
    const Attempt attempt = upkeep_.alone([&](Replayer& replayer) {
      return through.write(*entry, Condition(nullptr, nullptr), replayer);
    });
    if (attempt == Attempt::done) entry.release();
    return attempt;
  };
  EXPECT_EQ(write("b"), Attempt::done);
  EXPECT_EQ(all_.framework.reclaimed(), all_.framework.logs.last_number()) << "it is durable";
  EXPECT_EQ(all_.get("b"), "2");
  plugin_.is_full = true;
  EXPECT_EQ(write("c"), Attempt::no_space);
  plugin_.is_full = false;
  const Ground again = ground();
  unsigned records = 0;
  OperationLogs(core_, again.header).recover([&](const LoggedWrite&) { ++records; });
  EXPECT_EQ(records, 0U) << "the record was not cancelled";
  EXPECT_EQ(again.get("c"), std::nullopt);
}

TEST_F(TipsWriter, RefusesPutsWhileEarlierOnesWaitForSpace) {
  plugin_.is_full = true;
  EXPECT_TRUE(put("a", "1"));
  upkeep_.catch_up();
  EXPECT_TRUE(upkeep_.is_out_of_space());
  EXPECT_THROW(put("b", "1"), Error);
  EXPECT_TRUE(erase("a")) << "it may free some";
  plugin_.is_full = false;
  EXPECT_TRUE(put("b", "1"));
  EXPECT_FALSE(upkeep_.is_out_of_space());
  EXPECT_EQ(get("a"), std::nullopt);
  EXPECT_EQ(get("b"), "1");
}

TEST_F(TipsWriter, TheUpkeepIsDoneByOneThreadAtATime) {
  unsigned inside = 0;
  const auto use = [&](Replayer& replayer) {
    EXPECT_EQ(++inside, 1U);
    replayer.run();
    --inside;
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 50; ++i) {
        EXPECT_TRUE(put(std::to_string(thread) + "/" + std::to_string(i), "1"));
        upkeep_.alone(use);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  upkeep_.settle();
  EXPECT_TRUE(upkeep_.alone([](const Replayer& replayer) { return replayer.is_settled(); }));
  EXPECT_EQ(all_.guest.size(), 200U);
}

TEST_F(TipsParts, ADroppedIndexLeavesNoBlockAndNoRoot) {
  const auto used = [&] {
    core_.allocator().reclaim();
    return pool_.info().allocated;
  };
  const std::uint64_t before = used();
  {
    Ground all = ground();
    for (int i = 0; i < 300; ++i) all.put("key " + std::to_string(i), std::string(i, 'v'));
    all.framework.reclaim(0);
    all.put("unfinished", "1");
  }
  EXPECT_GT(used(), before);
  core_.claim_of(handle_.root()) = 5;  // as a process has left it that has died
  destroy(core_, handle_.root(), kKinds);
  EXPECT_EQ(core_.claim_of(handle_.root()), 0U);
  EXPECT_EQ(handle_.root(), pm::kNull);
  EXPECT_EQ(used(), before);
}

}  // namespace
}  // namespace perdix::detail::index::tips
