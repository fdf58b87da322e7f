// Which persistence domain a pool has: decided from the options, from what the pool remembers, and
// from what the platform reports.
#pragma once

#include <perdix/pool.h>

#include "pm/domain.h"
#include "pm/mapping.h"

namespace perdix::detail::pool {

struct DomainDecision {
  pm::Domain domain = pm::Domain::cpu_cache;
  Durability durability = Durability::process;  ///< never automatic

  bool survives_power() const noexcept { return durability == Durability::power; }
};

/// `automatic` is `power` on persistent memory and `process` elsewhere. For `process` every store
/// is safe as soon as it is made; for `power` the granularity decides; a domain that the user chose
/// is taken as it is.
constexpr DomainDecision decide_domain(Durability durability, DomainChoice choice,
                                       pm::Granularity granularity) noexcept {
  const bool dax = granularity != pm::Granularity::page;
  DomainDecision decision;
  decision.durability = durability;
  if (durability == Durability::automatic)
    decision.durability = dax ? Durability::power : Durability::process;
  if (choice != DomainChoice::detect) {
    decision.domain = static_cast<pm::Domain>(choice);
  } else if (decision.durability == Durability::process) {
    decision.domain = pm::Domain::cpu_cache;
  } else if (granularity == pm::Granularity::byte) {
    decision.domain = pm::Domain::cpu_cache;
  } else {
    decision.domain = dax ? pm::Domain::memory_controller : pm::Domain::page_cache;
  }
  return decision;
}

static_assert(static_cast<int>(DomainChoice::cpu_cache) == static_cast<int>(pm::Domain::cpu_cache));
static_assert(static_cast<int>(DomainChoice::memory_controller) ==
              static_cast<int>(pm::Domain::memory_controller));
static_assert(static_cast<int>(DomainChoice::page_cache) ==
              static_cast<int>(pm::Domain::page_cache));

}  // namespace perdix::detail::pool
