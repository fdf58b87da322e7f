#include "pool/placement.h"

#include <cstring>

#include <fmt/format.h>

#include <perdix/error.h>

#include "pool/layout.h"
#include "util/random.h"

namespace perdix::detail::pool {
namespace {

#if defined(__SANITIZE_THREAD__)
// Its runtime refuses all addresses but its own ranges. This one is small: a pool with a larger
// max_size goes where the kernel puts it.
constexpr std::uint64_t kBegin = 0x10'0000'0000, kEnd = 0x80'0000'0000;
#else
constexpr std::uint64_t kBegin = 0x2000'0000'0000, kEnd = 0x5000'0000'0000;
#endif
constexpr std::uint64_t kStep = std::uint64_t{64} << 30;
constexpr unsigned kAttempts = 8;

}  // namespace

void map_pool(std::optional<pm::Mapping>& mapping, const pm::File& file,
              const Placement& placement) {
  const auto [size, max_size, address, seed] = placement;
  if (address != 0 || max_size > kEnd - kBegin) {
    mapping.emplace(file, size, max_size, address);
    return;
  }
  util::Random places(seed);
  const std::uint64_t count = (kEnd - kBegin - max_size) / kStep + 1;
  for (unsigned i = 0; i < kAttempts; ++i) {
    try {
      mapping.emplace(file, size, max_size, kBegin + places.below(count) * kStep);
      return;
    } catch (
        const Error&) {  // taken; or the kernel is short of something, or has no such addresses
    }
  }
  mapping.emplace(file, size, max_size);
}

std::uint64_t checked_address(const PoolOptions& options, std::uint64_t fixed,
                              const std::string& path) {
  if (options.address % kAddressUnit != 0 || options.address >> kAddressBits != 0) {
    throw Error(Errc::invalid_argument,
                fmt::format("address {:#x} of pool '{}' is not a multiple of 2 MiB below 2^{}",
                            options.address, path, kAddressBits));
  }
  if (fixed == 0) return options.address;
  if (options.address != 0 && options.address != fixed) {
    throw Error(
        Errc::invalid_argument,
        fmt::format("pool '{}' holds addresses and must be mapped at {:#x}, not at {:#x}; to "
                    "move it, dump its indexes and load them into a pool that was created "
                    "with the other address",
                    path, fixed, options.address));
  }
  return fixed;
}

std::uint64_t address_seed(std::span<const std::uint8_t, 16> uuid) {
  std::uint64_t seed = 0;
  std::memcpy(&seed, uuid.data(), sizeof seed);
  return seed;
}

}  // namespace perdix::detail::pool
