// Trees of other forms than NbTree's (form.h), for the benchmark and the tests. They are no part of
// the library: a program that includes this compiles them. They promise no crash safety: no crash
// states of them were explored.
//
// A variant keeps what NbTree keeps under the same name, so the pools' checks are the same. An
// index that was made in the form MetadataInPm has longer blocks: another form can open it, but
// what that writes has shorter ones, and MetadataInPm must not open it again.
#pragma once

#include <cstdint>

#include "index/common/typed.h"
#include "index/nbtree/form.h"
#include "index/nbtree/nbtree.h"
#include "index/nbtree/operations.h"

namespace perdix::detail::index::nbtree {

/// Of integers.
template <class Form>
using Variant = TypedEngine<WordTree<std::uint64_t, Form>, std::uint64_t, std::uint64_t>;

}  // namespace perdix::detail::index::nbtree
