// The probe: what counts as a line of an operation, whose it is, and that a run counts the same
// wherever the pool is mapped.
#include "testing/meter/meter.h"

#include <thread>

#include <gtest/gtest.h>

#include "pm/access.h"
#include "pm/persist.h"
#include "util/random.h"

namespace perdix::testing {
namespace {

constexpr Meter::Kind kGet = 1;
constexpr Meter::Kind kPut = 2;
constexpr std::uintptr_t kRegion = std::uintptr_t{1} << 40;

const void* at(std::uintptr_t offset, std::uintptr_t base = kRegion) {
  return reinterpret_cast<const void*>(base + offset);
}

const detail::pm::Site kHere = detail::pm::Site::current();

TEST(Meter, counts_a_line_once_per_operation) {
  Meter meter;
  for (int i = 0; i < 3; ++i) {
    const Meter::Operation operation(meter, kGet);
    meter.on_read(at(0), 8);
    meter.on_read(at(56), 16);  // lines 0 and 1
    meter.on_read(at(8), 8);
  }
  EXPECT_EQ(meter.traffic(kGet).operations, 3);
  EXPECT_EQ(meter.traffic(kGet).lines_read, 6);
  EXPECT_EQ(meter.traffic(kGet).lines_written, 0);
}

TEST(Meter, counts_reads_and_writes_of_a_line_apart) {
  Meter meter;
  const Meter::Operation operation(meter, kPut);
  meter.on_read(at(0), 8);
  meter.on_write(at(0), 8);
  meter.on_write(at(8), 8);
  EXPECT_EQ(meter.traffic(kPut).lines_read, 1);
  EXPECT_EQ(meter.traffic(kPut).lines_written, 1);
}

TEST(Meter, counts_every_flushed_line_and_fence) {
  Meter meter;
  {
    const Meter::Operation operation(meter, kPut);
    meter.on_write(at(0), 256);
    EXPECT_TRUE(meter.on_flush(at(0), 256, kHere));
    EXPECT_TRUE(meter.on_flush(at(0), 8, kHere));
    EXPECT_TRUE(meter.on_fence(kHere));
  }
  const Traffic traffic = meter.traffic(kPut);
  EXPECT_EQ(traffic.flushes, 5);
  EXPECT_EQ(traffic.fences, 1);
  EXPECT_EQ(traffic.device.imc_written, 256);
}

TEST(Meter, nothing_is_a_line_when_nothing_is_announced) {
  Meter meter;
  meter.on_read(at(10), 0);
  meter.on_write(at(0), 0);
  EXPECT_EQ(meter.traffic(Meter::kOutside), Traffic());
}

TEST(Meter, keeps_kinds_apart) {
  Meter meter;
  meter.on_read(at(0), 64);
  meter.on_read(at(0), 64);
  {
    const Meter::Operation operation(meter, kGet);
    meter.on_read(at(4096), 64);
  }
  EXPECT_EQ(meter.traffic(Meter::kOutside).lines_read, 2);
  EXPECT_EQ(meter.traffic(Meter::kOutside).device.imc_read, 64);
  EXPECT_EQ(meter.traffic(kGet).lines_read, 1);
  EXPECT_EQ(meter.traffic(kGet).device.media_read, 256);
  EXPECT_EQ(meter.traffic(kPut), Traffic());
}

TEST(Meter, keeps_threads_apart) {
  Meter meter;
  const Meter::Operation operation(meter, kGet);
  std::thread([&] {
    const Meter::Operation other(meter, kPut);
    meter.on_write(at(0), 8);
  }).join();
  meter.on_read(at(0), 8);
  EXPECT_EQ(meter.traffic(kPut).lines_written, 1);
  EXPECT_EQ(meter.traffic(kGet).lines_read, 1);
}

TEST(Meter, loses_nothing_when_threads_meet) {
  Meter meter;
  constexpr std::uint64_t kOperations = 10'000;
  const auto work = [&](std::uintptr_t base) {
    for (std::uint64_t i = 0; i < kOperations; ++i) {
      const Meter::Operation operation(meter, kPut);
      meter.on_write(at(base + i * 64), 8);
      meter.on_flush(at(base + i * 64), 8, kHere);
    }
  };
  {
    const std::jthread one(work, 0);
    const std::jthread two(work, std::uintptr_t{1} << 30);
  }
  EXPECT_EQ(meter.traffic(kPut).operations, 2 * kOperations);
  EXPECT_EQ(meter.traffic(kPut).lines_written, 2 * kOperations);
  EXPECT_EQ(meter.traffic(kPut).device.imc_written, 2 * kOperations * 64);
}

Traffic random_run(std::uintptr_t base) {
  MeterOptions options;
  options.cache.bytes = 1 << 16;
  Meter meter(options);
  detail::util::Random random(1);
  for (int i = 0; i < 20'000; ++i) {
    const Meter::Operation operation(meter, kPut);
    const std::uintptr_t offset = random.below(64 << 20);
    meter.on_read(at(offset, base), 1 + random.below(500));
    meter.on_write(at(offset, base), 8);
    if (random.one_in(2)) meter.on_flush(at(offset, base), 8, kHere);
  }
  return meter.traffic(kPut);
}

TEST(Meter, counts_the_same_wherever_the_pool_is_mapped) {
  const Traffic once = random_run(kRegion);
  EXPECT_EQ(random_run(kRegion), once);
  EXPECT_EQ(random_run(kRegion + (std::uintptr_t{38} << 21)), once);
  EXPECT_GT(once.device.media_written, 0);
}

TEST(Meter, reset_forgets_counts_but_not_the_cache) {
  Meter meter;
  meter.on_read(at(0), 64);
  meter.reset();
  meter.on_read(at(0), 64);
  EXPECT_EQ(meter.traffic(Meter::kOutside).lines_read, 1);
  EXPECT_EQ(meter.traffic(Meter::kOutside).device.imc_read, 0);
}

TEST(Meter, eadr_needs_no_flush) {
  MeterOptions options;
  options.platform = Platform::eadr;
  Meter meter(options);
  meter.on_write(at(0), 8);
  meter.on_flush(at(0), 8, kHere);
  EXPECT_EQ(meter.traffic(Meter::kOutside).flushes, 1);
  EXPECT_EQ(meter.traffic(Meter::kOutside).device.imc_written, 0);
}

// The seam itself, with real memory.
TEST(Meter, hears_the_seam) {
  alignas(64) std::uint64_t words[16] = {};
  Meter meter;
  detail::pm::install_probe(&meter);
  const detail::pm::Persister persister(detail::pm::Domain::memory_controller);
  {
    const Meter::Operation operation(meter, kPut);
    (void)detail::pm::load(words[8]);
    persister.publish(words[0], 1);
    persister.zero(words, sizeof words);
    persister.persist(words, sizeof words);
  }
  detail::pm::install_probe(nullptr);
  const Traffic traffic = meter.traffic(kPut);
  EXPECT_EQ(traffic.lines_read, 1);
  EXPECT_EQ(traffic.lines_written, 2);
  EXPECT_EQ(traffic.flushes, 3);
  EXPECT_EQ(traffic.fences, 2);
  EXPECT_EQ(traffic.device.imc_written, 3 * 64);
}

}  // namespace
}  // namespace perdix::testing
