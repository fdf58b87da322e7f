// The x86 instructions that write a cache line back, chosen once by what the processor has.
#pragma once

#include <emmintrin.h>

#include <cstddef>
#include <cstdint>

#include "pm/offset.h"

namespace perdix::detail::pm {

enum class FlushInstruction : std::uint8_t { clwb, clflushopt, clflush };

/// The cheapest one that this processor has: clwb keeps the line cached, clflushopt evicts it,
/// clflush also serialises.
FlushInstruction best_flush_instruction() noexcept;

/// Starts the write-back of every line that [p, p+n) touches. Written as bytes so that no target
/// option is needed.
inline void flush_lines(FlushInstruction instruction, const void* p, std::size_t n) {
  const auto end = reinterpret_cast<std::uintptr_t>(p) + n;
  for (auto line = reinterpret_cast<std::uintptr_t>(p) & ~(kLineSize - 1); line < end;
       line += kLineSize) {
    volatile char* address = reinterpret_cast<volatile char*>(line);
    switch (instruction) {
      case FlushInstruction::clwb: asm volatile(".byte 0x66; xsaveopt %0" : "+m"(*address)); break;
      case FlushInstruction::clflushopt:
        asm volatile(".byte 0x66; clflush %0" : "+m"(*address));
        break;
      case FlushInstruction::clflush: asm volatile("clflush %0" : "+m"(*address)); break;
    }
  }
}

/// Stores words past the caches. Lines that are written whole are not read first, and leave the
/// processor together. Each word is stored as one; after the next store_fence() all are visible.
inline void stream_words(std::uint64_t* to, const std::uint64_t* from, std::size_t words) {
  for (std::size_t i = 0; i < words; ++i)
    _mm_stream_si64(reinterpret_cast<long long*>(to + i), static_cast<long long>(from[i]));
}

/// Waits until earlier flushes have reached the memory controller and earlier stores are globally
/// visible.
inline void store_fence() { asm volatile("sfence" ::: "memory"); }

}  // namespace perdix::detail::pm
