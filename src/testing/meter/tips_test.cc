// What Tips costs in barriers, by the meter: on a writer's path, and for the replay of what it has
// logged. A barrier is a fence and the flushes before it (paper, 4.3).
#include <cstdint>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <perdix/pool.h>
#include <perdix/tips_indexes.h>

#include "testing/meter/meter.h"
#include "util/random.h"
#include "util/test_directory.h"
#include "util/zipf.h"

namespace perdix::testing {
namespace {

constexpr Meter::Kind kWrite = 1, kRead = 2, kReplay = 3;
constexpr std::uint64_t kKeys = 100'000;
constexpr unsigned kReplayedAtOnce = 1000;  // about as many as two threads write during a replay

template <class Plugin>
class TipsTraffic : public ::testing::Test {
 protected:
  using Map = Tips<Plugin, std::uint64_t, std::uint64_t>;

  TipsTraffic() {
    detail::util::Random random(1);
    for (std::uint64_t key = 0; key < kKeys; ++key) map_.put(key * kStride, random());
    map_.size();  // all is replayed
    before_ = detail::pm::install_probe(&meter_);
  }
  ~TipsTraffic() override { detail::pm::install_probe(before_); }

  static PoolOptions options() {
    PoolOptions options;
    options.plugins = tips::Art::plugins();
    options.durability = Durability::process;
    options.domain = DomainChoice::memory_controller;
    return options;
  }

  /// A 32nd of what the paper's threads have each (7.1), and four times the default.
  static TipsOptions large_logs() {
    TipsOptions options;
    options.log_bytes = 1 << 20;
    options.undo_records = 1 << 15;
    return options;
  }

  template <class Call>
  void count(Meter::Kind kind, Call call) {
    const Meter::Operation operation(meter_, kind);
    call();
  }

  static constexpr std::uint64_t kStride = 0x9e37'79b9'7f4a'7c15;  // keys in no order

  Meter meter_;
  detail::pm::Probe* before_ = nullptr;
  testing_files::TempDirectory folder_{testing_files::memory_directory()};
  Pool pool_ = Pool::create(folder_.path() / "pool", options());
  Map map_{pool_, "t", large_logs()};
};

using Plugins = ::testing::Types<tips::BTree, tips::Art, tips::Hash>;
TYPED_TEST_SUITE(TipsTraffic, Plugins);

TYPED_TEST(TipsTraffic, AWriterHasOneBarrierAndAReaderNone) {
  for (std::uint64_t i = 0; i < kReplayedAtOnce; ++i)
    this->count(kWrite, [&] { this->map_.put(i * this->kStride, i); });
  for (std::uint64_t i = 0; i < kReplayedAtOnce; ++i)
    this->count(kRead, [&] { this->map_.get(i * this->kStride); });
  const Traffic write = this->meter_.traffic(kWrite), read = this->meter_.traffic(kRead);
  EXPECT_EQ(write.operations, kReplayedAtOnce);
  EXPECT_EQ(write.fences, write.operations);
  EXPECT_EQ(read.operations, kReplayedAtOnce);
  EXPECT_EQ(read.fences + read.flushes, 0u);
}

/// The figure of docs/reproduction.md: half of the operations write, and which keys they do is
/// skewed as in YCSB.
TYPED_TEST(TipsTraffic, BarriersOfTheReplay) {
  constexpr std::uint64_t kOperations = 200'000;
  detail::util::Random random(2);
  const detail::util::Zipf zipf(kKeys);
  for (std::uint64_t i = 0; i < kOperations; ++i) {
    const std::uint64_t key = zipf(random) * this->kStride;
    if (i % 2 == 0) {
      this->count(kRead, [&] { this->map_.get(key); });
      continue;
    }
    this->count(kWrite, [&] { this->map_.put(key, i); });
    if (i % (2 * kReplayedAtOnce) == 1) this->count(kReplay, [&] { this->map_.size(); });
  }
  this->count(kReplay, [&] { this->map_.size(); });
  const Traffic write = this->meter_.traffic(kWrite), replay = this->meter_.traffic(kReplay);
  EXPECT_EQ(write.fences, write.operations) << "no write has replayed others";
  const auto each = [&](std::uint64_t n) { return static_cast<double>(n) / kOperations; };
  const TipsStats stats = this->map_.stats().tips;
  fmt::print(
      "background: {:.3f} barriers and {:.3f} flushes an operation, {:.3f} lines written; "
      "{} undo records and {} saved, {} reclamations\n",
      each(replay.fences), each(replay.flushes), each(replay.lines_written), stats.undo_records,
      stats.undo_saved, stats.reclamations);
  EXPECT_LE(each(replay.fences), 0.5);
}

}  // namespace
}  // namespace perdix::testing
