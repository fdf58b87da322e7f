// Limits: too large keys and values, and a full pool. A call that throws has changed nothing.
#include <sys/mman.h>

#include <algorithm>
#include <string>
#include <vector>

#include "index/test_options.h"
#include "support/contract.h"

namespace perdix::test {
namespace {

/// 4 GiB of zeros that take no memory until they are written.
class HugeValue {
 public:
  HugeValue()
      : begin_(::mmap(nullptr, kSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                      0)) {}
  ~HugeValue() {
    if (begin_ != MAP_FAILED) ::munmap(begin_, kSize);
  }
  HugeValue(const HugeValue&) = delete;
  HugeValue& operator=(const HugeValue&) = delete;

  bool usable() const { return begin_ != MAP_FAILED; }
  std::string_view bytes() const { return {static_cast<const char*>(begin_), kSize}; }

 private:
  static constexpr std::size_t kSize = kMaxValueSize + 1;
  void* begin_;
};

const Contract keys_too_large("keys_of_64_KiB_are_too_large", bytes_keys, [](Fixture& fixture) {
  auto index = fixture.open();
  Model model;
  const auto keys = fixture.keys(40);
  fill(fixture, index, model, keys);
  for (const std::size_t size : {kMaxKeySize + 1, kMaxKeySize + 2, std::uint64_t{1} << 20}) {
    const std::string key(size, 'm');  // the longest key is a prefix of it
    const auto value = fixture.small_value();
    EXPECT_EQ(error_of([&] { index.put(key, value); }), Errc::too_large) << size;
    EXPECT_EQ(error_of([&] { index.insert(key, value); }), Errc::too_large) << size;
    EXPECT_EQ(error_of([&] { index.update(key, value); }), Errc::too_large) << size;
    // A call that only asks may also say that there is no such key.
    const auto allowed = [](std::optional<Errc> error) {
      return !error || *error == Errc::too_large;
    };
    EXPECT_TRUE(allowed(error_of([&] { EXPECT_FALSE(index.erase(key)); }))) << size;
    EXPECT_TRUE(allowed(error_of([&] { EXPECT_FALSE(index.get(key)); }))) << size;
    EXPECT_TRUE(allowed(error_of([&] { EXPECT_FALSE(index.contains(key)); }))) << size;
  }
  EXPECT_EQ("", compare_all(index, model, keys));
});

const Contract values_too_large(
    "values_of_4_GiB_are_too_large", bytes_values, [](Fixture& fixture) {
      const HugeValue huge;
      if (!huge.usable()) GTEST_SKIP() << "no room for 4 GiB of addresses";
      auto index = fixture.open();
      Model model;
      const auto keys = fixture.keys(40);
      fill(fixture, index, model, keys);
      model.erase(keys.back());
      index.erase(keys.back());
      const auto bytes = huge.bytes();
      EXPECT_EQ(error_of([&] { index.put(keys.front(), bytes); }), Errc::too_large);
      EXPECT_EQ(error_of([&] { index.put(keys.back(), bytes); }), Errc::too_large);
      EXPECT_EQ(error_of([&] { index.insert(keys.back(), bytes); }), Errc::too_large);
      EXPECT_EQ(error_of([&] { index.update(keys.front(), bytes); }), Errc::too_large);
      EXPECT_EQ("", compare_all(index, model, keys));
    });

constexpr std::uint64_t kSmallPool = 32 << 20;

/// A key and a value so large that a small pool is full after some thousand pairs where they can be
/// large at all.
Datum wide_key(const Fixture& fixture, std::uint64_t i) {
  if (fixture.key_kind() == Kind::u64) return i;
  return std::to_string(1'000'000'000 + i) + std::string(i % 500, 'k');
}

Datum wide_value(Fixture& fixture, std::uint64_t i) {
  if (fixture.value_kind() == Kind::u64) return mix(i);
  return bytes_of(i, fixture.rng().below(16'000));
}

/// Fills the pool with an index of large values and gives a sixteenth back, so that it is full
/// again after as many numbers as wide values, and not after a million.
void fill_with_ballast(Fixture& fixture) {
  constexpr std::uint64_t kPiece = 12'000;
  const auto types = index_types();
  const auto wide = std::find_if(types.begin(), types.end(), [&](const IndexType& type) {
    return type.name == fixture.type().name && type.value_kind == Kind::bytes;
  });
  AnyIndex ballast = fixture.open_as(*wide, "ballast");
  std::uint64_t pieces = 0;
  while (!error_of([&] { ballast.put(pieces, bytes_of(pieces, kPiece)); })) ++pieces;
  for (std::uint64_t i = 0; i < pieces / 16; ++i) ballast.erase(i);
}

/// Inserts until the pool is full; each failed insert must have changed nothing.
void fill_up(Fixture& fixture, AnyIndex& index, Model& model) {
  int failures = 0;
  for (std::uint64_t i = 0; failures < 20; ++i) {
    const auto key = wide_key(fixture, i % 2 == 0 ? i : ~i % 100'000'000);
    const auto value = wide_value(fixture, i);
    const auto error = error_of([&] { index.put(key, value); });
    if (!error) {
      model.put(key, value);
      continue;
    }
    ASSERT_EQ(*error, Errc::out_of_space);
    ++failures;
    ASSERT_EQ(index.get(key), model.get(key)) << "a put that threw left " << show(key);
    ASSERT_EQ(index.size(), model.size());
  }
  ASSERT_LE(fixture.pool().info().size, kSmallPool);
}

/// Erases every pair in the first half of the keys.
void erase_half(AnyIndex& index, Model& model) {
  std::vector<Datum> keys;
  for (const auto& [key, value] : model) keys.push_back(key);
  keys.resize(keys.size() / 2);
  for (const auto& key : keys) {
    ASSERT_TRUE(index.erase(key)) << show(key) << ": erase needs no space";
    model.erase(key);
  }
}

void exhaust(Fixture& fixture) {
  PoolOptions options = fixture.options();
  options.max_size = kSmallPool;
  fixture.replace_pool(options);
  Model model;
  const std::vector<Datum> none;
  if (fixture.value_kind() == Kind::u64) fill_with_ballast(fixture);
  std::optional<AnyIndex> index(fixture.open());
  for (int round = 0; round < 2; ++round) {
    fill_up(fixture, *index, model);
    if (testing::Test::HasFatalFailure()) return;
    ASSERT_GT(model.size(), 100U) << "the pool was full too soon";
    ASSERT_EQ("", compare_all(*index, model, none)) << "when full";
    fixture.reopen(index);
    ASSERT_EQ("", compare_all(*index, model, none)) << "when full, opened again";
    const auto last_key = model.begin()->first;
    const auto last_value = model.begin()->second;
    erase_half(*index, model);
    ASSERT_EQ("", compare_all(*index, model, none)) << "after erasing half";
    ASSERT_TRUE(index->insert(last_key, last_value)) << "erasing made room";
    model.insert(last_key, last_value);
  }
  fixture.reopen(index);
  ASSERT_EQ("", compare_all(*index, model, none)) << "at the end";
}

// Not in page_cache: filling a pool there takes minutes of syncs, and the path is the same.
const Contract out_of_space(
    "a_full_pool_keeps_everything", [](Fixture& fixture) { exhaust(fixture); }, kInProcess);

const Contract out_of_space_power("a_full_pool_that_survives_power_keeps_everything", bytes_values,
                                  [](Fixture& fixture) { exhaust(fixture); },
                                  {Domain::memory_controller});

/// Puts small pairs until the pool is full, and returns their keys.
std::vector<Datum> fill_with_small_pairs(Fixture& fixture, AnyIndex& index) {
  std::vector<Datum> keys;
  for (;;) {
    const std::uint64_t number = mix(keys.size());
    const Datum key =
        fixture.key_kind() == Kind::u64 ? Datum(number) : Datum(std::to_string(number));
    const Datum value = fixture.value_kind() == Kind::u64 ? Datum(number) : Datum("a small value");
    if (const auto error = error_of([&] { index.put(key, value); })) {
      EXPECT_EQ(*error, Errc::out_of_space);
      return keys;
    }
    keys.push_back(key);
  }
}

/// How many bytes another index can have as large values.
std::uint64_t bytes_for_others(Fixture& fixture) {
  constexpr std::uint64_t kSize = 10'000;
  const auto types = index_types();
  const auto other = std::find_if(types.begin(), types.end(), [&](const IndexType& type) {
    return type.engine != fixture.type().engine && type.value_kind == Kind::bytes &&
           type.key_kind == Kind::u64;
  });
  AnyIndex index = fixture.open_as(*other, "of others");
  std::uint64_t count = 0;
  while (!error_of([&] { index.put(count, bytes_of(count, kSize)); })) ++count;
  return count * kSize;
}

const Contract erases_when_full(
    "all_can_be_erased_in_a_full_pool_and_others_have_the_space",
    [](Fixture& fixture) {
      PoolOptions options = fixture.options();
      options.max_size = kSmallPool / 2;
      fixture.replace_pool(options);
      AnyIndex index = fixture.open();
      std::vector<Datum> keys = fill_with_small_pairs(fixture, index);
      ASSERT_GT(keys.size(), 10'000U);
      ASSERT_EQ(index.size(), keys.size());
      std::shuffle(keys.begin(), keys.end(), fixture.rng());
      for (const Datum& key : keys) ASSERT_TRUE(index.erase(key)) << show(key);
      EXPECT_EQ(index.size(), 0U);
      EXPECT_GT(bytes_for_others(fixture), options.max_size * 3 / 4);
      EXPECT_TRUE(index.check().ok());
    },
    kInProcess);

// It has no log yet, and there is no space for one.
const Contract opens_when_full(
    "an_index_opens_without_buffers_in_a_full_pool", buffered,
    [](Fixture& fixture) {
      PoolOptions options = fixture.options();
      options.max_size = kSmallPool / 2;
      fixture.replace_pool(options);
      const IndexType& type = fixture.type();
      IndexOptions without = type.options();
      without.named["dram_budget"] = "0";
      detail::index::set_if_there(without, type.engine, "technique", Technique::none);
      std::optional<AnyIndex> index(type.open_with(fixture.pool(), "index", without));
      const std::vector<Datum> keys = fill_with_small_pairs(fixture, *index);
      for (int opening = 0; opening < 2; ++opening) {
        index.reset();
        fixture.reopen_pool();
        ASSERT_EQ(error_of([&] { index.emplace(fixture.open()); }), std::nullopt);
        EXPECT_EQ(index->size(), opening == 0 ? keys.size() : keys.size() - keys.size() / 2);
        for (std::size_t i = keys.size() / 2; i-- > 0;)
          ASSERT_EQ(index->erase(keys[i]), opening == 0) << show(keys[i]);
      }
      ASSERT_TRUE(index->insert(keys[0], fixture.small_value()));
      EXPECT_TRUE(index->contains(keys[0]));
    },
    kInProcess);

/// Takes all the space that there is, in blocks of all sizes.
void take_all(Index& index, std::uint64_t& taken) {
  for (std::size_t size = 32 << 10; size > 16; size -= size / 16 + 1) {
    const std::string value(size, 'v');
    const auto put = [&] {
      const auto key = encode_u64(taken);
      index.put({key.data(), key.size()}, value);
    };
    for (; !error_of(put); ++taken) continue;
  }
}

// Another index takes all that this one leaves, and whatever it gives back: emptied leaves go all
// the same.
const Contract joins_when_full(
    "emptied_leaves_go_while_another_index_takes_all", ordered,
    [](Fixture& fixture) {
      PoolOptions options = fixture.options();
      options.max_size = kSmallPool / 2;
      fixture.replace_pool(options);
      AnyIndex index = fixture.open();
      const auto other =
          Index::open_or_create(fixture.pool(), {"other", "fastfair", Kind::u64, Kind::bytes});
      std::uint64_t taken = 0;
      const std::uint64_t count = fill_with_small_pairs(fixture, index).size();
      take_all(*other, taken);
      const std::uint64_t leaves = index.stats().leaves;
      std::uint64_t erased = 0;
      for (const Row& row : index.scan(fixture.least_key(), count / 8)) {
        const auto error = error_of([&] { erased += index.erase(row.first) ? 1 : 0; });
        EXPECT_EQ(error.value_or(Errc::out_of_space), Errc::out_of_space);
      }
      EXPECT_GE(erased, count / 16) << "erasing needs no space, but for the names of strings";
      take_all(*other, taken);
      EXPECT_LE(index.stats().leaves, leaves - leaves * erased / count * 3 / 4);
      EXPECT_TRUE(index.check().ok()) << problems_of(index.check());
    },
    kInProcess);

// One value that does not fit, while there is room for small ones.
const Contract one_too_large_for_the_pool(
    "a_value_larger_than_the_pool_changes_nothing", bytes_values,
    [](Fixture& fixture) {
      PoolOptions options = fixture.options();
      options.max_size = kSmallPool;
      fixture.replace_pool(options);
      std::optional<AnyIndex> index(fixture.open());
      Model model;
      const auto keys = fixture.keys(50);
      fill(fixture, *index, model, keys);
      index->erase(keys[1]);
      model.erase(keys[1]);
      const std::string large(std::size_t{40} << 20, 'x');
      EXPECT_EQ(error_of([&] { index->put(keys[0], large); }), Errc::out_of_space);
      EXPECT_EQ(error_of([&] { index->update(keys[2], large); }), Errc::out_of_space);
      EXPECT_EQ(error_of([&] { index->insert(keys[1], large); }), Errc::out_of_space);
      EXPECT_EQ("", compare_all(*index, model, keys));
      fill(fixture, *index, model, keys);
      fixture.reopen(index);
      EXPECT_EQ("", compare_all(*index, model, keys)) << "after reopening";
    },
    kInMemory);

}  // namespace
}  // namespace perdix::test
