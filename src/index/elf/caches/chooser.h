// Which lists a static cache copies (Jibril et al., Section IV-B).
//
// By level: those of the first dimensions. By probability: those with the most rows below them, as
// many as a budget has room for, and of the lists that these lead to, outlines, which save most of
// a copy's lines for a small part of its bytes. The budget is divided between the two so that it
// saves the most lines (split.h). A list has no more rows than the one that leads to it, so the
// chosen lists are connected. Both exclude the first list, which is always copied.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include "index/elf/caches/image.h"
#include "index/elf/lists.h"

namespace perdix::detail::index::elf {

struct CacheRequest {
  unsigned levels;               ///< lists of dimensions below it, whatever their rows
  std::uint64_t level_bytes;     ///< at most; those with the most rows if they don't fit
  std::uint64_t probable_bytes;  ///< for lists of any dimension
};

/// Chooses, ascending by position. Cost: reads the lists of the levels; all lists if some are
/// chosen by probability. Ends early, with the lists chosen so far, when asked to stop. Throws
/// corrupt, bad_alloc.
std::vector<Chosen> choose(const Lists& lists, const CacheRequest& request,
                           const std::stop_token& stop);

}  // namespace perdix::detail::index::elf
