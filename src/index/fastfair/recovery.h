// What an opening finds or makes, where an index begins: its root word, the head of one that has,
// or had, write buffers, and the first leaf (layout.h, F1).
#pragma once

#include <cstdint>

#include "index/fastfair/layout.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::fastfair {

/// The head of an index whose root word is `word`; null if it leads to a node, or nowhere.
Head* head_at(const pool::PoolCore& pool, std::uint64_t word);

/// The word that leads to the root node of an index. `buffers`: the index is to have a head, which
/// it gets unless the pool is full.
std::uint64_t& root_word(pool::PoolCore& pool, std::uint64_t& word, bool buffers);

/// Gives a new tree its first leaf, empty and responsible for all keys. The root word is the
/// commit.
void create_first_leaf(pool::PoolCore& pool, std::uint64_t& root);

}  // namespace perdix::detail::index::fastfair
