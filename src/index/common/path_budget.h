// How a budget of DRAM is shared by write buffers and cached ways.
#pragma once

#include <cstdint>

#include <perdix/types.h>

namespace perdix::detail::index {

/// The part of a budget of DRAM that the cached path may take; buffers have the rest.
constexpr std::uint64_t path_budget(std::uint64_t dram_budget) {
  return dram_budget == IndexOptions::kUnlimited ? dram_budget : dram_budget / 4;
}

}  // namespace perdix::detail::index
