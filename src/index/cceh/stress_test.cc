// A lookup beside a writer. What calls do beside each other is tested by tests/concurrency, for all
// engines alike.
#include <atomic>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "index/cceh/test_map.h"

namespace perdix::detail::index::cceh {
namespace {

using Number = std::uint64_t;

/// Two keys that take turns in one slot. To compare the first takes so long that the other has come
/// in its place before its value is read.
TEST(CcehStress, ALookupReturnsTheValueOfItsKey) {
  constexpr Number kLookups = 20000, kFirst = 1, kSecond = 2;
  TestMap<std::string, Number> map;
  const auto bucket = [&](std::string_view key) {
    return map.hash_of(key).buckets_of(kSmall.buckets)[0];  // an empty segment's pairs take it
  };
  const std::string first(kMaxKeySize, 'k');
  std::string second = "a";
  while (bucket(second) != bucket(first)) second += 'a';
  std::atomic<bool> done{false};
  std::jthread writer([&] {
    while (!done.load(std::memory_order_relaxed)) {
      EXPECT_TRUE(map->insert(first, kFirst));
      EXPECT_TRUE(map->erase(first));
      EXPECT_TRUE(map->insert(second, kSecond));
      EXPECT_TRUE(map->erase(second));
    }
  });
  for (Number i = 0; i < kLookups; ++i) EXPECT_EQ(map->get(first).value_or(kFirst), kFirst);
  done.store(true);
}

}  // namespace
}  // namespace perdix::detail::index::cceh
