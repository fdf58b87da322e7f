// The identity of the machine's present run, to tell a crash of the process from one of the
// machine.
#pragma once

#include <array>
#include <cstdint>

namespace perdix::pool {

using BootId = std::array<std::uint8_t, 16>;

/// The kernel's random boot id; all zeros where the kernel doesn't tell. Two unknown ones must not
/// be taken for the same: see same_boot().
BootId current_boot_id();

/// True if both are known and equal.
bool same_boot(const BootId& a, const BootId& b) noexcept;

/// 16 random bytes that identify a pool.
std::array<std::uint8_t, 16> random_uuid();

}  // namespace perdix::pool
