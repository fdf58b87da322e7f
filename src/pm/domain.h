// The persistence domain of a pool: the point from which a store survives.
#pragma once

#include <cstdint>
#include <string_view>

namespace perdix::detail::pm {

enum class Domain : std::uint8_t {
  cpu_cache = 1,  ///< safe once globally visible: eADR, CXL with global persistent flush, or
                  ///< durability `process`
  memory_controller =
      2,  ///< safe once written back and fenced: ADR, NVDIMM, CXL without global persistent flush
  page_cache = 3,  ///< safe once its page is synced: an ordinary file
};

constexpr std::string_view to_string(Domain domain) noexcept {
  switch (domain) {
    case Domain::cpu_cache: return "cpu_cache";
    case Domain::memory_controller: return "memory_controller";
    case Domain::page_cache: return "page_cache";
  }
  return "unknown";
}

}  // namespace perdix::detail::pm
