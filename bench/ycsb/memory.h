// How much memory the process and how much space a directory takes, as the system sees it.
#pragma once

#include <cstdint>
#include <filesystem>

namespace perdix::bench {

/// Resident anonymous memory of this process in bytes: heap and stacks, without mapped files, and
/// so without any pool or database file. Free heap memory is given back first.
std::uint64_t resident_anonymous_bytes();

/// Bytes of the heap that are allocated now, by all threads; not what it keeps for reuse.
std::uint64_t heap_bytes_in_use();

/// Bytes of all files below a directory that are really allocated (holes don't count).
std::uint64_t allocated_bytes(const std::filesystem::path& directory);

}  // namespace perdix::bench
