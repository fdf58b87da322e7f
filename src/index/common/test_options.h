// Options of the engines with write buffers, for suites that run over several of them.
#pragma once

#include <cstdint>
#include <type_traits>

#include <perdix/types.h>

namespace perdix::detail::index {

/// Becomes the options of an engine, for example FastFairOptions, which has the members that it
/// has.
struct BufferOptions {
  std::uint64_t dram_budget = 0;
  Technique technique = Technique::none;
  bool resume_in_background = true;
  std::uint32_t segment_bytes = 16320;  ///< of a Cceh

  template <class Options>
  requires std::is_aggregate_v<Options>
  constexpr operator Options() const {  // NOLINT(google-explicit-constructor): stands for them
    Options options;
    options.dram_budget = dram_budget;
    if constexpr (requires { options.technique; }) options.technique = technique;
    options.resume_in_background = resume_in_background;
    if constexpr (requires { options.segment_bytes; }) options.segment_bytes = segment_bytes;
    return options;
  }
};

}  // namespace perdix::detail::index
