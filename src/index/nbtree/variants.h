// Trees of other forms than NbTree's (form.h), for nbtree_bench and the tests. They are no part of
// the library: a program that includes this compiles them. They promise no crash safety: no crash
// states of them were explored.
//
// A variant keeps what NbTree keeps under the same name, so the pools' checks are the same. An
// index that was made in the form MetadataInPm has longer blocks: another form can open it, but
// what that writes has shorter ones, and MetadataInPm must not open it again.
#pragma once

#include <cstdint>
#include <utility>

#include <perdix/types.h>

#include "index/common/typed_tree.h"
#include "index/nbtree/form.h"
#include "index/nbtree/nbtree.h"
#include "index/nbtree/operations.h"
#include "pool/index_handle.h"
#include "pool/open_index.h"

namespace perdix::detail::index::nbtree {

/// Of integers. Without scans.
template <class Form>
class Variant final
    : public TypedTree<WordTree<std::uint64_t, Form>, std::uint64_t, std::uint64_t> {
  using Base = TypedTree<WordTree<std::uint64_t, Form>, std::uint64_t, std::uint64_t>;

 public:
  explicit Variant(pool::IndexHandle handle, const IndexOptions& options = {})
      : Base(std::move(handle), kKindOf<std::uint64_t>, options),
        entry_(this->pool().open_indexes(), *this) {}

 private:
  pool::OpenIndexes::Entry entry_;  // last: made when the index is complete
};

}  // namespace perdix::detail::index::nbtree
