// The writes that wait for their replay: beside a model, and as scans find them.
#include "index/tips/waiting.h"

#include <cstddef>
#include <cstdint>
#include <latch>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "epoch/guard.h"
#include "index/tips/indexes/btree.h"
#include "index/tips/plugins.h"
#include "index/tips/recovery.h"
#include "index/tips/test_tips.h"
#include "index/tips/workers.h"
#include "pool/pool_core.h"
#include "util/random.h"

namespace perdix::detail::index::tips {
namespace {

/// Writes that wait, and what is expected of them. Each is a number that no other has.
template <class K>
class WaitingWrites : public TipsTest {
 protected:
  using Shown = std::vector<std::pair<K, U64>>;  // keys and numbers

  static constexpr Kind kKind = kKindOf<K>;
  static constexpr U64 kKeys = 200;

  /// Keys in no order. Many strings begin alike.
  static K key(U64 i) {
    if constexpr (kKind == Kind::u64)
      return util::hash(i);
    else
      return (i % 3 == 0 ? "all begin alike " : "") + std::to_string(util::hash(i) % 1000);
  }
  static K key_of(const Entry& entry) { return K(Raw<K>::view(entry.key())); }

  /// Writes `count` random keys by one of several threads, which have rings of their own.
  void write(U64 count) {
    const auto chosen = static_cast<unsigned>(random_.below(kThreads));
    threads_.run(kThreads, [&](unsigned thread) {
      for (U64 i = 0; thread == chosen && i < count; ++i) write_one();
    });
  }

  void write_one() {
    const K its_key = key(random_.below(kKeys));
    const Raw<K> raw(its_key);
    OperationLogs::Ring* ring = nullptr;
    const auto lock = logs_.lock_ring(ring);
    entries_.push_back(cache_.make_entry(Operation::put, 0, raw.bytes(), {}));
    entries_.back()->set_number(entries_.size());
    ring->queue.make_room();
    ring->queue.push(*entries_.back(), kKind);
    model_[its_key].insert(entries_.size());
  }

  void forget(const Entry& entry) {
    EXPECT_EQ(model_[key_of(entry)].erase(entry.number()), 1U) << "it did not wait";
  }

  /// Makes a cut, passes most of it bit by bit, and defers some of the rest.
  void replay() {
    waiting_.cut();
    U64 in_model = 0;
    for (const auto& [its_key, numbers] : model_) in_model += numbers.size();
    EXPECT_EQ(waiting_.rest().size(), in_model);
    while (random_.below(8) != 0) {
      const auto some = waiting_.rest().first(random_.below(waiting_.rest().size() + 1));
      waiting_.pass(some.size());
      for (const RankedEntry& slot : some) forget(*slot.entry);
      write(random_.below(1500));
      waiting_.collect();
      expect_views();
    }
    for (const RankedEntry& slot : waiting_.rest())
      if (random_.below(2) == 0) slot.entry->set(Entry::kDeferred);
    waiting_.end_cut([&](const Entry& entry) { forget(entry); });
    expect_views();
  }

  Shown shown(Waiting::Cursor&& cursor, const std::optional<K>& last, bool down) const {
    Shown shown;
    for (; cursor.entry() != nullptr; cursor.next()) {
      const K at = key_of(*cursor.entry());
      if constexpr (kKind == Kind::u64) {
        EXPECT_EQ(at, cursor.rank());
      }
      if (last && (down ? at < *last : *last < at)) break;
      shown.emplace_back(at, cursor.entry()->number());
    }
    return shown;
  }
  Shown expected(const K& least, const K* most, bool without_most) const {
    Shown shown;
    for (auto at = model_.lower_bound(least); at != model_.end(); ++at) {
      if (most != nullptr && (*most < at->first || (without_most && at->first == *most))) break;
      if (!at->second.empty()) shown.emplace_back(at->first, *at->second.rbegin());
    }
    return shown;
  }

  void expect_views() {
    const epoch::Guard guard;
    const Waiting::View view(waiting_);
    for (int i = 0; i < 5; ++i) {
      K from = key(random_.below(2 * kKeys)), last = key(random_.below(2 * kKeys));
      if (last < from) std::swap(from, last);
      const Raw<K> low(from), high(last);
      EXPECT_EQ(shown(view.up(low.bytes(), high.bytes()), last, false),
                expected(from, &last, false));
      EXPECT_EQ(shown(view.up(low.bytes(), std::nullopt), std::nullopt, false),
                expected(from, nullptr, false));
      for (const bool strictly : {false, true}) {
        Shown up = expected(from, &last, strictly);
        EXPECT_EQ(shown(view.down(high.bytes(), strictly, low.bytes()), from, true),
                  Shown(up.rbegin(), up.rend()));
        up = expected(K{}, &last, strictly);
        EXPECT_EQ(shown(view.down(high.bytes(), strictly, std::nullopt), std::nullopt, true),
                  Shown(up.rbegin(), up.rend()));
      }
    }
  }

  static constexpr unsigned kThreads = 5;

  util::Random random_{1};
  Workers threads_;
  const Pool pool_ = open();
  pool::PoolCore& core_ = *pool_.core();
  const pool::IndexHandle handle_ = core_.open_index("t", "tips:btree", kKind, Kind::u64);
  Header& header_ =
      open_header(core_, handle_.root(), *look_up_plugin("btree", kKind), kMinLogBytes);
  OperationLogs logs_{core_, header_};
  Cache cache_{core_.reclaimer(), {4, 5, 1 << 20}};
  std::vector<NewEntry> entries_;
  std::map<K, std::set<U64>> model_;  // the numbers of the writes that wait
  Waiting waiting_{logs_, core_.reclaimer(), kKind, true};
};
using WaitingKeys = ::testing::Types<U64, std::string>;
TYPED_TEST_SUITE(WaitingWrites, WaitingKeys);

TYPED_TEST(WaitingWrites, AreShownByTheNewestOfEachKeyInOrder) {
  this->expect_views();
  for (int round = 0; round < 12; ++round) {
    this->write(this->random_.below(400));
    this->expect_views();
    this->replay();
  }
}

TYPED_TEST(WaitingWrites, StayInAViewThatWasMadeBefore) {
  this->write(2000);
  const epoch::Guard guard;
  const Waiting::View before(this->waiting_);
  const auto all = this->expected({}, nullptr, false);
  this->waiting_.cut();
  this->waiting_.pass(this->waiting_.rest().size());
  this->waiting_.end_cut([](Entry&) {});
  this->waiting_.cut();
  EXPECT_EQ(this->shown(before.up({}, std::nullopt), std::nullopt, false), all);
  const Waiting::View later(this->waiting_);
  EXPECT_EQ(later.up({}, std::nullopt).entry(), nullptr);
}

/// Writes of a tree that has them made. Plug-ins know no context.
U64 replayed_writes = 0;

template <class Memory, class Keys>
struct ReplayCountingTree : BTree<Memory, Keys> {
  bool put(Word key, Word value, Word& old) {
    ++replayed_writes;
    return BTree<Memory, Keys>::put(key, value, old);
  }
  bool erase(Word key, Word& old_key, Word& old_value) {
    ++replayed_writes;
    return BTree<Memory, Keys>::erase(key, old_key, old_value);
  }
};
using ReplayCounted = perdix::tips::User<"counted", ReplayCountingTree>;

/// An index with a backlog, and its model.
template <class K>
class Backlog : public TipsTest {
 protected:
  static constexpr U64 kPairs = 600;

  Backlog() {
    for (U64 i = 0; i < kPairs; i += 2) put(i, i);
    EXPECT_EQ(index_.size(), model_.size());
    replayed_writes = 0;
    job_.request();
    begun_.wait();  // nothing is replayed now but by calls
    for (U64 i = 0; i < kPairs; i += 3) put(i, 1000 + i);
    for (U64 i = 0; i < kPairs; i += 5) erase(i);
    for (U64 i = 0; i < kPairs; i += 15) put(i, 2000 + i);
  }
  ~Backlog() override { ended_.count_down(); }

  void put(U64 i, U64 value) {
    index_.put(key_of<K>(i), value);
    model_[key_of<K>(i)] = value;
  }
  void erase(U64 i) { EXPECT_EQ(index_.erase(key_of<K>(i)), model_.erase(key_of<K>(i)) == 1); }

  void expect_scans() const {
    for (U64 i = 0; i < kPairs; i += 7) {
      const K key = key_of<K>(i);
      std::map<K, U64> expected;
      auto at = model_.lower_bound(key);
      for (; at != model_.end() && expected.size() < 40; ++at) expected.insert(*at);
      std::map<K, U64> shown;
      for (const auto& [its_key, value] : index_.scan(key, 40))
        EXPECT_TRUE(shown.emplace(its_key, value).second) << "shown twice";
      EXPECT_EQ(shown, expected);
      at = model_.lower_bound(key);
      const auto before = index_.before(key);
      ASSERT_EQ(before.has_value(), at != model_.begin());
      if (before) {
        --at;
        EXPECT_EQ(before->first, at->first);
        EXPECT_EQ(before->second, at->second);
      }
    }
  }

  Pool pool_ = [this] {
    PoolOptions options;
    options.plugins = ReplayCounted::plugins();
    return Pool::open_or_create(path_, options);
  }();
  std::latch begun_{1}, ended_{1};
  pool::Background::Job job_{pool_.core()->background(),
                             [this] { begun_.count_down(), ended_.wait(); }};
  perdix::Tips<ReplayCounted, K, U64> index_{pool_, "t"};
  std::map<K, U64> model_;
};
TYPED_TEST_SUITE(Backlog, WaitingKeys);

TYPED_TEST(Backlog, IsScannedWithoutAReplay) {
  this->expect_scans();
  EXPECT_EQ(replayed_writes, 0U);
  EXPECT_EQ(this->index_.size(), this->model_.size());  // replays
  EXPECT_GT(replayed_writes, 0U);
  this->expect_scans();
}

}  // namespace
}  // namespace perdix::detail::index::tips
