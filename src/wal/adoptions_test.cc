#include "wal/adoptions.h"

#include <gtest/gtest.h>

namespace perdix::detail::wal {
namespace {

TEST(Adoptions, GivesBackTheYoungestFirst) {
  Adoptions adoptions;
  Chain chains[3];
  const Generation generations[] = {2, 9, 4};
  for (unsigned i = 0; i < 3; ++i) adoptions.prepare();
  for (unsigned i = 0; i < 3; ++i) adoptions.add({generations[i], i, &chains[i]});
  const std::vector<AdoptedChain> taken = adoptions.take();
  ASSERT_EQ(taken.size(), 3u);
  EXPECT_EQ(taken[0].chain, &chains[1]);
  EXPECT_EQ(taken[1].chain, &chains[2]);
  EXPECT_EQ(taken[2].chain, &chains[0]);
  EXPECT_TRUE(adoptions.take().empty());
}

TEST(Adoptions, ACancelledOneIsGone) {
  Adoptions adoptions;
  Chain chain;
  adoptions.prepare();
  adoptions.prepare();
  adoptions.cancel();
  adoptions.add({1, 1, &chain});
  EXPECT_EQ(adoptions.take().size(), 1u);
}

}  // namespace
}  // namespace perdix::detail::wal
