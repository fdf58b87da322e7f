// What a cached path saves, by the meter: lines of PM that calls read with and without it.
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <perdix/cceh.h>
#include <perdix/papers/fastfair.h>
#include <perdix/papers/skiplist.h>
#include <perdix/pool.h>

#include "testing/meter/meter.h"
#include "util/random.h"
#include "util/test_directory.h"

namespace perdix::testing {
namespace {

using Number = std::uint64_t;

constexpr Meter::Kind kInsert = 1, kGet = 2, kAbsent = 3;

class CachedPathTraffic : public ::testing::Test {
 protected:
  CachedPathTraffic() { before_ = detail::pm::install_probe(&meter_); }
  ~CachedPathTraffic() override { detail::pm::install_probe(before_); }

  struct Lines {
    double get;
    double absent;
    double insert;
  };

  /// Lines of PM that each call reads in an index of random keys.
  template <class Index>
  Lines lines_read(const std::string& name, Technique technique) {
    constexpr Number kKeys = 30'000;
    Index index(pool_, name, {.dram_budget = kUnlimited, .technique = technique});
    detail::util::Random random(3);
    std::vector<Number> keys;
    for (Number i = 0; i < kKeys; ++i) keys.push_back(random() | 1);
    meter_.reset();
    for (const Number key : keys) count(kInsert, [&] { index.insert(key, 1); });
    for (const Number key : keys) count(kGet, [&] { index.get(key); });
    for (const Number key : keys) count(kAbsent, [&] { index.get(key - 1); });
    const Lines lines{each(kGet), each(kAbsent), each(kInsert)};
    fmt::print("{}: get {:.2f}, absent {:.2f}, insert {:.2f}\n", name, lines.get, lines.absent,
               lines.insert);
    return lines;
  }

 private:
  template <class Call>
  void count(Meter::Kind kind, Call call) {
    const Meter::Operation operation(meter_, kind);
    call();
  }
  double each(Meter::Kind kind) const {
    const Traffic traffic = meter_.traffic(kind);
    return static_cast<double>(traffic.lines_read) / static_cast<double>(traffic.operations);
  }

  static PoolOptions options() {
    PoolOptions options;
    options.durability = Durability::process;
    options.domain = DomainChoice::memory_controller;
    return options;
  }

  Meter meter_;
  detail::pm::Probe* before_ = nullptr;
  testing_files::TempDirectory folder_{testing_files::memory_directory()};
  Pool pool_ = Pool::create(folder_.path() / "pool", options());
};

/// The levels above the second cost nothing, but for tall nodes that come.
TEST_F(CachedPathTraffic, SkipList) {
  using Index = SkipList<Number, Number>;
  const Lines plain = lines_read<Index>("plain", Technique::none);
  const Lines cached = lines_read<Index>("cached", Technique::boc);
  EXPECT_LE(cached.get, plain.get / 3);
  EXPECT_LE(cached.absent, plain.absent / 3);
  EXPECT_LE(cached.insert, plain.insert / 2);
}

/// A search reads its leaf only, and of the next one the bound.
TEST_F(CachedPathTraffic, FastFair) {
  using Index = FastFair<Number, Number>;
  const Lines merged = lines_read<Index>("out of place", Technique::bo);
  const Lines cached = lines_read<Index>("cached", Technique::boc);
  EXPECT_LE(cached.get, merged.get / 2);
  EXPECT_LE(cached.absent, merged.absent / 2);
  EXPECT_LE(cached.insert, merged.insert / 2);
}

/// An entry of the directory, and mostly its leader's line.
TEST_F(CachedPathTraffic, Cceh) {
  using Index = Cceh<Number, Number>;
  const Lines merged = lines_read<Index>("out of place", Technique::bo);
  const Lines cached = lines_read<Index>("cached", Technique::boc);
  EXPECT_LE(cached.get, merged.get - 1);
  EXPECT_LE(cached.absent, merged.absent - 1);
}

}  // namespace
}  // namespace perdix::testing
