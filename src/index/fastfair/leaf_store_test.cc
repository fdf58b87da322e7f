// Pairs of one leaf in PM, without a tree: what each change leaves in the leaf, what becomes of the
// blocks of strings, and what is left of a change for which there is no space.
#include "index/fastfair/leaf_store.h"

#include <string>
#include <type_traits>

#include <gtest/gtest.h>

#include <perdix/error.h>

#include "index/common/test_pool.h"
#include "index/fastfair/recovery.h"

namespace perdix::detail::index::fastfair {
namespace {

template <class Types>
class FastFairLeafStore : public testing::Test {
 protected:
  using K = typename Types::Key;
  using V = typename Types::Value;

  /// A pool, whose index is not opened.
  class EmptyPool : public TestPool<EmptyPool> {};

  FastFairLeafStore() { create_first_leaf(pool_.core(), root_); }

  Node& leaf() { return *pool_.core().template at<Node>(root_); }

  void add(unsigned at, std::uint64_t key, std::uint64_t value) {
    const V added = datum<V>(value);
    store_.add(leaf(), at, datum<K>(key), NewValue(View<V>(added)));
  }
  void replace(unsigned at, std::uint64_t value) {
    const V added = datum<V>(value);
    store_.replace(leaf(), at, NewValue(View<V>(added)));
  }

  void expect_pair(unsigned at, std::uint64_t key, std::uint64_t value) {
    const Entry entry = load_entry(leaf(), at);
    EXPECT_EQ(store_.keys().view(entry.key), datum<K>(key));
    EXPECT_EQ(Codec<V>(pool_.core()).view(entry.value), datum<V>(value));
    EXPECT_TRUE(sound_pair(store_.keys(), store_.values(), entry.key, entry.value));
  }

  EmptyPool pool_;
  std::uint64_t& root_ = pool_.core().open_index("t", "fastfair", kKindOf<K>, kKindOf<V>).root();
  LeafStore<K> store_{pool_.core(), kKindOf<V>};
};

TYPED_TEST_SUITE(FastFairLeafStore, AllKinds);

TYPED_TEST(FastFairLeafStore, PairsAreInOrderUntilTheyAreRemoved) {
  this->add(0, 20, 2);
  this->add(0, 10, 1);
  this->add(2, 30, 3);
  EXPECT_EQ(meta_of(this->leaf()).count, 3U);
  for (unsigned i = 0; i < 3; ++i) this->expect_pair(i, 10 * (i + 1), i + 1);
  this->replace(1, 7);
  this->expect_pair(1, 20, 7);
  this->store_.remove(this->leaf(), 0);
  this->expect_pair(0, 20, 7);
  this->expect_pair(1, 30, 3);
  EXPECT_EQ(meta_of(this->leaf()).count, 2U);
  EXPECT_EQ(this->store_.pairs().change(), 2);
}

TYPED_TEST(FastFairLeafStore, StringsGoWithTheirPairs) {
  const std::uint64_t before = this->pool_.allocated();
  for (unsigned i = 0; i < kCapacity; ++i) this->add(i, i, i);
  const std::uint64_t full = this->pool_.allocated();
  EXPECT_EQ(full == before, (std::is_same_v<TypeParam, Kinds<Number, Number>>));
  // The place of the first value may be in the block of its key.
  for (unsigned i = 0; i < kCapacity; ++i) this->replace(i, kCapacity - 1 - i);
  const std::uint64_t replaced = this->pool_.allocated();
  for (unsigned i = 0; i < kCapacity; ++i) this->replace(i, i);
  EXPECT_EQ(this->pool_.allocated(), replaced);
  for (unsigned left = kCapacity; left > 0; --left)
    this->store_.remove(this->leaf(), left % 2 == 0 ? 0 : left - 1);
  EXPECT_EQ(meta_of(this->leaf()).count, 0U);
  EXPECT_EQ(this->pool_.allocated(), before);
}

TYPED_TEST(FastFairLeafStore, ComparesValues) {
  using Datum = typename TypeParam::Value;
  this->add(0, 1, 5);
  const Datum same = datum<Datum>(5), other = datum<Datum>(6);
  const NewValue expected{View<Datum>(same)}, unexpected{View<Datum>(other)};
  EXPECT_TRUE(this->store_.value_is(this->leaf(), 0, nullptr));
  EXPECT_TRUE(this->store_.value_is(this->leaf(), 0, &expected));
  EXPECT_FALSE(this->store_.value_is(this->leaf(), 0, &unexpected));
}

using FastFairLeafStoreStrings = FastFairLeafStore<Kinds<std::string, std::string>>;

TEST_F(FastFairLeafStoreStrings, WithoutSpaceNothingChanges) {
  add(0, 1, 2);
  const std::string large(std::size_t{10} << 20, 'v');
  const NewValue value{std::string_view(large)};
  const auto fill = [&] {
    for (unsigned at = 1; at < kCapacity; ++at) store_.add(leaf(), at, datum<K>(3 * at + 1), value);
  };
  EXPECT_THROW(fill(), Error);
  const std::uint64_t allocated = pool_.allocated();
  const unsigned count = meta_of(leaf()).count;
  EXPECT_LT(count, kCapacity);
  EXPECT_EQ(store_.pairs().change(), count);
  EXPECT_THROW(store_.add(leaf(), count, "key", value), Error);
  EXPECT_THROW(store_.replace(leaf(), 0, value), Error);
  expect_pair(0, 1, 2);
  EXPECT_EQ(meta_of(leaf()).count, count);
  EXPECT_EQ(pool_.allocated(), allocated);
}

}  // namespace
}  // namespace perdix::detail::index::fastfair
