// Scans that stop in the midst of a leaf, or between two, while other threads fill, split, drain
// and merge the leaves that are read. Then the scan goes on, and must show each key that was there
// all the time, none twice, and in order. In turn it stops at many of its reads of PM: before and
// after it was looked whether a leaf has changed, and where it goes on from there.
//
// The orders that scans keep are carried over by those writers (index/common/scan_orders.h), so
// that the scan which goes on keeps an order of former times.
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>
#include <type_traits>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <perdix/papers/fastfair.h>
#include <perdix/papers/nbtree.h>
#include <perdix/pool.h>
#include <perdix/sptree.h>

#include "pm/probe.h"
#include "suspender.h"
#include "util/test_directory.h"

namespace perdix::testing {
namespace {

constexpr std::uint64_t kKeys = 400;
constexpr std::uint64_t kSteady = 8;  // each such key stays

template <class Index>
class SuspendedScan : public ::testing::Test {
 protected:
  using Model = std::map<std::uint64_t, std::uint64_t>;

  /// Stops a scan at its n-th read of PM, while `change` runs. Returns whether it came so far.
  template <class Change>
  bool scan_beside(std::uint64_t event, Index& index, Change change) {
    Model shown;
    std::optional<std::uint64_t> last;
    bool ascends = true, suspended = false;
    Suspender probe;
    probe.count_reads(true);
    detail::pm::Probe* const before = detail::pm::install_probe(&probe);
    std::thread scan([&] {
      probe.watch(event);
      index.scan(0, [&](std::uint64_t key, std::uint64_t value) {
        ascends &= !last || *last < key;
        last = key;
        return shown.emplace(key, value), true;
      });
      suspended = probe.end();
    });
    probe.wait_for_suspension();
    change();
    probe.release();
    scan.join();
    detail::pm::install_probe(before);
    EXPECT_TRUE(ascends);
    for (std::uint64_t key = 0; key < kKeys; key += kSteady)
      EXPECT_TRUE(shown.contains(key)) << "key " << key << " was passed over";
    for (const auto& [key, value] : shown) EXPECT_EQ(value % kKeys, key) << "another key's value";
    return suspended;
  }

  /// What the index has now, by a scan that nothing disturbs.
  static void expect_all(const Index& index, const Model& model) {
    Model shown;
    index.scan(
        0, [&](std::uint64_t key, std::uint64_t value) { return shown.emplace(key, value), true; });
    EXPECT_EQ(shown, model);
    for (const std::string& problem : index.check().problems) ADD_FAILURE() << problem;
  }
};

using Engines =
    ::testing::Types<SpTree<std::uint64_t, std::uint64_t>, NbTree<std::uint64_t, std::uint64_t>,
                     FastFair<std::uint64_t, std::uint64_t>>;
TYPED_TEST_SUITE(SuspendedScan, Engines);

/// Drains the leaves, so that they are merged, or fills them, so that they are split.
TYPED_TEST(SuspendedScan, ShowsWhatStays) {
  const testing_files::TempDirectory folder{testing_files::memory_directory()};
  PoolOptions options;
  options.max_size = std::uint64_t{64} << 20;
  for (const bool drain : {true, false}) {
    constexpr std::uint64_t kStride = 7;  // of events
    std::uint64_t event = 1;
    for (bool more = true; more && !this->HasFailure(); event += kStride) {
      SCOPED_TRACE(fmt::format("{}, at read {}", drain ? "draining" : "filling", event));
      const std::filesystem::path path = folder.path() / fmt::format("pool-{}", event);
      Pool pool = Pool::create(path, options);
      std::filesystem::remove(path);  // it stays until it is closed
      TypeParam index(pool, "t");
      std::map<std::uint64_t, std::uint64_t> model;
      const auto put = [&](std::uint64_t key, std::uint64_t round) {
        index.put(key, model[key] = key + round * kKeys);
      };
      const auto changing = [&](auto visit) {
        for (std::uint64_t i = 0; i < kKeys; ++i) {
          const std::uint64_t key = i * 37 % kKeys;
          if (key % kSteady != 0) visit(key);
        }
      };
      for (std::uint64_t key = 0; key < kKeys; key += kSteady) put(key, 0);
      if (drain) changing([&](std::uint64_t key) { put(key, 0); });
      this->expect_all(index, model);  // and keeps orders
      more = this->scan_beside(event, index, [&] {
        changing([&](std::uint64_t key) {
          if (drain) {
            EXPECT_TRUE(index.erase(key));
            model.erase(key);
          } else {
            put(key, 1);
          }
        });
      });
      this->expect_all(index, model);
    }
    EXPECT_GT(event, 15 * kStride);
  }
}

}  // namespace
}  // namespace perdix::testing
