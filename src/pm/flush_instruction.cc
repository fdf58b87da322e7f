#include "pm/flush_instruction.h"

#include <cpuid.h>

namespace perdix::detail::pm {

FlushInstruction best_flush_instruction() noexcept {
  constexpr unsigned kExtendedFeatures = 7;
  constexpr unsigned kClflushoptBit = 1u << 23;
  constexpr unsigned kClwbBit = 1u << 24;
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(kExtendedFeatures, 0, &eax, &ebx, &ecx, &edx) == 0)
    return FlushInstruction::clflush;
  if ((ebx & kClwbBit) != 0) return FlushInstruction::clwb;
  if ((ebx & kClflushoptBit) != 0) return FlushInstruction::clflushopt;
  return FlushInstruction::clflush;
}

}  // namespace perdix::detail::pm
