// Insert and removal in one node: at every position, in nodes of every size. What a crash leaves in
// the middle is explored by the crash tests; here it is made by hand and put in order.
#include "index/fastfair/shift.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace perdix::detail::index::fastfair {
namespace {

using Pairs = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

class Shift : public testing::Test {
 protected:
  /// Keys 10, 20, 30, ...; all values are equal, which must not matter.
  void fill(unsigned count) {
    node_ = {};
    node_.meta = Meta{count, 3}.pack();
    for (unsigned i = 0; i < count; ++i) node_.entries[i] = {10 * (i + 1), 7};
  }

  Pairs pairs() const {
    Pairs pairs;
    for (unsigned i = 0; i < meta_of(node_).count; ++i) {
      pairs.emplace_back(node_.entries[i].key, node_.entries[i].value);
    }
    return pairs;
  }

  alignas(kNodeAlignment) Node node_{};
  pm::Persister pm_{pm::Domain::cpu_cache, false};
};

TEST_F(Shift, InsertsAtEveryPosition) {
  for (unsigned count = 0; count < kCapacity; ++count) {
    for (unsigned at = 0; at <= count; ++at) {
      fill(count);
      Pairs expected = pairs();
      expected.insert(expected.begin() + at, {10 * at + 5, 7});
      insert_entry(pm_, node_, at, {10 * at + 5, 7});
      ASSERT_EQ(pairs(), expected) << count << " entries, at " << at;
      ASSERT_EQ(meta_of(node_).level, 3u);
      ASSERT_FALSE(remove_copies(pm_, node_));
    }
  }
}

TEST_F(Shift, RemovesAtEveryPosition) {
  for (unsigned count = 1; count <= kCapacity; ++count) {
    for (unsigned at = 0; at < count; ++at) {
      fill(count);
      Pairs expected = pairs();
      expected.erase(expected.begin() + at);
      remove_entry(pm_, node_, at);
      ASSERT_EQ(pairs(), expected) << count << " entries, at " << at;
      ASSERT_FALSE(remove_copies(pm_, node_));
    }
  }
}

TEST_F(Shift, ClosesAGapAtEveryPosition) {
  for (unsigned count = 2; count <= kCapacity; ++count) {
    for (unsigned at = 0; at + 1 < count; ++at) {
      fill(count);
      Pairs expected = pairs();
      expected.erase(expected.begin() + at);
      node_.entries[at] = {node_.entries[at + 1].key, 999};  // the left one's value means nothing
      ASSERT_TRUE(remove_copies(pm_, node_));
      ASSERT_EQ(pairs(), expected) << count << " entries, at " << at;
      ASSERT_FALSE(remove_copies(pm_, node_));
    }
  }
}

TEST_F(Shift, MendsRunsOfCopies) {
  for (unsigned at = 0; at + 6 < kCapacity; ++at) {
    fill(kCapacity);
    Pairs expected = pairs();
    expected.erase(expected.begin() + at + 4, expected.begin() + at + 5);
    expected.erase(expected.begin() + at, expected.begin() + at + 2);
    for (unsigned i : {at + 1, at, at + 4}) node_.entries[i] = {node_.entries[i + 1].key, i};
    ASSERT_TRUE(remove_copies(pm_, node_));
    ASSERT_EQ(pairs(), expected) << at;
  }
}

TEST_F(Shift, InsertsIntoNodesWithCopies) {
  for (unsigned copy = 0; copy < 9; ++copy) {
    for (unsigned at = 0; at <= 10; ++at) {
      fill(10);
      if (at == copy + 1) continue;  // between the two there is no place
      Pairs expected = pairs();
      expected.insert(expected.begin() + at, {10 * at + 5, 7});
      expected.erase(expected.begin() + copy + (at <= copy ? 1 : 0));
      node_.entries[copy] = {node_.entries[copy + 1].key, 999};
      insert_entry(pm_, node_, at, {10 * at + 5, 7});
      ASSERT_TRUE(remove_copies(pm_, node_));
      ASSERT_EQ(pairs(), expected) << "copy " << copy << ", at " << at;
    }
  }
}

TEST_F(Shift, SaysWhatCommits) {
  fill(5);
  EXPECT_EQ(&commit_of_insert(node_, 2, {25, 7}).word, &node_.entries[2].key);
  EXPECT_EQ(commit_of_insert(node_, 5, {99, 7}).value, (Meta{6, 3}.pack()));
  EXPECT_EQ(commit_of_removal(node_, 1).value, 30u);
  EXPECT_EQ(&commit_of_removal(node_, 4).word, &node_.meta);
}

}  // namespace
}  // namespace perdix::detail::index::fastfair
