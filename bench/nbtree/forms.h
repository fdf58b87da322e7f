// NbTree and the forms of it that its paper is about (src/index/nbtree/form.h), as contenders that
// no other program has. Records are integers.
#pragma once

#include <cstdint>

#include "ycsb/store.h"

namespace perdix::bench::figures {

/// NbTree itself, compiled as the other forms are.
const Engine& lock_free();

/// The same, which counts conflicts.
const Engine& counted();

/// NBTree-W and NBTree-WR, which count them, too.
const Engine& write_locks();
const Engine& all_locks();

/// A leaf's metadata is in PM.
const Engine& metadata_in_pm();

/// The conflicts so far in a store of a form that counts them; else 0.
std::uint64_t conflicts_in(const Store& store);

}  // namespace perdix::bench::figures
