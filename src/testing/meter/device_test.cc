// What the literature says of Optane's media traffic, as cases whose outcome is known: Yang et al.,
// "An Empirical Guide to the Behavior and Use of Scalable Persistent Memory" (FAST 2020), and Xiang
// et al., "Characterizing the Performance of Intel Optane Persistent Memory" (EuroSys 2022).
#include "testing/meter/device.h"

#include <gtest/gtest.h>

#include <perdix/error.h>

#include "util/random.h"

namespace perdix::testing {
namespace {

constexpr std::uint64_t kLines = 100'000;
constexpr std::uint64_t kFarApart = std::uint64_t{1} << 24;

DeviceOptions one_dimm(std::size_t unit = 256) {
  DeviceOptions options;
  options.media_unit = unit;
  options.dimms = 1;
  return options;
}

double ratio(std::uint64_t a, std::uint64_t b) {
  return static_cast<double>(a) / static_cast<double>(b);
}

TEST(Device, random_lines_cost_a_unit_each) {
  Device device(one_dimm());
  detail::util::Random random(1);
  for (std::uint64_t i = 0; i < kLines; ++i) device.write(random.below(kFarApart));
  device.drain();
  const DeviceTraffic& traffic = device.traffic();
  EXPECT_EQ(traffic.imc_written, kLines * 64);
  EXPECT_NEAR(ratio(traffic.media_written, traffic.imc_written), 4, 0.01);
  EXPECT_EQ(traffic.media_read_to_modify, traffic.media_written);
  EXPECT_EQ(traffic.media_read, 0);
}

TEST(Device, sequential_lines_are_combined) {
  Device device(one_dimm());
  for (std::uint64_t line = 0; line < kLines; ++line) device.write(line);
  device.drain();
  EXPECT_EQ(device.traffic().media_written, device.traffic().imc_written);
  EXPECT_EQ(device.traffic().media_read_to_modify, 0);
}

// Half of each unit: two lines for one write of 256 bytes.
TEST(Device, half_units_cost_twice) {
  Device device(one_dimm());
  for (std::uint64_t line = 0; line < kLines; line += 4) {
    device.write(line);
    device.write(line + 1);
  }
  device.drain();
  EXPECT_EQ(device.traffic().media_written, 2 * device.traffic().imc_written);
  EXPECT_EQ(device.traffic().media_read_to_modify, device.traffic().media_written);
}

TEST(Device, what_fits_the_write_buffer_is_absorbed) {
  Device device(one_dimm());
  detail::util::Random random(1);
  for (std::uint64_t i = 0; i < kLines; ++i) device.write(random.below((16 << 10) / 64));
  EXPECT_EQ(device.traffic().media_written, 0);
  device.drain();
  EXPECT_EQ(device.traffic().media_written, 16 << 10);
}

TEST(Device, the_write_buffer_ends_at_its_size) {
  Device device(one_dimm());
  for (int round = 0; round < 100; ++round) {
    for (std::uint64_t unit = 0; unit < 65; ++unit) device.write(unit * 4);
  }
  device.drain();
  EXPECT_EQ(device.traffic().media_written, 100 * 65 * 256);
}

TEST(Device, each_dimm_has_its_own_buffer) {
  DeviceOptions options = one_dimm();
  options.dimms = 6;
  Device device(options);
  detail::util::Random random(1);
  for (std::uint64_t i = 0; i < kLines; ++i) device.write(random.below(6 * (16 << 10) / 64));
  EXPECT_EQ(device.traffic().media_written, 0);
}

TEST(Device, neighbours_share_a_read) {
  Device device(one_dimm());
  for (std::uint64_t line = 4; line < 8; ++line) device.read(line);
  EXPECT_EQ(device.traffic().imc_read, 256);
  EXPECT_EQ(device.traffic().media_read, 256);
  device.read(8);
  EXPECT_EQ(device.traffic().media_read, 512);
}

TEST(Device, random_reads_cost_a_unit_each) {
  Device device(one_dimm());
  detail::util::Random random(1);
  for (std::uint64_t i = 0; i < kLines; ++i) device.read(random.below(kFarApart));
  EXPECT_NEAR(ratio(device.traffic().media_read, device.traffic().imc_read), 4, 0.01);
}

TEST(Device, the_read_buffer_forgets_the_oldest) {
  Device device(one_dimm());
  for (std::uint64_t unit = 0; unit < 65; ++unit) device.read(unit * 4);
  device.read(64 * 4 + 1);
  EXPECT_EQ(device.traffic().media_read, 65 * 256);
  device.read(1);
  EXPECT_EQ(device.traffic().media_read, 66 * 256);
}

TEST(Device, a_written_line_is_read_from_the_buffer) {
  Device device(one_dimm());
  device.write(5);
  device.read(5);
  EXPECT_EQ(device.traffic().media_read, 0);
  device.read(6);  // its neighbour is not there: the unit is read, and is complete from now on
  device.read(7);
  EXPECT_EQ(device.traffic().media_read, 256);
  device.drain();
  EXPECT_EQ(device.traffic().media_read_to_modify, 0);
}

TEST(Device, a_unit_that_was_just_read_need_not_be_read_to_be_modified) {
  Device device(one_dimm());
  device.read(4);
  device.write(5);
  device.drain();
  EXPECT_EQ(device.traffic().media_read, 256);
  EXPECT_EQ(device.traffic().media_written, 256);
  EXPECT_EQ(device.traffic().media_read_to_modify, 0);
}

TEST(Device, a_unit_of_a_line_amplifies_nothing) {
  Device device(one_dimm(64));
  detail::util::Random random(1);
  for (std::uint64_t i = 0; i < kLines; ++i) {
    device.write(random.below(kFarApart));
    device.read(random.below(kFarApart) + kFarApart);
  }
  device.drain();
  EXPECT_NEAR(ratio(device.traffic().media_written, device.traffic().imc_written), 1, 0.01);
  EXPECT_NEAR(ratio(device.traffic().media_read, device.traffic().imc_read), 1, 0.01);
  EXPECT_EQ(device.traffic().media_read_to_modify, 0);
}

TEST(Device, a_unit_of_a_page_amplifies_by_its_lines) {
  Device device(one_dimm(4096));
  detail::util::Random random(1);
  for (std::uint64_t i = 0; i < kLines; ++i) device.write(random.below(kFarApart));
  device.drain();
  EXPECT_NEAR(ratio(device.traffic().media_written, device.traffic().imc_written), 64, 0.1);
}

TEST(Device, without_buffers_each_write_reaches_the_media) {
  DeviceOptions options = one_dimm();
  options.write_buffer_bytes = 0;
  options.read_buffer_bytes = 0;
  Device device(options);
  for (std::uint64_t line = 0; line < 4; ++line) device.write(line);
  for (std::uint64_t line = 0; line < 4; ++line) device.read(line);
  EXPECT_EQ(device.traffic().media_written, 4 * 256);
  EXPECT_EQ(device.traffic().media_read_to_modify, 4 * 256);
  EXPECT_EQ(device.traffic().media_read, 4 * 256);
}

TEST(Device, refuses_a_unit_that_is_not_made_of_lines) {
  EXPECT_THROW(Device(one_dimm(100)), Error);
  EXPECT_THROW(Device(one_dimm(0)), Error);
  EXPECT_THROW(Device(one_dimm(8192)), Error);
}

}  // namespace
}  // namespace perdix::testing
