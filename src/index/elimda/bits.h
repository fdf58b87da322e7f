// Changing bits of a word in PM whose other bits may change at the same time.
#pragma once

#include <cstdint>

#include "pm/access.h"
#include "pm/change.h"
#include "pm/persist.h"

namespace perdix::detail::index::elimda {

/// Atomic. Not durable before a flush and a fence. False if the bits were like that already.
inline bool change_bits(const pm::Persister& pm, const pm::Change& change) {
  std::uint64_t before = pm::load(*change.word);
  while ((before & change.mask) != change.value) {
    if (pm.compare_exchange(*change.word, before, change.of(before))) return true;
  }
  return false;
}

}  // namespace perdix::detail::index::elimda
