// The buffer of one node, over a leaf that no tree has: what is found where, and what merging does.
#include "index/sptree/buffers.h"

#include <string>
#include <type_traits>

#include <gtest/gtest.h>

#include "epoch/guard.h"
#include "index/common/test_pool.h"

namespace perdix::detail::index::sptree {
namespace {

template <class K>
class NodeBuffersTest : public testing::Test {
 protected:
  /// A pool, whose index is not opened.
  class EmptyPool : public TestPool<EmptyPool> {};

  using Buffer = typename NodeBuffers<K>::Buffer;

  NodeBuffersTest() {
    pool::PoolCore& core = pool_.core();
    {
      alloc::Session session = core.allocator().session();
      const pm::Offset log = wal::Log::create(session, core);
      const pm::Offset leaf = session.reserve(sizeof(Leaf));
      core.pm().zero(core.template at<Leaf>(leaf), sizeof(Leaf));
      core.pm().persist(core.template at<Leaf>(leaf), sizeof(Leaf));
      session.log();
      session.finish();
      buffers_.open_log(core, log, 10 * sizeof(Buffer));
      node_ = nodes_.make(*core.template at<Leaf>(leaf), Bounds<K>::least(), Bounds<K>::open());
    }
    node_->lock.lock();
  }
  ~NodeBuffersTest() override {
    node_->lock.unlock();
    nodes_.release(node_);
  }

  static K key(std::uint64_t number) {
    if constexpr (std::is_same_v<K, std::uint64_t>) {
      return number;
    } else {
      return "key " + std::to_string(number);
    }
  }
  static Hash16 hash(std::uint64_t number) { return Codec<K>::hash16(key(number)); }

  Leaf& leaf() { return *node_->leaf(); }
  Found find(std::uint64_t number) { return buffers_.find(*node_, key(number), hash(number)); }

  bool add_to_buffer(std::uint64_t number) {
    Buffer* buffer = buffers_.for_change(*node_);
    return buffer != nullptr &&
           buffers_.add(*node_, *buffer, key(number), NewValue(number), hash(number));
  }

  unsigned add_to_leaf(std::uint64_t number) {
    const unsigned slot = buffers_.free_slot_of(*node_, hash(number));
    leaves_.add(leaf(), slot, key(number), NewValue(number), hash(number));
    node_->add(slot, hash(number));
    return slot;
  }

  EmptyPool pool_;
  const epoch::Guard guard_;
  util::Arena arena_;
  ScanOrders orders_{arena_, pool_.core().reclaimer()};
  LeafStore<K> leaves_{pool_.core(), Kind::u64};
  MiddleNodes<K> nodes_{arena_, pool_.core().reclaimer(), orders_};
  NodeBuffers<K> buffers_{pool_.core(), arena_, {}, leaves_, nodes_};
  Mnode<K>* node_;
};

using KeyTypes = ::testing::Types<std::uint64_t, std::string>;
TYPED_TEST_SUITE(NodeBuffersTest, KeyTypes);

TYPED_TEST(NodeBuffersTest, PairsAreInTheBufferUntilItIsMerged) {
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(this->add_to_buffer(i));
  EXPECT_TRUE(slots_of(this->leaf()).empty());
  EXPECT_EQ(this->buffers_.count(*this->node_), 5U);
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_GE(this->find(i).buffered, 0);
    EXPECT_EQ(this->find(i).value, i);
  }
  EXPECT_FALSE(this->find(5).present());
  ASSERT_TRUE(this->buffers_.merge(*this->node_));
  EXPECT_TRUE(this->buffers_.of(*this->node_)->empty_chain());
  EXPECT_EQ(slots_of(this->leaf()).count(), 5U);
  for (std::uint64_t i = 0; i < 5; ++i) {
    EXPECT_GE(this->find(i).slot, 0);
    EXPECT_EQ(this->find(i).value, i);
  }
}

TYPED_TEST(NodeBuffersTest, TheNewestValueIsFoundAndMerged) {
  ASSERT_TRUE(this->add_to_buffer(1));
  auto& buffer = *this->buffers_.of(*this->node_);
  this->buffers_.replace(buffer, static_cast<unsigned>(this->find(1).buffered), NewValue(7));
  EXPECT_EQ(this->find(1).value, 7U);
  ASSERT_TRUE(this->add_to_buffer(2));
  this->buffers_.remove(buffer, static_cast<unsigned>(this->find(2).buffered));
  EXPECT_FALSE(this->find(2).present());
  ASSERT_TRUE(this->buffers_.merge(*this->node_));
  EXPECT_EQ(this->find(1).value, 7U);
  EXPECT_EQ(slots_of(this->leaf()).count(), 1U);
}

TYPED_TEST(NodeBuffersTest, ATombstoneKeepsItsSlotUntilTheBufferIsMerged) {
  const unsigned slot = this->add_to_leaf(1);
  this->add_to_leaf(2);
  auto* buffer = this->buffers_.for_change(*this->node_);
  ASSERT_NE(buffer, nullptr);
  ASSERT_TRUE(this->buffers_.add_tombstone(*this->node_, *buffer, slot));
  EXPECT_FALSE(this->find(1).present());
  EXPECT_TRUE(this->find(2).present());
  EXPECT_TRUE(slots_of(this->leaf()).contains(slot));
  EXPECT_TRUE(this->buffers_.taken_slots(*this->node_).contains(slot));
  ASSERT_TRUE(this->buffers_.merge(*this->node_));
  EXPECT_FALSE(slots_of(this->leaf()).contains(slot));
  EXPECT_FALSE(this->buffers_.taken_slots(*this->node_).contains(slot));
  EXPECT_TRUE(this->find(2).present());
}

TYPED_TEST(NodeBuffersTest, ALeafWithoutRoomTakesNothing) {
  ASSERT_TRUE(this->add_to_buffer(1'000));
  for (std::uint64_t i = 0; i < kLeafPairs; ++i) this->add_to_leaf(i);
  const SlotSet before = slots_of(this->leaf());
  EXPECT_EQ(before, SlotSet::all());
  EXPECT_FALSE(this->buffers_.merge(*this->node_));
  EXPECT_EQ(slots_of(this->leaf()), before);
  EXPECT_GE(this->find(1'000).buffered, 0);
  EXPECT_EQ(this->buffers_.count(*this->node_), kLeafPairs + 1);
  EXPECT_FALSE(this->buffers_.leaf_may_take(*this->node_));
}

}  // namespace
}  // namespace perdix::detail::index::sptree
