// Scans: bounds, limits, visitors that stop, throw or call back.
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "pool/pool_core.h"
#include "support/contract.h"

namespace perdix::test {
namespace {

constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

const Contract limits("scan_returns_at_most_its_limit", ordered, [](Fixture& fixture) {
  auto index = fixture.open();
  Model model;
  EXPECT_EQ("", compare_scan(index, model, fixture.least_key(), 10)) << "an empty index";
  const auto keys = fixture.keys(500);
  fill(fixture, index, model, keys);
  const std::size_t n = keys.size();
  for (const std::size_t limit :
       {std::size_t{0}, std::size_t{1}, std::size_t{2}, n / 2, n - 1, n, n + 1, kNoLimit}) {
    EXPECT_EQ("", compare_scan(index, model, fixture.least_key(), limit));
    EXPECT_EQ("", compare_scan(index, model, keys[n / 3], limit));
  }
});

// From each key, from just below and from just above it: so from both sides of every leaf's bounds.
const Contract boundaries("scan_starts_at_every_boundary", ordered, [](Fixture& fixture) {
  auto index = fixture.open();
  Model model;
  fill(fixture, index, model, fixture.keys(600));
  for (const auto& [key, value] : model) {
    ASSERT_EQ("", compare_scan(index, model, key, 3));
    ASSERT_EQ("", compare_scan(index, model, predecessor(key), 3));
    ASSERT_EQ("", compare_scan(index, model, successor(key), 3));
  }
});

const Contract gaps("scan_starts_within_gaps", ordered, [](Fixture& fixture) {
  auto index = fixture.open();
  Model model;
  const auto keys = fixture.keys_of(30 + fixture.count(1200), KeyStyle::dense);
  fill(fixture, index, model, keys);
  const std::size_t first = keys.size() / 5;  // a gap over several leaves, and many small ones
  for (std::size_t i = first; i < keys.size(); ++i) {
    if (i > 3 * first && i % 3 != 0) continue;
    EXPECT_TRUE(index.erase(keys[i]));
    model.erase(keys[i]);
  }
  for (std::size_t i = 0; i < keys.size(); i += 7) {
    ASSERT_EQ("", compare_scan(index, model, keys[i], 5)) << "from key " << i;
  }
  ASSERT_EQ("", compare_scan(index, model, keys.back(), 5));
  ASSERT_EQ("", compare_scan(index, model, successor(keys.back()), 5)) << "behind the last key";
});

const Contract visitor_stops("scan_stops_when_the_visitor_does", ordered, [](Fixture& fixture) {
  auto index = fixture.open();
  Model model;
  const auto keys = fixture.keys(300);
  fill(fixture, index, model, keys);
  for (const std::size_t wanted : {std::size_t{1}, std::size_t{2}, std::size_t{65}, keys.size()}) {
    std::size_t calls = 0;
    index.scan(fixture.least_key(), [&](DatumView key, DatumView value) {
      if (calls < keys.size()) {
        EXPECT_EQ(key, keys[calls]) << "row " << calls;
        EXPECT_EQ(model.get(key), value) << "row " << calls;
      }
      return ++calls < wanted;
    });
    EXPECT_EQ(calls, std::min(wanted, keys.size()));
  }
});

const Contract visitor_reads("a_visitor_may_read_the_index", ordered, [](Fixture& fixture) {
  auto index = fixture.open();
  Model model;
  fill(fixture, index, model, fixture.keys(200));
  std::size_t rows = 0;
  index.scan(fixture.least_key(), [&](DatumView key, DatumView value) {
    EXPECT_EQ(index.get(key), value);
    EXPECT_TRUE(index.contains(key));
    EXPECT_EQ("", compare_scan(index, model, key, 5));
    ++rows;
    return true;
  });
  EXPECT_EQ(rows, model.size());
});

// The visitor erases, replaces and adds keys around the one it is shown. Keys ascend all the same,
// and each untouched key is shown with its value.
const Contract visitor_writes("a_visitor_may_write_to_the_index", ordered, [](Fixture& fixture) {
  auto index = fixture.open();
  Model model;
  const auto keys = fixture.keys(800);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i % 4 == 3) continue;  // these the visitor adds
    const auto value = fixture.small_value();
    index.put(keys[i], value);
    model.put(keys[i], value);
  }
  std::size_t next_untouched = 0;
  std::optional<Datum> last;
  index.scan(fixture.least_key(), [&](DatumView shown, DatumView value) {
    const Datum key = shown.copy();
    EXPECT_TRUE(!last || *last < key) << show(key) << " after " << show(*last);
    last = key;
    const auto at =
        static_cast<std::size_t>(std::lower_bound(keys.begin(), keys.end(), key) - keys.begin());
    if (at % 4 == 0) {
      EXPECT_EQ(at, next_untouched) << "a scan skipped or repeated a key";
      EXPECT_EQ(model.get(key), value);
      next_untouched = at + 4;
    }
    for (std::size_t i = at + 1; i < std::min(at + 4, keys.size()); ++i) {
      const auto fresh = fixture.small_value();
      if (i % 4 == 1 && index.erase(keys[i])) model.erase(keys[i]);
      if (i % 4 == 2 && index.update(keys[i], fresh)) model.update(keys[i], fresh);
      if (i % 4 == 3 && index.insert(keys[i], fresh)) model.insert(keys[i], fresh);
    }
    return true;
  });
  EXPECT_GE(next_untouched, keys.size()) << "the scan ended early";
  EXPECT_EQ("", compare_all(index, model, keys));
});

const Contract visitor_empties("a_visitor_may_empty_the_index", ordered, [](Fixture& fixture) {
  auto index = fixture.open();
  Model model;
  const auto keys = fixture.keys(300);
  fill(fixture, index, model, keys);
  std::optional<Datum> last;
  index.scan(fixture.least_key(), [&](DatumView key, DatumView) {
    EXPECT_TRUE(!last || *last < key);
    last = key.copy();
    for (const auto& other : keys) index.erase(other);
    return true;
  });
  EXPECT_EQ("", compare_all(index, Model(), keys));
});

const Contract visitor_throws("a_visitor_may_throw", ordered, [](Fixture& fixture) {
  auto index = fixture.open();
  Model model;
  const auto keys = fixture.keys(200);
  fill(fixture, index, model, keys);
  for (const std::size_t wanted : {std::size_t{1}, keys.size() / 2, keys.size()}) {
    std::size_t calls = 0;
    const auto scan = [&] {
      index.scan(fixture.least_key(), [&](DatumView, DatumView) -> bool {
        if (++calls == wanted) throw std::runtime_error("enough");
        return true;
      });
    };
    EXPECT_THROW(scan(), std::runtime_error);
    EXPECT_EQ(calls, wanted);
    index.put(keys.front(), *model.get(keys.front()));  // nothing is left locked
    index.put(keys.back(), *model.get(keys.back()));
  }
  EXPECT_EQ("", compare_all(index, model, keys));
});

const Contract after_erasing("scan_shows_nothing_erased", ordered, [](Fixture& fixture) {
  std::optional<AnyIndex> index(fixture.open());
  Model model;
  const auto keys = fixture.keys(400);
  fill(fixture, *index, model, keys);
  for (const auto& key : keys) {
    index->erase(key);
    model.erase(key);
    if (fixture.rng().once_in(keys.size() / 8 + 1)) {
      ASSERT_EQ("", compare_scan(*index, model, fixture.least_key(), kNoLimit)) << show(key);
    }
  }
  ASSERT_EQ("", compare_scan(*index, model, fixture.least_key(), kNoLimit));
  fixture.reopen(index);
  ASSERT_EQ("", compare_scan(*index, model, fixture.least_key(), kNoLimit)) << "after reopening";
});

/// Writes the key of one pair over that of another one, in each leaf that has it or had it. Every
/// engine's leaf has pairs of a key's word and a value's word, so a value that is like no other
/// word in the pool tells where.
class DamagedLeaf {
 public:
  DamagedLeaf(Pool& pool, std::uint64_t value, std::uint64_t other_value)
      : words_(reinterpret_cast<std::uint64_t*>(pool.core()->base())),
        count_(pool.core()->size() / sizeof(std::uint64_t)) {
    std::uint64_t other = 0;
    for (const std::size_t at : keys_of(other_value)) other = words_[at];
    for (const std::size_t at : keys_of(value)) {
      before_.emplace_back(at, words_[at]);
      words_[at] = other;
    }
  }
  ~DamagedLeaf() {
    for (const auto& [at, word] : before_) words_[at] = word;
  }
  DamagedLeaf(const DamagedLeaf&) = delete;
  DamagedLeaf& operator=(const DamagedLeaf&) = delete;

  bool found() const { return !before_.empty(); }

 private:
  std::vector<std::size_t> keys_of(std::uint64_t value) const {
    std::vector<std::size_t> places;
    for (std::size_t i = 1; i < count_; ++i) {
      if (words_[i] == value && words_[i - 1] != 0) places.push_back(i - 1);
    }
    return places;
  }

  std::uint64_t* words_;
  std::size_t count_;
  std::vector<std::pair<std::size_t, std::uint64_t>> before_;
};

bool integer_values_in_leaves(const IndexType& type) {
  return type.ordered && type.value_kind == Kind::u64 && !type.buffered();
}

const Contract damaged_order(
    "keys_out_of_order_in_a_damaged_leaf_are_corrupt", integer_values_in_leaves,
    [](Fixture& fixture) {
      constexpr std::uint64_t kPairs = 600, kTag = 0xabcd'ef01'2345'0000;
      auto index = fixture.open();
      const auto key = [&](std::uint64_t i) {
        return fixture.key_kind() == Kind::u64 ? Datum(1000 + 3 * i)
                                               : Datum("key " + std::to_string(1000 + i));
      };
      for (std::uint64_t i = 0; i < kPairs; ++i) index.put(key(i), kTag + i);
      fixture.pool()
          .core()
          ->background()
          .drain();  // some engines bring pairs to their leaves there
      // The key is there twice; the key is of a leaf behind, or before.
      for (const int distance : {2, 200, -2, -200}) {
        for (std::uint64_t i = 300; i < 340; i += 5) {
          const DamagedLeaf damaged(
              fixture.pool(), kTag + i,
              kTag + static_cast<std::uint64_t>(static_cast<int>(i) + distance) % kPairs);
          ASSERT_TRUE(damaged.found());
          std::optional<Datum> last;
          const auto error = error_of([&] {
            index.scan(fixture.least_key(), [&](DatumView shown, DatumView) {
              EXPECT_TRUE(!last || DatumView(*last) < shown) << "shown out of order";
              last = shown.copy();
              return true;
            });
          });
          // A key that is too small for its leaf is passed over, as if it were of the one before.
          if (distance == 2 || distance == 200) {
            EXPECT_EQ(error, Errc::corrupt) << i << " has the key of " << distance << " behind";
          } else {
            EXPECT_TRUE(!error || *error == Errc::corrupt);
          }
          if (testing::Test::HasFailure()) return;
        }
      }
      EXPECT_EQ(index.scan(fixture.least_key(), 2 * kPairs).size(), kPairs);
    },
    kInProcess);

}  // namespace
}  // namespace perdix::test
