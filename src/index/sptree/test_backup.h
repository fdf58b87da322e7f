// The backup of an index, for tests: read directly, while no thread writes to it.
#pragma once

#include <cstdint>
#include <map>

#include <perdix/pool.h>

#include "index/sptree/leaf_at.h"
#include "index/sptree/sptree.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::sptree {

template <class K>
class BackupOf {
 public:
  using Leaves = std::map<K, std::uint64_t>;  ///< low bound and offset of each

  /// Of the index "t", whose values are integers, and which is not open.
  explicit BackupOf(const perdix::Pool& pool)
      : BackupOf(*pool.core(),
                 pool.core()->open_index("t", kEngineName, kKindOf<K>, Kind::u64).root()) {}

  /// Of the index with this root block.
  BackupOf(pool::PoolCore& pool, pm::Offset root)
      : pool_(pool), root_(root_at(pool, root)), tree_(pool, root_.backup) {}

  fastfair::Tree<K, std::uint64_t>& tree() { return tree_; }

  Leaves leaves() const {
    Leaves found;
    tree_.scan(K{}, [&](View<K> low, std::uint64_t leaf) { return found[K(low)] = leaf, true; });
    return found;
  }

  /// The leaves that the list of leaves says it has. The first leaf is found through the root.
  Leaves leaves_it_should_have() const {
    Leaves found;
    const Codec<K> words(pool_);
    for (pm::Offset at = successor_of(leaf_at(pool_, root_.first)); at != pm::kNull;) {
      const Leaf& leaf = leaf_at(pool_, at);
      if (Backup<K>::has(at)) found[K(words.view(leaf.low))] = at;
      at = successor_of(leaf);
    }
    return found;
  }

 private:
  pool::PoolCore& pool_;
  Root& root_;
  fastfair::Tree<K, std::uint64_t> tree_;
};

}  // namespace perdix::detail::index::sptree
