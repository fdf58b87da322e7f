// The forms of NbTree that its paper compares it with, to measure what a part of the design brings
// (Zhang et al. 2024, VI-D and VI-E). They are no part of the library. They promise no crash
// safety: no crash states of them were explored.
//
// A form keeps what NbTree keeps under the same name, so the pools' checks are the same. It is of
// integers. What it does otherwise is said by the patches in this folder.
#pragma once

#include <cstdint>

#include "index/common/typed.h"
#include "index/nbtree/nbtree.h"
#include "index/nbtree_counted/nbtree.h"
#include "index/nbtree_coupled/nbtree.h"
#include "index/nbtree_w/nbtree.h"
#include "index/nbtree_wr/nbtree.h"

namespace perdix::nbtree_forms {

namespace engines = detail::index;

template <class WordTree>
using Form = engines::TypedEngine<WordTree, std::uint64_t, std::uint64_t>;

/// NbTree itself.
using Plain = Form<engines::nbtree::WordTree<std::uint64_t>>;

/// NbTree, which counts conflicts.
using Counted = Form<engines::nbtree_counted::WordTree<std::uint64_t>>;

/// NBTree-W: one write at a time in a leaf.
using WriteLocks = Form<engines::nbtree_w::WordTree<std::uint64_t>>;

/// NBTree-WR: one write or lookup at a time in a leaf.
using AllLocks = Form<engines::nbtree_wr::WordTree<std::uint64_t>>;

/// Without the decoupled leaf: lookups read a leaf's metadata from PM.
using Coupled = Form<engines::nbtree_coupled::WordTree<std::uint64_t>>;

}  // namespace perdix::nbtree_forms
