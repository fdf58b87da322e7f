// Cache, prefetcher and both platforms, on patterns that can be worked out by hand.
#include "testing/meter/memory_model.h"

#include <gtest/gtest.h>

#include "util/random.h"

namespace perdix::testing {
namespace {

constexpr std::uint64_t kCacheLines = 1024;

MeterOptions small(Platform platform) {
  MeterOptions options;
  options.platform = platform;
  options.cache = {kCacheLines * 64, kCacheLines};  // fully associative: strictly the oldest leaves
  options.prefetch.enabled = false;
  options.device.dimms = 1;
  return options;
}

TEST(MemoryModel, a_cached_line_is_read_once) {
  MemoryModel model(small(Platform::adr));
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t line = 0; line < kCacheLines; ++line) model.load(line);
  }
  EXPECT_EQ(model.traffic().imc_read, kCacheLines * 64);
  EXPECT_EQ(model.traffic().media_read, kCacheLines * 64);
}

TEST(MemoryModel, the_least_recently_used_line_leaves) {
  MemoryModel model(small(Platform::adr));
  for (std::uint64_t line = 0; line < kCacheLines; ++line) model.load(line);
  model.load(0);
  model.load(kCacheLines);  // displaces 1
  const std::uint64_t before = model.traffic().imc_read;
  model.load(0);
  EXPECT_EQ(model.traffic().imc_read, before);
  model.load(1);
  EXPECT_EQ(model.traffic().imc_read, before + 64);
}

TEST(MemoryModel, a_store_reads_the_line_first) {
  MemoryModel model(small(Platform::adr));
  model.store(7);
  EXPECT_EQ(model.traffic().imc_read, 64);
  EXPECT_EQ(model.traffic().imc_written, 0);
}

TEST(MemoryModel, adr_writes_at_the_flush_and_keeps_the_line) {
  MemoryModel model(small(Platform::adr));
  model.store(7);
  model.flush(7);
  EXPECT_EQ(model.traffic().imc_written, 64);
  model.flush(7);  // clean by now
  model.load(7);
  EXPECT_EQ(model.traffic().imc_written, 64);
  EXPECT_EQ(model.traffic().imc_read, 64);
}

TEST(MemoryModel, a_flush_of_a_line_that_is_not_cached_does_nothing) {
  MemoryModel model(small(Platform::adr));
  model.flush(7);
  EXPECT_EQ(model.traffic(), DeviceTraffic());
}

TEST(MemoryModel, adr_writes_unflushed_lines_when_they_leave) {
  MemoryModel model(small(Platform::adr));
  model.store(0);
  for (std::uint64_t line = 1; line <= kCacheLines; ++line) model.load(line);
  EXPECT_EQ(model.traffic().imc_written, 64);
}

TEST(MemoryModel, eadr_writes_only_what_leaves_the_cache) {
  MemoryModel model(small(Platform::eadr));
  for (int round = 0; round < 100; ++round) {
    for (std::uint64_t line = 0; line < kCacheLines; ++line) {
      model.store(line);
      model.flush(line);
    }
  }
  EXPECT_EQ(model.traffic().imc_written, 0);
  for (std::uint64_t line = 0; line < kCacheLines; ++line) model.load(kCacheLines + line);
  EXPECT_EQ(model.traffic().imc_written, kCacheLines * 64);
}

// The cost of a small write, which is why indexes buffer: 64 bytes become 256.
TEST(MemoryModel, a_random_write_with_flush_costs_four_lines_of_media) {
  MemoryModel model(small(Platform::adr));
  detail::util::Random random(1);
  constexpr std::uint64_t kWrites = 100'000;
  for (std::uint64_t i = 0; i < kWrites; ++i) {
    const std::uint64_t line = random.below(std::uint64_t{1} << 28);
    model.store(line);
    model.flush(line);
  }
  EXPECT_NEAR(static_cast<double>(model.traffic().media_written), kWrites * 256.0, 100 * 256.0);
}

TEST(MemoryModel, the_streamer_runs_ahead_by_two_lines_per_access) {
  MeterOptions options = small(Platform::adr);
  options.prefetch = {true, 32, 2, 20};
  MemoryModel model(options);
  const auto lines_read = [&] { return model.traffic().imc_read / 64; };
  model.load(128);
  EXPECT_EQ(lines_read(), 1);
  model.load(129);  // the stream begins: 130 and 131
  EXPECT_EQ(lines_read(), 4);
  model.load(130);
  EXPECT_EQ(lines_read(), 6);
  model.load(130);  // no new access to a line
  EXPECT_EQ(lines_read(), 6);
  for (std::uint64_t line = 131; line < 150; ++line) model.load(line);
  EXPECT_EQ(lines_read(), 150 - 128 + 20);
  for (std::uint64_t line = 150; line < 192; ++line) model.load(line);
  EXPECT_EQ(lines_read(), 64);  // the page ends here
}

TEST(MemoryModel, the_streamer_leaves_random_reads_alone) {
  MeterOptions options = small(Platform::adr);
  options.prefetch = {true, 32, 2, 20};
  MemoryModel model(options);
  for (std::uint64_t i = 0; i < 1000; ++i) model.load(i * 3);
  EXPECT_EQ(model.traffic().imc_read, 1000 * 64);
}

TEST(MemoryModel, dram_displaces_pm) {
  MemoryModel model(small(Platform::eadr));
  model.store(0);
  model.pollute(kCacheLines);
  EXPECT_EQ(model.traffic().imc_read, 64);
  EXPECT_EQ(model.traffic().imc_written, 64);
}

// 16 ways and hashed sets: a working set that fits easily stays, one far too large does not.
TEST(MemoryModel, associativity) {
  MeterOptions options = small(Platform::adr);
  options.cache = {1 << 20, 16};
  MemoryModel model(options);
  detail::util::Random random(1);
  constexpr std::uint64_t kAccesses = 1'000'000;
  for (std::uint64_t i = 0; i < kAccesses; ++i) model.load(random.below(8 * 1024));
  EXPECT_LT(model.traffic().imc_read, 8 * 1024 * 64 + kAccesses * 64 / 1000);
  const std::uint64_t before = model.traffic().imc_read;
  for (std::uint64_t i = 0; i < kAccesses; ++i) model.load(random.below(64 * 1024));
  const double misses = static_cast<double>(model.traffic().imc_read - before) / 64 / kAccesses;
  EXPECT_NEAR(misses, 0.75, 0.02);  // a quarter of the lines is cached
}

}  // namespace
}  // namespace perdix::testing
