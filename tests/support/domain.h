// The persistence domains in which every suite runs, as the options that give them on any machine.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include <perdix/pool.h>

#include "support/pool_options.h"

namespace perdix::test {

enum class Domain {
  process,            ///< durability `process`: nothing is flushed
  memory_controller,  ///< durability `power` with write-back instructions forced
  page_cache,         ///< durability `power` on an ordinary file: msync
};

inline constexpr std::array kAllDomains = {Domain::process, Domain::memory_controller,
                                           Domain::page_cache};

/// The name that the suites print and take.
constexpr std::string_view name_of(Domain domain) {
  switch (domain) {
    case Domain::process: return "process";
    case Domain::memory_controller: return "memory_controller";
    case Domain::page_cache: return "page_cache";
  }
  return "";
}

constexpr std::optional<Domain> domain_named(std::string_view name) {
  for (const Domain domain : kAllDomains) {
    if (name_of(domain) == name) return domain;
  }
  return std::nullopt;
}

/// What PoolInfo::domain must say.
constexpr std::string_view expected_domain(Domain domain) {
  return domain == Domain::process ? "cpu_cache" : name_of(domain);
}

inline PoolOptions options_for(Domain domain) {
  PoolOptions options = options_for_all_engines();
  options.max_size = std::uint64_t{1} << 34;
  switch (domain) {
    case Domain::process: options.durability = Durability::process; break;
    case Domain::memory_controller:
      options.durability = Durability::power;
      options.domain = DomainChoice::memory_controller;
      break;
    case Domain::page_cache:
      options.durability = Durability::power;
      options.domain = DomainChoice::page_cache;
      break;
  }
  return options;
}

}  // namespace perdix::test
