// The top layer alone, over nodes that no tree has.
#include "index/sptree/top_layer.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "epoch/guard.h"
#include "index/common/scan_orders.h"
#include "index/sptree/middle_nodes.h"

namespace perdix::detail::index::sptree {
namespace {

template <class K>
class TopLayerTest : public testing::Test {
 protected:
  using Node = Mnode<K>;

  TopLayerTest() { top_.set_head(make(0)); }

  static K key(std::uint64_t number) {
    if constexpr (std::is_same_v<K, std::uint64_t>) {
      return number;
    } else {
      return number == 0 ? std::string() : std::to_string(1000 + number);
    }
  }

  Node* make(std::uint64_t low) {
    return nodes_.make_with_bound(leaf_, key(low), Bounds<K>::open());
  }

  std::vector<const Node*> listed() const {
    std::vector<const Node*> nodes;
    top_.for_each([&](const Node* node) { return nodes.push_back(node), true; });
    return nodes;
  }

  epoch::Reclaimer reclaimer_{false};
  util::Arena arena_;
  ScanOrders orders_{arena_, reclaimer_};
  MiddleNodes<K> nodes_{arena_, reclaimer_, orders_};
  epoch::DrainFirst drain_{reclaimer_};
  TopLayer<K> top_{arena_, reclaimer_};
  alignas(kLeafAlignment) Leaf leaf_{};
};

using KeyTypes = ::testing::Types<std::uint64_t, std::string>;
TYPED_TEST_SUITE(TopLayerTest, KeyTypes);

TYPED_TEST(TopLayerTest, LeadsToTheLastNodeThatDoesNotBeginAfterTheKey) {
  const epoch::Guard guard;
  auto* const head = this->top_.head();
  EXPECT_EQ(this->top_.locate(this->key(7)), head);
  auto* const ten = this->make(10);
  auto* const twenty = this->make(20);
  this->top_.publish_node(*twenty);
  this->top_.publish_node(*ten);
  const auto expect = [&](std::uint64_t number, auto* node) {
    EXPECT_EQ(this->top_.locate(this->key(number)), node) << number;
    EXPECT_EQ(this->top_.locate_surely(this->key(number)), node) << number;
  };
  expect(0, head);
  expect(9, head);
  expect(10, ten);
  expect(19, ten);
  expect(20, twenty);
  expect(500, twenty);
  EXPECT_EQ(this->top_.left_of(this->key(10)), head);
  EXPECT_EQ(this->top_.left_of(this->key(11)), ten);
  EXPECT_EQ(this->top_.find(this->key(20)), twenty);
  EXPECT_EQ(this->top_.find(this->key(19)), nullptr);
}

TYPED_TEST(TopLayerTest, LacksNoPublishedNode) {
  const epoch::Guard guard;
  auto* const one = this->make(1);
  auto* const two = this->make(2);
  this->top_.publish_node(*one);
  this->top_.publish_node(*two);
  EXPECT_EQ(this->top_.missing(), 0U);
  this->top_.publish_if_missing(*one);  // it is not, so nothing happens
  EXPECT_FALSE(this->top_.add(*one));
  EXPECT_EQ(this->listed(), (std::vector<const Mnode<TypeParam>*>{one, two}));
  EXPECT_TRUE(this->top_.unlink_node(*one));
  EXPECT_EQ(this->listed(), (std::vector<const Mnode<TypeParam>*>{two}));
  EXPECT_EQ(this->top_.missing(), 0U);
  EXPECT_EQ(this->top_.locate(this->key(1)), this->top_.head());
}

}  // namespace
}  // namespace perdix::detail::index::sptree
