// How a technique shares its budget of DRAM among write buffers and the cached way to them. Options
// are those of an engine with a `technique`.
#pragma once

#include <cstdint>

#include <perdix/types.h>

namespace perdix::detail::index {

/// How much the cached path may take: a quarter. 0 if the technique has none, or if that is too
/// little for any.
template <class Options>
constexpr std::uint64_t path_budget(const Options& options) {
  constexpr std::uint64_t kShare = 4, kMin = 4096;
  if (options.technique != Technique::boc || options.dram_budget < kShare * kMin) return 0;
  return options.dram_budget == kUnlimited ? options.dram_budget : options.dram_budget / kShare;
}

/// The budget of write buffers: the rest.
template <class Options>
constexpr std::uint64_t buffer_budget(const Options& options) {
  if (options.technique == Technique::none) return 0;
  return options.dram_budget == kUnlimited ? options.dram_budget
                                           : options.dram_budget - path_budget(options);
}

}  // namespace perdix::detail::index
