// Which of the most probable lists are copied, and which are outlined.
#pragma once

#include <cstdint>
#include <vector>

#include "index/elf/caches/image.h"

namespace perdix::detail::index::elf {

/// The most probable first; of lists with equally many rows, the one that leads to the others.
inline bool more_probable(const Chosen& a, const Chosen& b) {
  return a.rows != b.rows ? a.rows > b.rows : a.position < b.position;
}

inline std::uint64_t outline_bytes(const Chosen& list) {
  return std::uint64_t{list.outline_words} * sizeof(std::uint32_t);
}

/// Of lists that are sorted by more_probable(), those that have room in the budget. The first ones
/// are copied. Of those behind them, the ones are outlined which a copy leads to. Tries several
/// shares of the budget for copies, and takes the one by which queries save the most lines.
std::vector<Chosen> split(std::vector<Chosen> lists, std::uint64_t budget);

}  // namespace perdix::detail::index::elf
