// Where in the address space of the process a pool is mapped.
//
// A pool that holds addresses of memory inside it must be mapped at the same address each time. (No
// engine needs this yet.) So every pool is mapped where the system puts nothing by itself, if such
// a place is free. The next process then finds it free too. The places lie between 2^45 and 5 *
// 2^44, behind the ranges of position-independent programs' heaps under AddressSanitizer and before
// those of programs, libraries and stacks under ASLR; under ThreadSanitizer between 2^36 and 2^39.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <perdix/pool.h>

#include "pm/file.h"
#include "pm/mapping.h"

namespace perdix::detail::pool {

/// The size and the place of a mapping.
struct Placement {
  std::uint64_t size;
  std::uint64_t max_size;
  std::uint64_t address;  ///< 0: where a place is free, by the seed
  std::uint64_t seed;
};

/// Makes the mapping. Throws as Mapping.
void map_pool(std::optional<pm::Mapping>& mapping, const pm::File& file,
              const Placement& placement);

/// Where the pool must be mapped: as it says itself (`fixed`), or as the options ask; 0: anywhere.
/// Throws invalid_argument.
std::uint64_t checked_address(const PoolOptions& options, std::uint64_t fixed,
                              const std::string& path);

/// From a pool's uuid, so that a pool comes back to the place where it was.
std::uint64_t address_seed(std::span<const std::uint8_t, 16> uuid);

}  // namespace perdix::detail::pool
