// What a query visits, as a help for choosing a cache: how many lists of each dimension, how many
// of them lie in DRAM, and how probable they are.
#pragma once

#include <span>

#include <perdix/elf.h>

#include "index/elf/box.h"
#include "index/elf/caches/cache.h"
#include "index/elf/lists.h"

namespace perdix::detail::index::elf {

/// Fills in a step for each dimension. `rows` are those of the lists; `cache` may be null. The
/// caller is in a Guard. Throws corrupt.
void explain(const Lists& lists, const Cache* cache, std::uint64_t rows, const Box& box,
             std::span<ElfStep> steps);

}  // namespace perdix::detail::index::elf
