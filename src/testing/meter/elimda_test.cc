// What ElimDa costs in lines and media bytes, by the meter: a load with all relocations and splits,
// lookups of keys that are there and of others.
//
// The cache is small against the table, as on a machine with a table of gigabytes; so there are
// fewer collecting logs, too, which must stay in it.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <array>
#include <vector>

#include <perdix/elimda.h>
#include <perdix/pool.h>

#include "testing/meter/meter.h"
#include "util/random.h"
#include "util/test_directory.h"

namespace perdix::testing {
namespace {

constexpr Meter::Kind kInsert = 1, kGet = 2, kAbsent = 3, kUpdate = 4, kErase = 5;
constexpr std::uint64_t kKeys = 300'000;

class ElimDaTraffic {
 public:
  ElimDaTraffic(const PoolOptions& options, Platform platform)
      : meter_(meter_options(platform)),
        pool_(Pool::create(folder_.path() / "pool", options)),
        map_(pool_, "t", map_options()) {
    map_.size();  // all of it is warm
    before_ = pm::install_probe(&meter_);
  }
  ~ElimDaTraffic() { pm::install_probe(before_); }

  void run() {
    util::Random random(2);
    std::vector<std::uint64_t> keys;
    for (std::uint64_t i = 0; i < kKeys; ++i) keys.push_back(random() | 1);
    for (const auto key : keys) count(kInsert, [&] { map_.insert_ahead(key, 1); });
    for (const auto key : keys) count(kGet, [&] { map_.get(key); });
    for (const auto key : keys) count(kAbsent, [&] { map_.get(key - 1); });
    for (const auto key : keys) count(kUpdate, [&] { map_.update(key, 2); });
    stats_ = map_.stats();
    for (const auto key : keys) count(kErase, [&] { map_.erase(key); });
    print();
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
    options.cache.bytes = std::size_t{1} << 20;
    return options;
  }

  static IndexOptions map_options() {
    IndexOptions options;
    options.resume_in_background = false;
    options.elimda.collecting_logs = 512;
    return options;
  }

  static double each(std::uint64_t n) { return static_cast<double>(n) / kKeys; }

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
    fmt::print("load factor {:.3f}; {:.2f} bytes of PM and {:.2f} of DRAM for a pair\n",
               stats_.load_factor, each(stats_.pm_bytes), each(stats_.dram_bytes));
  }

  Meter meter_;
  pm::Probe* before_ = nullptr;
  testing_files::TempDirectory folder_{testing_files::memory_directory()};
  Pool pool_;
  ElimDa<std::uint64_t, std::uint64_t> map_;
  IndexStats stats_;
};

TEST(ElimDaTraffic, InPersistentCaches) {
  PoolOptions options;
  options.durability = Durability::process;
  ElimDaTraffic traffic(options, Platform::eadr);
  traffic.run();
  EXPECT_LE(traffic.lines_read(kGet), 1.1) << "some pairs are in DRAM, few fingerprints collide";
  EXPECT_LE(traffic.media_read(kAbsent), 8);
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
