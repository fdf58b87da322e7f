// Tells the instruments which words were read, of the lists in PM or of their copies in DRAM. In a
// normal build this does nothing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "pm/access.h"

namespace perdix::detail::index::elf {

/// Hears of reads of copies. As pm::internal::probe: only instrumented builds have one.
using CopyReader = void (*)(const void* p, std::size_t n);
inline std::atomic<CopyReader> copy_reader{nullptr};

inline void note_words_read(bool in_pm, const void* words, std::size_t count) {
  constexpr std::size_t kWord = sizeof(std::uint32_t);
  if (in_pm) return pm::on_read(words, count * kWord);
  if constexpr (pm::kInstrumented) {
    if (const CopyReader read = copy_reader.load(std::memory_order_acquire))
      read(words, count * kWord);
  }
}

}  // namespace perdix::detail::index::elf
