// Table I of the NbTree paper, by the meter: what an operation of NbTree costs that meets no
// structure modification, and what those add to a load.
#include <filesystem>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <perdix/papers/nbtree.h>
#include <perdix/pool.h>

#include "index/common/codec.h"
#include "index/nbtree/entry.h"
#include "testing/meter/meter.h"
#include "util/random.h"
#include "util/test_directory.h"

namespace perdix::testing {
namespace {

constexpr Meter::Kind kInsert = 1, kUpdate = 2, kGet = 3, kErase = 4;

class NbTreeTraffic : public ::testing::Test {
 protected:
  NbTreeTraffic() {
    tree_.size();  // all leaves are warm
    before_ = detail::pm::install_probe(&meter_);
  }
  ~NbTreeTraffic() override { detail::pm::install_probe(before_); }

  static PoolOptions options() {
    PoolOptions options;
    options.durability = Durability::process;
    options.domain = DomainChoice::memory_controller;
    return options;
  }

  template <class Call>
  void count(Meter::Kind kind, Call call) {
    const Meter::Operation operation(meter_, kind);
    call();
  }

  Meter meter_;
  detail::pm::Probe* before_ = nullptr;
  testing_files::TempDirectory folder_{testing_files::memory_directory()};
  Pool pool_ = Pool::create(folder_.path() / "pool", options());
  NbTree<std::uint64_t, std::uint64_t> tree_{pool_, "t"};
};

TEST_F(NbTreeTraffic, OneFlushOneLineWrittenAndOneRead) {
  // Keys with different fingerprints, and fewer than make a leaf split or join.
  std::set<std::uint8_t> fingerprints;
  std::vector<std::uint64_t> keys;
  detail::util::Random random(1);
  while (keys.size() < 40) {
    const std::uint64_t key = random();
    const auto hash = detail::index::Codec<std::uint64_t>::hash16(key);
    if (fingerprints.insert(detail::index::nbtree::fingerprint_of(hash)).second)
      keys.push_back(key);
  }
  for (const auto key : keys) count(kInsert, [&] { tree_.insert(key, 1); });
  for (const auto key : keys) count(kUpdate, [&] { tree_.update(key, 2); });
  for (const auto key : keys) count(kGet, [&] { tree_.get(key); });
  for (std::size_t i = 0; i < 5; ++i) count(kErase, [&] { tree_.erase(keys[i]); });
  for (const Meter::Kind kind : {kInsert, kUpdate, kErase}) {
    const Traffic traffic = meter_.traffic(kind);
    EXPECT_EQ(traffic.flushes, traffic.operations) << kind;
    EXPECT_EQ(traffic.fences, traffic.operations) << kind;
    EXPECT_EQ(traffic.lines_written, traffic.operations) << kind;
    EXPECT_EQ(traffic.lines_read, traffic.operations) << kind;
  }
  const Traffic get = meter_.traffic(kGet);
  EXPECT_EQ(get.lines_read, get.operations);
  EXPECT_EQ(get.flushes + get.fences + get.lines_written, 0u);
}

TEST_F(NbTreeTraffic, WithStructureModifications) {
  constexpr std::uint64_t kKeys = 200'000;
  detail::util::Random random(2);
  std::vector<std::uint64_t> keys;
  for (std::uint64_t i = 0; i < kKeys; ++i) keys.push_back(random());
  for (const auto key : keys) count(kInsert, [&] { tree_.insert(key, 1); });
  for (const auto key : keys) count(kGet, [&] { tree_.get(key); });
  for (const auto key : keys) count(kUpdate, [&] { tree_.update(key, 2); });
  const IndexStats stats = tree_.stats();
  for (const auto key : keys) count(kErase, [&] { tree_.erase(key); });
  for (const auto& [kind, name] : {std::pair{kInsert, "insert"}, std::pair{kUpdate, "update"},
                                   std::pair{kGet, "get"}, std::pair{kErase, "erase"}}) {
    const Traffic traffic = meter_.traffic(kind);
    const auto each = [&](std::uint64_t n) { return static_cast<double>(n) / kKeys; };
    fmt::print("{}: {:.3f} lines flushed, {:.3f} fences, {:.3f} lines written, {:.3f} read\n", name,
               each(traffic.flushes), each(traffic.fences), each(traffic.lines_written),
               each(traffic.lines_read));
  }
  fmt::print("{:.2f} bytes of PM and {:.2f} of DRAM for a pair\n",
             static_cast<double>(stats.pm_bytes) / kKeys,
             static_cast<double>(stats.dram_bytes) / kKeys);
  EXPECT_LE(meter_.traffic(kGet).lines_read, kKeys * 12 / 10) << "fingerprints collide seldom";
  EXPECT_LE(meter_.traffic(kInsert).flushes, kKeys * 4);
  EXPECT_EQ(meter_.traffic(kUpdate).flushes, kKeys);
}

}  // namespace
}  // namespace perdix::testing
