// Writes that were replayed and found no space: scans, size() and check() take them into account.
#include <latch>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/error.h>

#include "index/tips/indexes/btree.h"
#include "index/tips/indexes/hash_table.h"
#include "index/tips/test_tips.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {
namespace {

/// Whether the indexes below find no space. Plug-ins know no context.
bool is_full = false;

/// An index that finds no space when a test wants it.
template <class Index>
struct Limited : Index {
  bool put(Word key, Word value, Word& old) {
    require_space();
    return Index::put(key, value, old);
  }
  bool erase(Word key, Word& old_key, Word& old_value) {
    require_space();
    return Index::erase(key, old_key, old_value);
  }

 private:
  static void require_space() {
    if (is_full) throw Error(Errc::out_of_space, "as the test wants it");
  }
};
template <class Memory, class Keys>
struct LimitedTree : Limited<BTree<Memory, Keys>> {};
template <class Memory, class Keys>
struct LimitedTable : Limited<HashTable<Memory, Keys>> {};

using Tree = perdix::tips::User<"tree", LimitedTree>;
using Table = perdix::tips::User<"table", LimitedTable>;

template <class P, class K, class V>
struct Plugged : Typed<P, K, V> {
  using Plugin = P;
  static constexpr bool kOrdered = std::is_same_v<typename P::Order, perdix::tips::Ordered>;
};
using LimitedIndexes =
    ::testing::Types<Plugged<Tree, U64, U64>, Plugged<Tree, std::string, std::string>,
                     Plugged<Table, U64, U64>, Plugged<Table, std::string, std::string>>;

/// An index some of whose writes wait for space, and its model.
template <class Plugged>
class Deferred : public TipsTest {
 protected:
  using Index = typename Plugged::Index;
  using Key = typename Plugged::Key;
  using Value = typename Plugged::Value;
  using Pairs = std::map<Key, Value>;

  static constexpr U64 kPairs = 60;

  Deferred() {
    for (U64 i = 0; i < kPairs; i += 2) put(i, i);
    EXPECT_EQ(index_.size(), kPairs / 2);
    is_full = true;
    write_more();
    EXPECT_EQ(index_.size(), model_.size());  // tries to replay all of that
  }
  ~Deferred() override { is_full = false; }

  void put(U64 i, U64 value) {
    index_.put(key_of<Key>(i), datum<Value>(value));
    model_[key_of<Key>(i)] = datum<Value>(value);
  }
  void erase(U64 i) { EXPECT_EQ(index_.erase(key_of<Key>(i)), model_.erase(key_of<Key>(i)) == 1); }

  /// Keys that are new, some that are erased again, and others that have new values.
  void write_more() {
    std::latch begun(1), ended(1);
    pool::Background::Job job(pool_.core()->background(),
                              [&] { begun.count_down(), ended.wait(); });
    job.request();
    begun.wait();  // what is written now is in the index when a call needs it, and not before
    for (U64 i = 1; i < kPairs; i += 4) put(i, i);
    for (U64 i = 1; i < kPairs; i += 12) erase(i);
    for (U64 i = 0; i < kPairs; i += 6) put(i, 1000 + i), put(i, 2000 + i);
    for (U64 i = 4; i < kPairs; i += 10) erase(i);
    ended.count_down();
  }

  /// At most `limit` pairs from a key on.
  Pairs expected(const Key& from, std::size_t limit) const {
    Pairs pairs;
    for (auto at = model_.lower_bound(from); at != model_.end() && pairs.size() < limit; ++at)
      pairs.insert(*at);
    return pairs;
  }
  Pairs shown(const Key& from, std::size_t limit) const {
    Pairs pairs;
    for (const auto& [key, value] : index_.scan(from, limit))
      EXPECT_TRUE(pairs.emplace(key, value).second) << "shown twice";
    return pairs;
  }

  void expect_last(const Key& bound, bool strictly) const {
    auto above = strictly ? model_.lower_bound(bound) : model_.upper_bound(bound);
    const auto found = strictly ? index_.before(bound) : index_.floor(bound);
    ASSERT_EQ(found.has_value(), above != model_.begin());
    if (found) {
      --above;
      EXPECT_EQ(found->first, above->first);
      EXPECT_EQ(found->second, above->second);
    }
  }

  void expect_order() const {
    for (U64 i = 0; i < kPairs; i += 3) {  // each call tries again to replay all that waits
      const Key key = key_of<Key>(i);
      for (const std::size_t limit : {std::size_t{1}, std::size_t{7}, std::size_t{kPairs}})
        ASSERT_EQ(shown(key, limit), expected(key, limit)) << i << ' ' << limit;
      for (const bool strictly : {false, true}) expect_last(key, strictly);
    }
  }

  void expect_all() const {
    Pairs pairs;
    index_.for_each([&](const auto& key, const auto& value) {
      EXPECT_TRUE(pairs.emplace(Key(key), Value(value)).second) << "shown twice";
      return true;
    });
    EXPECT_EQ(pairs, model_);
    if constexpr (Plugged::kOrdered) expect_order();
    for (U64 i = 0; i < kPairs; ++i) {
      const auto known = model_.find(key_of<Key>(i));
      ASSERT_EQ(index_.get(key_of<Key>(i)),
                known == model_.end() ? std::nullopt : std::optional(known->second));
    }
    EXPECT_EQ(index_.size(), model_.size());
    const CheckReport report = index_.check();
    EXPECT_TRUE(report.ok());
    EXPECT_EQ(report.pairs, model_.size());
  }

  Pool pool_ = [this] {
    PoolOptions options;
    options.max_size = std::uint64_t{64} << 20;
    options.durability = Durability::process;
    options.plugins = Plugged::Plugin::plugins();
    return Pool::open_or_create(path_, options);
  }();
  Index index_{pool_, "t"};
  Pairs model_;
};
TYPED_TEST_SUITE(Deferred, LimitedIndexes);

TYPED_TEST(Deferred, IsShown) {
  EXPECT_GT(this->index_.pending(), 20U);
  this->expect_all();
  this->erase(5);  // one that waits; erases go on
  this->erase(0);
  this->erase(3);  // one that is not there
  this->expect_all();
  EXPECT_GT(this->index_.pending(), 20U);
}

TYPED_TEST(Deferred, IsReplayedWhenThereIsSpace) {
  is_full = false;
  this->expect_all();
  EXPECT_EQ(this->index_.pending(), 0U);
  this->put(3, 3);
  this->expect_all();
}

}  // namespace
}  // namespace perdix::detail::index::tips
