// Pairs of one leaf in PM, without a DRAM side: what each change leaves in the leaf, what becomes
// of the blocks of strings, and what is left of a change for which there is no space.
#include "index/sptree/leaf_store.h"

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>

#include <perdix/error.h>

#include "index/common/test_pool.h"

namespace perdix::detail::index::sptree {
namespace {

/// A leaf that no index knows, and its pairs. `Kinds`: a pair of the types of keys and values.
template <class Kinds>
class LeafStoreTest : public testing::Test {
 protected:
  using K = typename Kinds::first_type;
  using V = typename Kinds::second_type;

  /// A pool, whose index is not opened.
  class EmptyPool : public TestPool<EmptyPool> {};

  LeafStoreTest() {
    pool::PoolCore& core = pool_.core();
    alloc::Session session = core.allocator().session();
    const pm::Offset offset = session.reserve(sizeof(Leaf));
    leaf_ = core.template at<Leaf>(offset);
    core.pm().zero(leaf_, sizeof(Leaf));
    core.pm().persist(leaf_, sizeof(Leaf));
    session.log();
    session.finish();
  }

  template <class T>
  static T some(std::uint64_t number) {
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      return number;
    } else {
      return "string " + std::to_string(number);
    }
  }

  void add(unsigned slot, std::uint64_t key, std::uint64_t value) {
    const K added = some<K>(key);
    store_.add(*leaf_, slot, added, NewValue(View<V>(some<V>(value))), Codec<K>::hash16(added));
  }

  void replace(unsigned slot, std::uint64_t value) {
    store_.replace(*leaf_, slot, NewValue(View<V>(some<V>(value))));
  }

  /// The slot has a pair with this key and this value.
  void expect_pair(unsigned slot, std::uint64_t key, std::uint64_t value) {
    EXPECT_TRUE(slots_of(*leaf_).contains(slot));
    const Pair& pair = pair_at(*leaf_, slot);
    EXPECT_EQ(store_.keys().view(pair.key), some<K>(key));
    EXPECT_EQ(Codec<V>(pool_.core()).view(pair.value), some<V>(value));
    EXPECT_TRUE(sound_pair(store_.keys(), store_.values(), pair.key, pair.value));
  }

  EmptyPool pool_;
  Leaf* leaf_;
  LeafStore<K> store_{pool_.core(), kKindOf<V>};
};

using AllKinds =
    testing::Types<std::pair<std::uint64_t, std::uint64_t>, std::pair<std::uint64_t, std::string>,
                   std::pair<std::string, std::uint64_t>, std::pair<std::string, std::string>>;
TYPED_TEST_SUITE(LeafStoreTest, AllKinds);

TYPED_TEST(LeafStoreTest, APairIsThereUntilItIsRemoved) {
  const unsigned slots[] = {0, 63, 64, kLeafPairs - 1};
  for (const unsigned slot : slots) this->add(slot, slot, slot + 1);
  for (const unsigned slot : slots) this->expect_pair(slot, slot, slot + 1);
  this->replace(63, 7);
  this->expect_pair(63, 63, 7);
  this->expect_pair(64, 64, 65);
  this->store_.remove(*this->leaf_, 63);
  EXPECT_FALSE(slots_of(*this->leaf_).contains(63));
  EXPECT_EQ(slots_of(*this->leaf_).count(), 3U);
  this->add(63, 1, 2);
  this->expect_pair(63, 1, 2);
}

TYPED_TEST(LeafStoreTest, StringsGoWithTheirPairs) {
  const std::uint64_t before = this->pool_.allocated();
  for (unsigned slot = 0; slot < 20; ++slot) this->add(slot, slot, slot);
  const auto bytes = [&] { return static_cast<std::uint64_t>(this->store_.blob_bytes()); };
  EXPECT_EQ(this->pool_.allocated() - before, bytes());
  EXPECT_EQ(bytes() == 0, this->store_.all_inline());
  for (unsigned slot = 0; slot < 20; ++slot) this->replace(slot, slot + 100);
  EXPECT_EQ(this->pool_.allocated() - before, bytes());
  for (unsigned slot = 0; slot < 20; ++slot) this->store_.remove(*this->leaf_, slot);
  EXPECT_EQ(this->pool_.allocated(), before);
  EXPECT_EQ(this->store_.blob_bytes(), 0);
}

TYPED_TEST(LeafStoreTest, PlacedPairsCountNotBeforeTheirBits) {
  this->add(3, 1, 1);
  const SlotSet taken = slots_of(*this->leaf_);
  const auto pair_to_place = [](unsigned i) { return Pair{i, 2 * i}; };
  const Placed placed = this->store_.place(*this->leaf_, taken, kBufferPairs, pair_to_place);
  EXPECT_TRUE(placed.complete);
  EXPECT_EQ(placed.taken.count(), 1 + kBufferPairs);
  EXPECT_EQ(slots_of(*this->leaf_), taken);
  for (unsigned i = 0; i < kBufferPairs; ++i) {
    EXPECT_FALSE(taken.contains(placed.slots[i]));
    EXPECT_EQ(pair_at(*this->leaf_, placed.slots[i]).key, i);
    EXPECT_EQ(pair_at(*this->leaf_, placed.slots[i]).value, 2 * i);
  }
  this->expect_pair(3, 1, 1);
}

TYPED_TEST(LeafStoreTest, NothingIsPlacedWhereSlotsAreFew) {
  const SlotSet taken = SlotSet::all() - SlotSet::of(5) - SlotSet::of(90);
  const auto pair_to_place = [](unsigned i) { return Pair{i + 1, i + 1}; };
  EXPECT_TRUE(this->store_.place(*this->leaf_, taken, 2, pair_to_place).complete);
  EXPECT_EQ(this->store_.place(*this->leaf_, taken, 2, pair_to_place).taken, SlotSet::all());
  const Placed placed = this->store_.place(*this->leaf_, SlotSet::all(), 1, pair_to_place);
  EXPECT_FALSE(placed.complete);
  EXPECT_EQ(placed.taken, SlotSet::all());
}

using LeafStoreStrings = LeafStoreTest<std::pair<std::string, std::string>>;

TEST_F(LeafStoreStrings, WithoutSpaceNothingChanges) {
  add(0, 1, 2);
  const std::string large(std::size_t{4} << 20, 'v');
  const auto code_of = [](auto call) -> std::optional<Errc> {
    try {
      call();
    } catch (const Error& error) {
      return error.code();
    }
    return std::nullopt;
  };
  std::int64_t bytes = 0;
  SlotSet slots;
  std::optional<Errc> code;
  for (unsigned slot = 1; slot < kLeafPairs && !code; ++slot) {
    bytes = store_.blob_bytes();
    slots = slots_of(*leaf_);
    code = code_of([&] { store_.add(*leaf_, slot, "key", NewValue(std::string_view(large)), 0); });
  }
  EXPECT_EQ(code, Errc::out_of_space);
  EXPECT_EQ(store_.blob_bytes(), bytes);
  EXPECT_EQ(slots_of(*leaf_), slots);
  code = code_of([&] { store_.replace(*leaf_, 0, NewValue(std::string_view(large))); });
  EXPECT_EQ(code, Errc::out_of_space);
  expect_pair(0, 1, 2);
  EXPECT_EQ(store_.blob_bytes(), bytes);
}

}  // namespace
}  // namespace perdix::detail::index::sptree
