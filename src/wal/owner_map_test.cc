#include "wal/owner_map.h"

#include <random>
#include <unordered_map>

#include <gtest/gtest.h>

namespace perdix::detail::wal {
namespace {

TEST(OwnerMap, IsEmptyAtFirst) {
  const OwnerMap map;
  EXPECT_EQ(map.find(1), nullptr);
  map.for_each([](Owner, Position) { ADD_FAILURE(); });
}

TEST(OwnerMap, KeepsTheLastPositionOfEachOwner) {
  for (const std::size_t reserved : {0, 100, 5000}) {
    OwnerMap map;
    map.reserve(reserved);
    std::unordered_map<Owner, Position> model;
    std::mt19937_64 random(reserved);
    for (int i = 0; i < 20'000; ++i) {
      const Owner owner = 1 + random() % 3000;
      const Position position = random() % 5;  // 0, too
      ASSERT_EQ(map.at(owner), model[owner]);
      map.at(owner) = position;
      model[owner] = position;
    }
    for (Owner owner = 1; owner <= 3500; ++owner) {
      const Position* found = map.find(owner);
      ASSERT_EQ(found != nullptr, model.contains(owner)) << owner;
      if (found != nullptr) {
        EXPECT_EQ(*found, model.at(owner)) << owner;
      }
    }
    std::size_t seen = 0;
    map.for_each([&](Owner owner, Position position) {
      ++seen;
      EXPECT_EQ(model.at(owner), position);
    });
    EXPECT_EQ(seen, model.size());
  }
}

}  // namespace
}  // namespace perdix::detail::wal
