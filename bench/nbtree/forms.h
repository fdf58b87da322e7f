// NbTree and the forms of it that its paper is about (src/index/nbtree/form.h), as systems that
// no other program has. Records are integers.
#pragma once

#include <cstdint>

#include "ycsb/store.h"

namespace perdix::bench::figures {

/// NbTree itself, compiled as the other forms are.
const System& lock_free();

/// The same, which counts conflicts.
const System& counted();

/// NBTree-W and NBTree-WR, which count them, too.
const System& write_locks();
const System& all_locks();

/// A leaf's metadata is in PM.
const System& metadata_in_pm();

/// The conflicts so far in a store of a form that counts them; else 0.
std::uint64_t conflicts_in(const Store& store);

}  // namespace perdix::bench::figures
