// The options of a layout at their bounds: the index holds what it must, also after it was opened
// with other fingerprints, and what lies beyond is refused.
#include <cstdint>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/error.h>
#include <perdix/papers/elimda.h>
#include <perdix/pool.h>

#include "util/test_directory.h"

namespace perdix::detail::index::elimda {
namespace {

struct Case {
  const char* name;
  ElimDaOptions options;
};

std::ostream& operator<<(std::ostream& out, const Case& layout) { return out << layout.name; }

ElimDaOptions options_of(std::uint32_t logs, std::uint32_t unit, std::uint32_t d, std::uint32_t p,
                         std::uint32_t bits) {
  ElimDaOptions options;
  options.collecting_logs = logs;
  options.media_unit = unit;
  options.d_bucket_pairs = d;
  options.p_bucket_pairs = p;
  options.fingerprint_bits = bits;
  return options;
}

const std::vector<Case> kLayouts = {
    {"defaults", {}},
    {"growing_logs_of_cache_lines", options_of(0, 64, 4, 16, 16)},
    {"growing_logs_of_pages", options_of(0, 4096, 256, 4096, 16)},
    {"usual_logs", options_of(8192, 256, 16, 256, 16)},
    {"one_log", options_of(1, 256, 16, 256, 16)},
    {"max_logs", options_of(32768, 256, 16, 256, 16)},
    {"cache_lines", options_of(8192, 64, 4, 256, 16)},
    {"pages", options_of(1024, 4096, 256, 4096, 16)},
    {"smallest_buckets", options_of(64, 64, 4, 8, 16)},
    {"largest_buckets", options_of(64, 256, 2048, 4096, 16)},
    {"large_d_buckets", options_of(64, 256, 64, 256, 16)},
    {"no_fingerprint_bits", options_of(8192, 256, 16, 256, 0)},
    {"few_fingerprint_bits", options_of(8192, 256, 16, 256, 9)},
    {"reserved_ways",
     [] {
       ElimDaOptions options;
       options.reserved_cache_ways = 1;
       return options;
     }()},
};

class Layouts : public ::testing::TestWithParam<std::tuple<Case, MediaUnits>> {
 protected:
  using Index = ElimDa<std::uint64_t, std::string>;
  static constexpr std::uint64_t kKeys = 30'000;

  static std::string value_of(std::uint64_t key) { return "value " + std::to_string(key); }

  static void expect_odd_keys(const Index& index) {
    EXPECT_EQ(index.size(), kKeys / 2);
    for (std::uint64_t key = 0; key < kKeys; ++key) {
      const auto value = index.get(key);
      ASSERT_EQ(value.has_value(), key % 2 == 1) << key;
      ASSERT_EQ(value.value_or(value_of(key)), value_of(key));
    }
    const CheckReport report = index.check();
    EXPECT_TRUE(report.ok()) << report.problems.front();
  }

  testing_files::TempDirectory folder_;
};

TEST_P(Layouts, HoldWhatTheyMust) {
  ElimDaOptions options = std::get<Case>(GetParam()).options;
  options.media_units = std::get<MediaUnits>(GetParam());
  const Pool pool = Pool::create(folder_.path() / "pool");
  {
    Index index(pool, "t", options);
    for (std::uint64_t key = 0; key < kKeys; key += 2) index.insert_ahead(key, value_of(key));
    for (std::uint64_t key = 1; key < kKeys; key += 2) ASSERT_TRUE(index.insert(key, "first"));
    for (std::uint64_t key = 1; key < kKeys; key += 2)
      ASSERT_TRUE(index.update(key, value_of(key)));
    for (std::uint64_t key = 0; key < kKeys; key += 2) ASSERT_TRUE(index.erase(key)) << key;
    expect_odd_keys(index);
  }
  options.fingerprint_bits = 16 - options.fingerprint_bits;
  expect_odd_keys(Index(pool, "t", options));
}

INSTANTIATE_TEST_SUITE_P(
    AtBounds, Layouts,
    ::testing::Combine(::testing::ValuesIn(kLayouts),
                       ::testing::Values(MediaUnits::always, MediaUnits::never)),
    [](const auto& layout) {
      const bool straight = std::get<MediaUnits>(layout.param) == MediaUnits::never;
      return std::string(std::get<Case>(layout.param).name) + (straight ? "_straight" : "");
    });

TEST(ElimDaOptions, RefusesValuesOutOfRangeAndCreatesNothing) {
  const std::vector<Case> refused = {
      {"three logs", options_of(3, 256, 16, 256, 16)},
      {"too many logs", options_of(65536, 256, 16, 256, 16)},
      {"a unit of no device", options_of(8192, 128, 16, 256, 16)},
      {"no unit", options_of(8192, 0, 16, 256, 16)},
      {"a D-bucket that is no power of two", options_of(8192, 256, 24, 256, 16)},
      {"too large a D-bucket", options_of(8192, 256, 4096, 256, 16)},
      {"a P-bucket that is no power of two", options_of(8192, 256, 16, 300, 16)},
      {"too large a P-bucket", options_of(8192, 256, 16, 8192, 16)},
      {"too many bits", options_of(8192, 256, 16, 256, 17)},
      {"units that are neither there nor not", {.media_units = static_cast<MediaUnits>(3)}},
  };
  const testing_files::TempDirectory folder;
  const Pool pool = Pool::create(folder.path() / "pool");
  for (const Case& layout : refused) {
    try {
      const ElimDa<std::uint64_t, std::uint64_t> index(pool, "t", layout.options);
      ADD_FAILURE() << layout.name << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument) << layout.name << ": " << error.what();
    }
    EXPECT_TRUE(pool.indexes().empty()) << layout.name;
  }
}

}  // namespace
}  // namespace perdix::detail::index::elimda
