// What an insert into an index with write buffers costs, by the meter: bytes written to the media,
// lines flushed, fences. Random keys, a cache that is smaller by the factor by which there are
// fewer keys than in the paper's experiment (docs/traffic-meter.md).
#pragma once

#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <perdix/pool.h>
#include <perdix/types.h>

#include "testing/meter/meter.h"
#include "util/random.h"
#include "util/test_directory.h"

namespace perdix::testing {

inline MeterOptions scaled_testbed(std::uint64_t keys) {
  constexpr double kMeasuredKeys = 120.96e6;
  MeterOptions options;
  options.cache.bytes = static_cast<std::size_t>(static_cast<double>(options.cache.bytes) *
                                                 static_cast<double>(keys) / kMeasuredKeys);
  return options;
}

/// Of each insert, but `get` and `absent`: lines that such a call reads.
struct Row {
  double media_written, read_to_modify, media_read, flushes, fences, lines, get, absent;
};

template <class Index>
class InsertTraffic {
 public:
  static constexpr std::uint64_t kKeys = 500'000;
  static constexpr std::uint64_t kReads = 60'000;

  explicit InsertTraffic(Technique technique)
      : index_(pool_, "index", {.dram_budget = kUnlimited, .technique = technique}) {}
  InsertTraffic(const InsertTraffic&) = delete;
  InsertTraffic& operator=(const InsertTraffic&) = delete;
  ~InsertTraffic() { detail::pm::install_probe(before_); }

  Row run() {
    detail::util::Random random(1);
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      const std::uint64_t key = random() | 1;
      count(kInsert, [&] { index_.insert(key, key); });
    }
    detail::util::Random again(1);
    for (std::uint64_t i = 0; i < kReads; ++i) {
      const std::uint64_t key = again() | 1;
      count(kGet, [&] { EXPECT_TRUE(index_.get(key)); });
      count(kAbsent, [&] { EXPECT_FALSE(index_.get(key - 1)); });
    }
    const Traffic traffic = meter_.traffic(kInsert);
    const auto each = [&](std::uint64_t what) { return static_cast<double>(what) / kKeys; };
    return {each(traffic.device.media_written),
            each(traffic.device.media_read_to_modify),
            each(traffic.device.media_read),
            each(traffic.flushes),
            each(traffic.fences),
            each(traffic.lines_written),
            static_cast<double>(meter_.traffic(kGet).lines_read) / kReads,
            static_cast<double>(meter_.traffic(kAbsent).lines_read) / kReads};
  }

 private:
  static constexpr Meter::Kind kInsert = 1, kGet = 2, kAbsent = 3;

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

  Meter meter_{scaled_testbed(kKeys)};
  detail::pm::Probe* const before_ = detail::pm::install_probe(&meter_);
  testing_files::TempDirectory folder_{testing_files::memory_directory()};
  Pool pool_ = Pool::create(folder_.path() / "pool", options());
  Index index_;
};

template <class Index>
Row measure(std::string_view name, Technique technique) {
  const Row row = InsertTraffic<Index>(technique).run();
  fmt::print(
      "{}: an insert writes {:.1f} media bytes, {:.1f} of them read first, reads {:.1f}; {:.3f} "
      "lines flushed, {:.3f} fences, {:.3f} lines written; get reads {:.2f} lines, absent {:.2f}\n",
      name, row.media_written, row.read_to_modify, row.media_read, row.flushes, row.fences,
      row.lines, row.get, row.absent);
  return row;
}

}  // namespace perdix::testing
