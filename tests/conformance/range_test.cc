// Loops over ranges beside writes. Whatever is erased, inserted or replaced meanwhile, also by the
// loop itself, it ends, stays inside and shows keys in strict order.
#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "support/contract.h"

namespace perdix::test {
namespace {

/// A loop that writes at random after each pair that it is shown, most often near the pair and at
/// the ends of its range.
class WritingLoop {
 public:
  WritingLoop(Fixture& fixture, AnyIndex& index, const std::vector<Datum>& keys)
      : fixture_(fixture), index_(index) {
    for (const Datum& key : keys) keys_.push_back({key, index.get(key), {}, false});
  }

  /// From the key with number `begin` to that with `end`, which is left out.
  void run(std::size_t begin, std::size_t end, bool backwards) {
    begin_ = begin, end_ = end, backwards_ = backwards;
    for (Entry& entry : keys_) {
      entry.had.clear();
      entry.was_absent = !entry.value;
      if (entry.value) entry.had.push_back(*entry.value);
    }
    next_ = backwards ? end : begin;
    const auto to = end < keys_.size() ? std::optional<DatumView>(keys_[end].key) : std::nullopt;
    index_.walk_range(keys_[begin].key, to, backwards, [&](DatumView key, DatumView value) {
      look(key, value);
      if (testing::Test::HasFailure()) return false;
      for (std::uint64_t i = fixture_.rng().below(4); i > 0; --i) write();
      return true;
    });
    backwards ? expect_absent(begin, next_) : expect_absent(next_, end);
  }

 private:
  struct Entry {
    Datum key;
    std::optional<Datum> value;  // now
    std::vector<Datum> had;      // values since the loop began
    bool was_absent;             // at some instant since then
  };

  void look(DatumView key, DatumView value) {
    const auto found = std::find_if(keys_.begin(), keys_.end(), [&](const Entry& entry) {
      return DatumView(entry.key) == key;
    });
    ASSERT_NE(found, keys_.end()) << show(key) << " was never put";
    const auto at = static_cast<std::size_t>(found - keys_.begin());
    const bool inside = backwards_ ? at >= begin_ && at < next_ : at >= next_ && at < end_;
    ASSERT_TRUE(inside) << show(key) << " is out of order or out of the range";
    EXPECT_NE(std::find(found->had.begin(), found->had.end(), value.copy()), found->had.end())
        << show(key) << " never had the value " << show(value);
    backwards_ ? expect_absent(at + 1, next_) : expect_absent(next_, at);
    next_ = backwards_ ? at : at + 1;
  }

  void expect_absent(std::size_t from, std::size_t to) const {
    for (; from < to; ++from)
      EXPECT_TRUE(keys_[from].was_absent) << show(keys_[from].key) << " was passed over";
  }

  void write() {
    Rng& rng = fixture_.rng();
    std::size_t at = rng.below(keys_.size());
    switch (rng.below(5)) {
      case 0: at = begin_ + rng.below(3); break;
      case 1: at = end_ - rng.below(3); break;
      case 2: at = next_ + rng.below(5) - 2; break;
      default: break;
    }
    if (at >= keys_.size()) return;
    Entry& entry = keys_[at];
    if (rng.once_in(2)) {
      EXPECT_EQ(index_.erase(entry.key), entry.value.has_value());
      entry.value.reset();
      entry.was_absent = true;
    } else {
      entry.value = fixture_.small_value();
      entry.had.push_back(*entry.value);
      index_.put(entry.key, *entry.value);
    }
  }

  Fixture& fixture_;
  AnyIndex& index_;
  std::vector<Entry> keys_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t next_ = 0;  // nothing on this side of it was shown yet; backwards, below it
  bool backwards_ = false;
};

const Contract writes("loops_stay_inside_beside_writes", ordered, [](Fixture& fixture) {
  auto index = fixture.open();
  const auto keys = fixture.keys_of(260, KeyStyle::clustered);
  for (std::size_t i = 0; i < keys.size(); i += 2) index.put(keys[i], fixture.small_value());
  WritingLoop loop(fixture, index, keys);
  for (int round = 0; round < 12 && !testing::Test::HasFailure(); ++round) {
    const std::size_t begin = fixture.rng().below(100);
    const std::size_t end = round % 4 == 3 ? keys.size() : begin + 1 + fixture.rng().below(150);
    loop.run(round % 4 == 3 ? 0 : begin, end, round % 2 == 1);
  }
});

const Contract erased("a_loop_may_erase_what_it_is_shown", ordered, [](Fixture& fixture) {
  for (const bool backwards : {false, true}) {
    auto index = fixture.open(backwards ? "backwards" : "forwards");
    const auto keys = fixture.keys_of(300, KeyStyle::mixed);
    Model model;
    fill(fixture, index, model, keys);
    Rows expected = model.range(keys[40], keys[260]), shown;
    if (backwards) std::reverse(expected.begin(), expected.end());
    index.walk_range(keys[40], keys[260], backwards, [&](DatumView key, DatumView value) {
      EXPECT_TRUE(index.erase(key));
      model.erase(key);
      shown.emplace_back(key.copy(), value.copy());
      return true;
    });
    EXPECT_EQ(shown, expected);
    EXPECT_EQ("", compare_all(index, model, keys));
  }
});

// The key at which a loop would end goes, and with it all others on that side.
const Contract last_goes("a_loop_ends_though_its_last_key_goes", ordered, [](Fixture& fixture) {
  for (const bool backwards : {false, true}) {
    auto index = fixture.open(backwards ? "backwards" : "forwards");
    const auto keys = fixture.keys_of(100, KeyStyle::dense);
    for (const Datum& key : keys) index.put(key, fixture.small_value());
    std::size_t shown = 0;
    index.walk_range(keys[40], keys[60], backwards, [&](DatumView key, DatumView) {
      EXPECT_EQ(key, DatumView(keys[backwards ? 59 - shown : 40 + shown]));
      if (++shown == 10)
        backwards ? index.erase_range(keys[0], keys[41])
                  : index.erase_range(keys[59], std::nullopt);
      return shown <= 20;
    });
    EXPECT_GE(shown, 19U);
    EXPECT_LE(shown, 20U);
  }
});

const Contract edges("ranges_reach_the_ends", ordered, [](Fixture& fixture) {
  auto index = fixture.open();
  const auto keys = edge_keys(fixture.key_kind());
  const Datum& least = keys.front();
  const Datum& greatest = keys.back();
  for (const bool backwards : {false, true})
    EXPECT_TRUE(index.range(least, std::nullopt, backwards).empty());
  Model model;
  fill(fixture, index, model, keys);
  Rows all(model.begin(), model.end());
  for (const bool backwards : {false, true}) {
    EXPECT_EQ(index.range(least, std::nullopt, backwards), all);
    EXPECT_EQ(index.range(greatest, std::nullopt, backwards), Rows{*model.last()});
    EXPECT_EQ(index.range(least, greatest, backwards).size(), all.size() - 1);
    EXPECT_TRUE(index.range(least, least, backwards).empty());
    EXPECT_TRUE(index.range(greatest, least, backwards).empty());
    std::reverse(all.begin(), all.end());
  }
  EXPECT_EQ(index.erase_range(greatest, greatest), 0U);
  EXPECT_EQ(index.erase_range(greatest, std::nullopt), 1U);
  EXPECT_EQ(index.erase_range(keys[1], std::nullopt), keys.size() - 2);
  EXPECT_EQ(index.range(least, std::nullopt), Rows{*model.first()});
  EXPECT_EQ(index.erase_range(least, std::nullopt), 1U);
  EXPECT_EQ(index.size(), 0U);
});

const Contract clears("clear_removes_all", [](Fixture& fixture) {
  auto index = fixture.open();
  EXPECT_EQ(index.clear(), 0U);
  const auto keys = fixture.keys(700);
  Model model;
  fill(fixture, index, model, keys);
  EXPECT_EQ(index.clear(), keys.size());
  EXPECT_EQ("", compare_all(index, Model(), keys));
});

// As when the oldest entries of each user expire.
const Contract prefixes("loops_over_prefixes_stay_inside", bytes_keys, [](Fixture& fixture) {
  if (!fixture.type().ordered) return;
  auto index = fixture.open();
  const auto key = [](char user, unsigned number) {
    return std::string("user:") + user + ":" + std::to_string(100 + number);
  };
  constexpr unsigned kEach = 60;
  for (const bool backwards : {false, true}) {
    for (const char user : {'a', 'b', 'c'})
      for (unsigned i = 0; i < kEach; ++i) index.put(key(user, i), fixture.small_value());
    unsigned shown = 0;
    index.walk_prefix(std::string("user:b:"), backwards, [&](DatumView view, DatumView) {
      EXPECT_EQ(view, DatumView(key('b', backwards ? kEach - 1 - shown : shown)));
      for (const char user : {'a', 'b', 'c'}) {  // at both ends
        index.erase(key(user, shown));
        index.erase(key(user, kEach - 1 - shown));
      }
      return ++shown < 1000;
    });
    EXPECT_GE(shown, kEach / 2);
    EXPECT_LE(shown, kEach);
  }
});

// A step down to the leaf at the left begins with a key just below this leaf's bound. Here whole
// leaves lie between the two: the bounds stay where they are while keys are put below each of them.
const Contract between(
    "steps_down_pass_over_no_leaf", bytes_keys,
    [](Fixture& fixture) {
      if (!fixture.type().ordered) return;
      auto index = fixture.open();
      const Datum value = fixture.small_value();
      std::vector<std::string> keys;
      for (char first = 'A'; first < 'Z'; ++first)
        for (char second = 'B'; second < 'z'; ++second) keys.push_back({first, second});
      for (const std::string& key : keys) index.put(key, value);
      constexpr unsigned kBounds = 80;  // more than there are keys in a leaf
      constexpr unsigned kBetween = 150;
      for (unsigned bound = 0; bound < kBounds; ++bound) {
        const std::string below = keys[200 + bound].substr(0, 1) +
                                  static_cast<char>(keys[200 + bound][1] - 1) +
                                  std::string(80, '\xff');
        for (unsigned i = 0; i < kBetween; ++i) {
          keys.push_back(below + std::to_string(1000 + i));
          index.put(keys.back(), value);
        }
      }
      std::sort(keys.begin(), keys.end());
      std::size_t left = keys.size();
      index.walk_range(keys[0], std::nullopt, true, [&](DatumView key, DatumView) {
        --left;
        EXPECT_EQ(key, DatumView(keys[left]));
        return left > 0 && !testing::Test::HasFailure();
      });
      EXPECT_EQ(left, 0U);
    },
    kInMemory);

// The other thread erases and inserts at both ends of the range and outside of it.
const Contract threads(
    "loops_stay_inside_beside_a_thread", ordered,
    [](Fixture& fixture) {
      auto index = fixture.open();
      const auto keys = fixture.keys_of(90, KeyStyle::clustered);
      for (const Datum& key : keys) index.put(key, fixture.small_value());
      const Datum value = fixture.small_value();
      std::atomic<bool> ended{false};
      std::thread writer([&] {
        for (std::size_t i = 0; !ended.load(std::memory_order_relaxed); i = (i + 7) % keys.size()) {
          if (i >= 40 && i < 50) continue;  // these stay
          if (!index.erase(keys[i])) index.insert(keys[i], value);
        }
      });
      for (int round = 0; round < 120 && !testing::Test::HasFailure(); ++round) {
        const bool backwards = round % 3 > 0;
        std::size_t stay = 0, next = backwards ? 60 : 30;
        index.walk_range(keys[30], keys[60], backwards, [&](DatumView key, DatumView) {
          const auto found = std::lower_bound(keys.begin(), keys.end(), key,
                                              [](const Datum& a, DatumView b) { return a < b; });
          const auto at = static_cast<std::size_t>(found - keys.begin());
          const bool inside = backwards ? at >= 30 && at < next : at >= next && at < 60;
          EXPECT_TRUE(inside) << show(key) << " is out of order or out of the range";
          next = backwards ? at : at + 1;
          stay += at >= 40 && at < 50 ? 1 : 0;
          return inside;
        });
        EXPECT_EQ(stay, 10U);
      }
      ended.store(true, std::memory_order_relaxed);
      writer.join();
    },
    kInMemory);

/// The pairs of a range of the interface of bytes.
template <class Range>
std::vector<Index::Pair> pairs_of(const Range& range) {
  std::vector<Index::Pair> pairs;
  for (const auto& pair : range) pairs.push_back(pair);
  EXPECT_EQ(range.empty(), pairs.empty());
  EXPECT_EQ(range.front(), pairs.empty() ? std::nullopt : std::optional(pairs.front()));
  if (!pairs.empty()) {
    EXPECT_EQ(range.begin()->first, pairs.front().first);
  }
  return pairs;
}

const Contract bytes("ranges_of_bytes_are_those_of_the_model", ordered, [](Fixture& fixture) {
  const auto index = Index::open_or_create(fixture.pool(), fixture.info());
  std::vector<Index::Pair> all;
  for (const Datum& key : fixture.keys_of(200, KeyStyle::mixed)) {
    all.emplace_back(encoded(key), encoded(fixture.small_value()));
    index->put(all.back().first, all.back().second);
  }
  const auto expect_range = [&](const Index::Range& range, const auto& is_in) {
    std::vector<Index::Pair> expected;
    std::copy_if(all.begin(), all.end(), std::back_inserter(expected),
                 [&](const Index::Pair& pair) { return is_in(pair.first); });
    EXPECT_EQ(pairs_of(range), expected);
    std::reverse(expected.begin(), expected.end());
    EXPECT_EQ(pairs_of(range.reversed()), expected);
    std::reverse(expected.begin(), expected.end());
    EXPECT_EQ(pairs_of(range.reversed().reversed()), expected);
  };
  for (const std::string& bound :
       {std::string(), std::string("\x7f"), std::string("\xff"), all[70].first, all.back().first}) {
    expect_range(index->range(bound), [&](const std::string& key) { return key >= bound; });
    expect_range(index->range(all[20].first, bound),
                 [&](const std::string& key) { return key >= all[20].first && key < bound; });
    expect_range(index->prefix(bound),
                 [&](const std::string& key) { return key.starts_with(bound); });
    const auto from = std::find_if(all.begin(), all.end(),
                                   [&](const Index::Pair& pair) { return pair.first >= bound; });
    const auto most = std::min<std::ptrdiff_t>(30, all.end() - from);
    EXPECT_EQ(index->scan(bound, 30), std::vector<Index::Pair>(from, from + most));
  }
  EXPECT_EQ(index->erase_range(all[150].first), all.size() - 150);
  EXPECT_EQ(index->last()->first, all[149].first);
  EXPECT_EQ(index->clear(), 150U);
  EXPECT_TRUE(index->range("").empty());
});

}  // namespace
}  // namespace perdix::test
