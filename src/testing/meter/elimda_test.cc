// What ElimDa costs in lines and media bytes, by the meter: a load with all relocations and splits,
// lookups of keys that are there and of others.
//
// The cache is small against the table, as on a machine with a table of gigabytes; so there are
// fewer collecting logs, too, which must stay in it.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <perdix/papers/elimda.h>
#include <perdix/pool.h>

#include "testing/meter/meter.h"
#include "util/random.h"
#include "util/test_directory.h"

namespace perdix::testing {
namespace {

constexpr Meter::Kind kInsert = 1, kGet = 2, kAbsent = 3, kUpdate = 4, kErase = 5;
constexpr unsigned kSamples = 40;  // of the load factor, while the index grows

/// PERDIX_TRAFFIC_KEYS, for the figures of docs/reproduction.md.
std::uint64_t wanted_keys() {
  const char* const wanted = std::getenv("PERDIX_TRAFFIC_KEYS");
  return wanted == nullptr ? 300'000 : std::strtoull(wanted, nullptr, 10);
}
const std::uint64_t kKeys = wanted_keys();
const std::uint64_t kScale = std::max<std::uint64_t>(kKeys / 300'000, 1);

class ElimDaTraffic {
 public:
  ElimDaTraffic(const PoolOptions& options, Platform platform)
      : meter_(meter_options(platform)),
        pool_(Pool::create(folder_.path() / "pool", options)),
        map_(pool_, "t", map_options()) {
    map_.size();  // all of it is warm
    before_ = detail::pm::install_probe(&meter_);
  }
  ~ElimDaTraffic() { detail::pm::install_probe(before_); }

  void run() {
    detail::util::Random random(2);
    std::vector<std::uint64_t> keys;
    for (std::uint64_t i = 0; i < kKeys; ++i) keys.push_back(random() | 1);
    load(keys);
    for (const auto key : keys) count(kGet, [&] { map_.get(key); });
    for (const auto key : keys) count(kAbsent, [&] { map_.get(key - 1); });
    for (const auto key : keys) count(kUpdate, [&] { map_.update(key, 2); });
    stats_ = map_.stats();
    for (const auto key : keys) count(kErase, [&] { map_.erase(key); });
    print();
  }

  /// Adds all keys. The load factor falls to a half when segments split and grows until the next
  /// time; its average counts from a tenth of the keys on.
  void load(const std::vector<std::uint64_t>& keys) {
    std::uint64_t next = kKeys / 10;
    double sum = 0;
    unsigned samples = 0;
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      count(kInsert, [&] { map_.insert_ahead(keys[i], 1); });
      if (i < next) continue;
      sum += map_.stats().load_factor;
      ++samples;
      next += kKeys / 10 * 9 / kSamples;
    }
    average_load_factor_ = sum / samples;
  }

  double average_load_factor() const { return average_load_factor_; }
  double dram_of_pm() const {
    return static_cast<double>(stats_.dram_bytes) / static_cast<double>(stats_.pm_bytes);
  }
  double lines_read(Meter::Kind kind) const { return each(meter_.traffic(kind).lines_read); }
  double media_read(Meter::Kind kind) const { return each(meter_.traffic(kind).device.media_read); }
  double media_written(Meter::Kind kind) const {
    return each(meter_.traffic(kind).device.media_written);
  }

 private:
  static MeterOptions meter_options(Platform platform) {
    MeterOptions options;
    options.platform = platform;
    constexpr std::uint64_t kMiB = 1 << 20;
    options.cache.bytes = std::min<std::uint64_t>(kScale * kMiB, options.cache.bytes);
    return options;
  }

  static ElimDaOptions map_options() {
    ElimDaOptions options;
    options.resume_in_background = false;
    options.media_units = MediaUnits::always;
    options.collecting_logs =
        static_cast<unsigned>(std::bit_floor(std::min<std::uint64_t>(512 * kScale, 8192)));
    return options;
  }

  static double each(std::uint64_t n) {
    return static_cast<double>(n) / static_cast<double>(kKeys);
  }

  template <class Call>
  void count(Meter::Kind kind, Call call) {
    const Meter::Operation operation(meter_, kind);
    call();
  }

  void print() const {
    constexpr std::array kNames = {"insert_ahead", "get", "absent get", "update", "erase"};
    for (Meter::Kind kind = kInsert; kind <= kErase; ++kind) {
      const Traffic traffic = meter_.traffic(kind);
      fmt::print(
          "{:12}: {:.3f} lines flushed, {:.3f} fences, {:.3f} written, {:.3f} read; media "
          "{:.1f} B written, {:.1f} read, {:.1f} read to modify\n",
          kNames[kind - 1], each(traffic.flushes), each(traffic.fences),
          each(traffic.lines_written), each(traffic.lines_read), media_written(kind),
          media_read(kind), each(traffic.device.media_read_to_modify));
    }
    fmt::print(
        "load factor {:.3f}, on average {:.3f}; {:.2f} bytes of PM and {:.2f} of DRAM for a pair\n",
        stats_.load_factor, average_load_factor_, each(stats_.pm_bytes), each(stats_.dram_bytes));
  }

  Meter meter_;
  detail::pm::Probe* before_ = nullptr;
  testing_files::TempDirectory folder_{testing_files::memory_directory()};
  Pool pool_;
  ElimDa<std::uint64_t, std::uint64_t> map_;
  IndexStats stats_;
  double average_load_factor_ = 0;
};

TEST(ElimDaTraffic, InPersistentCaches) {
  PoolOptions options;
  options.durability = Durability::process;
  ElimDaTraffic traffic(options, Platform::eadr);
  traffic.run();
  EXPECT_LE(traffic.lines_read(kGet), 1.1) << "some pairs are in DRAM, few fingerprints collide";
  EXPECT_LE(traffic.media_read(kAbsent), 8);
  EXPECT_LE(traffic.media_written(kInsert), 80) << "units are streamed whole";
  EXPECT_LE(traffic.media_read(kInsert), 50) << "what is streamed is not read first";
  EXPECT_GE(traffic.average_load_factor(), 0.69) << "segments split late enough";
  EXPECT_LE(traffic.dram_of_pm(), 0.15) << "D-buckets have little more room than they need";
}

TEST(ElimDaTraffic, InVolatileCaches) {
  PoolOptions options;
  options.durability = Durability::process;
  options.domain = DomainChoice::memory_controller;
  ElimDaTraffic traffic(options, Platform::adr);
  traffic.run();
  EXPECT_LE(traffic.lines_read(kGet), 1.1) << "some pairs are in DRAM, few fingerprints collide";
  EXPECT_LE(traffic.media_read(kAbsent), 8);
}

}  // namespace
}  // namespace perdix::testing
