// A visitor may do everything that its thread may do elsewhere, even where calls must wait for
// readers: in a full pool, and when an index or a pool is closed.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/contract.h"

namespace perdix::test {
namespace {

constexpr std::uint64_t kFullPool = 32 << 20;
constexpr std::size_t kPairs = 300;

/// Values of bytes are long enough that a few of them need space of their own.
Datum long_value(const Fixture& fixture, std::uint64_t i) {
  if (fixture.value_kind() == Kind::u64) return i;
  return bytes_of(i, 700);
}

/// Of a type with the same engine whose values are bytes.
const IndexType& type_of_bytes(const Fixture& fixture) {
  const auto types = index_types();
  return *std::find_if(types.begin(), types.end(), [&](const IndexType& type) {
    return type.name == fixture.type().name && type.key_kind == Kind::u64 &&
           type.value_kind == Kind::bytes;
  });
}

/// Fills the pool to the last small block.
void fill_with(AnyIndex& ballast) {
  std::uint64_t key = 0;
  for (const std::size_t size : {12'000, 2000, 300, 20}) {
    while (!error_of([&] { ballast.put(key, bytes_of(key, size)); })) ++key;
  }
}

/// A full pool with an index of some leaves in it.
struct FullPool {
  explicit FullPool(Fixture& fixture) : keys(fixture.keys_of(kPairs, KeyStyle::dense)) {
    PoolOptions options = fixture.options();
    options.max_size = kFullPool;
    fixture.replace_pool(options);
    index.emplace(fixture.open());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      index->put(keys[i], long_value(fixture, i));
      model.put(keys[i], long_value(fixture, i));
    }
    ballast.emplace(fixture.open_as(type_of_bytes(fixture), "ballast"));
    fill_with(*ballast);
  }

  std::vector<Datum> keys;
  Model model;
  std::optional<AnyIndex> index;
  std::optional<AnyIndex> ballast;
};

/// Changes the model as the index was changed, if the call did not throw; the only error that it
/// may throw is that there is no space.
template <class Call, class Change>
bool try_to(Call call, Change change) {
  const auto error = error_of(call);
  if (!error) change();
  EXPECT_EQ(error.value_or(Errc::out_of_space), Errc::out_of_space);
  return !error;
}

// In a full pool each of these calls may have to wait until readers are gone.
const Contract writes_when_full(
    "a_visitor_may_write_in_a_full_pool", ordered,
    [](Fixture& fixture) {
      FullPool full(fixture);
      std::size_t rows = 0;
      std::size_t refused = 0;
      full.index->scan(fixture.least_key(), [&](DatumView shown, DatumView) {
        const Datum key = shown.copy();
        const std::uint64_t row = rows++;
        const Datum grown = fixture.value_kind() == Kind::u64 ? Datum(row) : bytes_of(row, 900);
        refused +=
            !try_to([&] { full.index->put(key, grown); }, [&] { full.model.put(key, grown); });
        if (row % 3 == 0) try_to([&] { full.index->erase(key); }, [&] { full.model.erase(key); });
        try_to([&] { full.ballast->put(1'000'000 + row, bytes_of(row, 5000)); }, [] {});
        return true;
      });
      EXPECT_EQ(rows, kPairs);
      EXPECT_TRUE(refused > 0 || fixture.value_kind() == Kind::u64) << "the pool was never full";
      EXPECT_EQ("", compare_all(*full.index, full.model, full.keys));
    },
    kInMemory);

// What was freed has a grace period before it can be used again, which the visitor's own scan must
// not prevent.
const Contract frees_when_full(
    "a_visitor_gets_the_space_that_it_frees", ordered,
    [](Fixture& fixture) {
      FullPool full(fixture);
      std::uint64_t shown = 0;
      full.index->scan(fixture.least_key(), [&](DatumView, DatumView) {
        const std::uint64_t first = shown++ * 8;
        for (std::uint64_t i = first; i < first + 8; ++i) full.ballast->erase(i);
        // Twice of what a reader of the present moment could keep from being used again.
        for (std::uint64_t i = 0; i < 2; ++i) {
          EXPECT_EQ(error_of([&] { full.ballast->put(first + i, bytes_of(i, 12'000)); }),
                    std::nullopt)
              << "row " << shown;
        }
        return shown < 20;
      });
      EXPECT_EQ(shown, 20U);
      EXPECT_EQ("", compare_all(*full.index, full.model, full.keys));
    },
    kInMemory);

/// Runs `act` in the visitors of `depth` scans, one in the other, somewhere in the middle of each.
void within_scans(const Fixture& fixture, const AnyIndex& index, int depth,
                  const std::function<void()>& act) {
  if (depth == 0) return act();
  std::optional<Datum> last;
  std::size_t rows = 0;
  index.scan(fixture.least_key(), [&](DatumView key, DatumView value) {
    EXPECT_TRUE(!last || *last < key.copy());
    last = key.copy();
    if (++rows == kPairs / 2) within_scans(fixture, index, depth - 1, act);
    EXPECT_EQ(index.get(key), value);  // the view still holds
    return true;
  });
  EXPECT_EQ(rows, kPairs);
}

/// A pool beside the fixture's, as it lives from creation to its end.
void use_another_pool(Fixture& fixture) {
  const auto path = fixture.path().parent_path() / "another";
  {
    PoolOptions options = fixture.options();
    options.max_size = kFullPool;
    Pool another = Pool::create(path, options);
    AnyIndex index = fixture.type().open(another, "index");
    const auto keys = fixture.keys_of(kPairs, KeyStyle::dense);
    for (const Datum& key : keys) index.put(key, fixture.small_value());
    for (const Datum& key : keys) index.erase(key);
  }
  std::filesystem::remove(path);
}

/// Ends an index and drops it, and opens others.
void use_other_indexes(Fixture& fixture, std::optional<AnyIndex>& other) {
  other.reset();
  EXPECT_EQ(error_of([&] { fixture.pool().drop("other"); }), std::nullopt);
  try_to(
      [&] {
        other.emplace(fixture.open("other"));
        for (const Datum& key : fixture.keys_of(kPairs, KeyStyle::dense))
          other->put(key, long_value(fixture, 1));
      },
      [] {});
}

void check_within(const AnyIndex& index) {
  const CheckReport report = index.check();
  EXPECT_TRUE(report.ok()) << problems_of(report);
  EXPECT_EQ(index.size(), report.pairs);
  index.stats();
}

/// All of it, in nested scans.
void upheave(Fixture& fixture, AnyIndex& index, std::optional<AnyIndex>& other) {
  within_scans(fixture, index, 3, [&] {
    use_other_indexes(fixture, other);
    check_within(index);
    use_another_pool(fixture);
    EXPECT_EQ(error_of([&] { fixture.pool().close(); }), Errc::in_use);
    EXPECT_EQ(error_of([&] { fixture.pool().drop("index"); }), Errc::in_use);
  });
}

const Contract upheaval("a_visitor_may_open_close_and_drop", ordered, [](Fixture& fixture) {
  auto index = fixture.open();
  Model model;
  const auto keys = fixture.keys_of(kPairs, KeyStyle::dense);
  fill(fixture, index, model, keys);
  std::optional<AnyIndex> other(fixture.open("other"));
  Model of_other;
  fill(fixture, *other, of_other, keys);
  for (const Datum& key : keys) other->erase(key);  // so that much waits for its grace period
  upheave(fixture, index, other);
  EXPECT_EQ("", compare_all(index, model, keys));
});

const Contract upheaval_when_full(
    "a_visitor_may_open_close_and_drop_in_a_full_pool", ordered,
    [](Fixture& fixture) {
      FullPool full(fixture);
      std::optional<AnyIndex> other;
      for (std::uint64_t i = 0; i < 100; ++i) full.ballast->erase(i);
      ASSERT_EQ(error_of([&] { other.emplace(fixture.open("other")); }), std::nullopt)
          << "what was erased is room for a new index";
      fill_with(*full.ballast);
      for (const Datum& key : full.keys)
        try_to([&] { other->put(key, long_value(fixture, 1)); }, [] {});
      for (std::uint64_t i = 0; i < 100; ++i) full.ballast->erase(i);  // a drop may need space
      upheave(fixture, *full.index, other);
      EXPECT_EQ("", compare_all(*full.index, full.model, full.keys));
    },
    kInProcess);

// An exception ends all three scans. Whatever they held would keep the space of what is erased
// afterwards from being used again.
const Contract throws_when_full(
    "a_visitor_may_throw_in_a_full_pool", ordered,
    [](Fixture& fixture) {
      FullPool full(fixture);
      const auto scan = [&] {
        within_scans(fixture, *full.index, 3, [] { throw std::runtime_error("enough"); });
      };
      EXPECT_THROW(scan(), std::runtime_error);
      for (std::uint64_t i = 0; i < 8; ++i) full.ballast->erase(i);
      EXPECT_EQ(error_of([&] { full.ballast->put(0, bytes_of(0, 12'000)); }), std::nullopt);
      EXPECT_EQ("", compare_all(*full.index, full.model, full.keys));
    },
    kInProcess);

// More bytes than a scan copies in one step, and values larger than that, between small ones.
const Contract large_values(
    "scan_shows_values_of_every_size", ordered_bytes_values,
    [](Fixture& fixture) {
      auto index = fixture.open();
      Model model;
      const auto keys = fixture.keys_of(90, KeyStyle::dense);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        const std::size_t size = i % 30 == 7 ? 3'000'000 : i % 3 == 0 ? 100'000 : 10;
        const Datum value = bytes_of(i, size + i);
        index.put(keys[i], value);
        model.put(keys[i], value);
      }
      for (const std::size_t limit : {std::size_t{1}, std::size_t{8}, std::size_t{45}, keys.size()})
        EXPECT_EQ("", compare_scan(index, model, fixture.least_key(), limit));
      std::size_t rows = 0;
      index.scan(fixture.least_key(), [&](DatumView key, DatumView value) {
        EXPECT_EQ(key, keys[rows]);
        EXPECT_TRUE(model.get(key) == value) << "row " << rows;
        // The next pairs may have been copied by now: what is shown is what was there then.
        return ++rows < keys.size();
      });
      EXPECT_EQ(rows, keys.size());
    },
    kInMemory);

}  // namespace
}  // namespace perdix::test
