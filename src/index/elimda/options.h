// The options of ElimDa as a table; index/common/engine_options.h says what for.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <perdix/papers/elimda.h>

#include "index/common/engine_options.h"
#include "index/elimda/layout.h"
#include "index/elimda/shape.h"

namespace perdix::detail::index {

template <>
struct OptionText<MediaUnits> {
  static constexpr std::string_view kType = "detect, always or never", kForm = kType;
  static constexpr std::array<std::string_view, 3> kNames = {"detect", "always", "never"};

  static std::optional<MediaUnits> read(std::string_view text) {
    const auto found = std::ranges::find(kNames, text);
    if (found == kNames.end()) return std::nullopt;
    return static_cast<MediaUnits>(found - kNames.begin());
  }
  static std::string write(MediaUnits value) {
    const auto number = static_cast<std::size_t>(value);
    return number < kNames.size() ? std::string(kNames.at(number)) : std::to_string(number);
  }
};

namespace elimda {

inline constexpr std::uint32_t kMinPmPairs = 16, kMaxPmPairs = 4096;

constexpr bool is_power_up_to(std::uint32_t number, std::uint32_t max) {
  return std::has_single_bit(number) && number <= max;
}

/// Pairs of a bucket in DRAM: at least those of a media unit.
constexpr std::uint32_t d_pairs_of(const ElimDaOptions& options) {
  return std::max<std::uint32_t>(options.d_bucket_pairs, options.media_unit / sizeof(Pair));
}

/// Pairs of a bucket in the pool: at least those of two buckets in DRAM.
constexpr std::uint32_t p_pairs_of(const ElimDaOptions& options) {
  return std::max({options.p_bucket_pairs, 2 * d_pairs_of(options), kMinPmPairs});
}

inline constexpr std::array kOptions = {
    resume_in_background<ElimDaOptions>(),
    option<&ElimDaOptions::collecting_logs>(
        "collecting_logs", "collecting logs of a new index; 0: their number grows with it",
        "0 or a power of two, at most 32768",
        [](const ElimDaOptions& o) {
          return o.collecting_logs == 0 || is_power_up_to(o.collecting_logs, Shape::kMaxLogs);
        }),
    option<&ElimDaOptions::media_unit>(
        "media_unit", "bytes that the device writes at a time, of a new index", "64, 256 or 4096",
        [](const ElimDaOptions& o) {
          return o.media_unit == 64 || o.media_unit == 256 || o.media_unit == 4096;
        }),
    option<&ElimDaOptions::d_bucket_pairs>(
        "d_bucket_pairs", "pairs of a bucket in DRAM, of a new index",
        "a power of two, at most 2048",
        [](const ElimDaOptions& o) { return is_power_up_to(d_pairs_of(o), kMaxPmPairs / 2); }),
    option<&ElimDaOptions::p_bucket_pairs>(
        "p_bucket_pairs", "pairs of a bucket in the pool, of a new index",
        "a power of two, at most 4096",
        [](const ElimDaOptions& o) { return is_power_up_to(p_pairs_of(o), kMaxPmPairs); }),
    option<&ElimDaOptions::fingerprint_bits>(
        "fingerprint_bits", "bits of DRAM for each pair in the pool", "at most 16",
        [](const ElimDaOptions& o) { return o.fingerprint_bits <= 16; }),
    option<&ElimDaOptions::reserved_cache_ways>(
        "reserved_cache_ways",
        "ways of the last-level cache that the process reserves (Intel CAT)"),
    option<&ElimDaOptions::media_units>(
        "media_units", "whether pairs are collected until they fill a media unit", {},
        [](const ElimDaOptions& o) { return o.media_units <= MediaUnits::never; }),
};
static_assert(is_complete(kOptions));

}  // namespace elimda
}  // namespace perdix::detail::index
