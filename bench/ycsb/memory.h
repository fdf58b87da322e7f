// The memory of this process and the space of a directory, as the operating system reports them.
#pragma once

#include <cstdint>
#include <filesystem>

namespace perdix::bench {

/// Returns the resident anonymous memory of this process in bytes: heap and stacks, but no mapped
/// files and thus no pool or database file. Returns free heap memory to the system first.
std::uint64_t resident_anonymous_bytes();

/// Bytes of the heap that are allocated now, by all threads; not what it keeps for reuse.
std::uint64_t heap_bytes_in_use();

/// Bytes of all files below a directory that are really allocated (holes don't count).
std::uint64_t allocated_bytes(const std::filesystem::path& directory);

}  // namespace perdix::bench
