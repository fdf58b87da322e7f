// A pool with one tree in it.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "epoch/guard.h"
#include "index/common/test_pool.h"
#include "index/common/typed.h"
#include "index/nbtree/ledger.h"
#include "index/nbtree/nbtree.h"

namespace perdix::detail::index::nbtree {

template <class K, class V>
using Tree = TypedEngine<WordTree<K>, K, V>;

template <class K, class V>
class TestTree : public TestPool<TestTree<K, V>> {
 public:
  using TestPool<TestTree>::core;

  TestTree() { open(); }

  Tree<K, V>& operator*() { return *tree_; }
  Tree<K, V>* operator->() { return &*tree_; }

  void reopen(const NbTreeOptions& options = {}) {
    this->reopen_pool();
    open(options);
  }

  /// Opened a moment ago: all leaves are cold until they are needed.
  void reopen_cold() {
    NbTreeOptions options;
    options.resume_in_background = false;
    reopen(options);
  }

  util::Arena& arena() { return tree_->upkeep_->memory.arena(); }

  /// Without what was released and is kept for later.
  std::size_t dram_in_use() { return tree_->upkeep_->memory.arena().bytes_in_use(); }

  /// The block of the first leaf.
  Block& first_block() { return *core().template at<Block>(root().anchors[0].block); }
  /// Damages the list: from the first leaf it leads back to it.
  void lead_round() { first_block().next = core().offset(root().anchors.data()); }

  Root& root() { return *core().template at<Root>(root_); }

  /// Whether a search for the key finds its leaf without asking the leaf's position.
  bool finds_leaf_at_once(View<K> key) {
    const epoch::Guard guard;
    const Leaf<K>* leaf = tree_->upkeep_->top.floor(key).leaf;
    return leaf != nullptr && !leaf->closing() && leaf->covers(key);
  }

  /// How many positions are known, with the first of each region.
  std::size_t known_positions() {
    const epoch::Guard guard;
    std::size_t count = 0;
    for (const Position<K>* at = tree_->upkeep_->positions.first(); at != nullptr; ++count) {
      const Leaf<K>* leaf = at->leaf.load();
      at = is_cold(leaf) ? next_of_cold(leaf) : leaf->next();
    }
    return count;
  }

  using Signs =
      std::map<K, pm::Offset>;  ///< signposts: low bounds, and the places of their anchors

  /// Those that the index has.
  Signs signposts() {
    tree_->upkeep_->signposts.finish();
    Signs found;
    tree_->upkeep_->signposts.tree()->scan(
        K{}, [&](View<K> low, std::uint64_t anchor) { return found[K(low)] = anchor, true; });
    return found;
  }

  /// Those that there should be for the anchors of the list, of which the first ones have none.
  Signs signposts_there_should_be() {
    Signs found;
    const Codec<K> keys(core());
    for (pm::Offset at = root().first; at != pm::kNull;) {
      const Anchor& anchor = *core().template at<Anchor>(at);
      const bool in_root = &anchor >= root().anchors.data() && &anchor < root().anchors.end();
      if (!in_root && Signposts<K>::Tree::has(at)) found[K(keys.view(anchor.low))] = at;
      at = core().template at<Block>(anchor.block)->next;
    }
    return found;
  }

  /// Closes the index and lets a caller change its signposts: change(tree).
  template <class Change>
  void change_signposts(const Change& change) {
    close();
    fastfair::Tree<K, std::uint64_t> tree(core(), root().signposts);
    change(tree);
  }

  /// Closes the index, and frees its signposts as if it had never had any.
  void forget_signposts() {
    close();
    fastfair::WordTree<K>::destroy(core(), root().signposts, Kind::u64);
  }

  /// Whether a scan would find the order of the pairs in the key's leaf, and need not sort.
  bool order_kept(View<K> key) {
    const epoch::Guard guard;
    return tree_->upkeep_->scanner.has_order(*tree_->locate(key).leaf);
  }

  /// Allocates two blocks for each operation, as one does that a crash interrupts before it has
  /// linked them.
  void claim_and_forget(std::uint64_t bytes, unsigned operations = 1) {
    close();
    Ledger ledger(core(), root());
    std::vector<std::unique_ptr<Ledger::StripeLease>> leases;
    for (unsigned i = 0; i < operations; ++i) {
      auto& lease = *leases.emplace_back(
          std::make_unique<Ledger::StripeLease>(ledger, Ledger::Purpose::operation));
      lease.claim([&](alloc::Session& session) {
        return std::array<pm::Offset, 4>{session.reserve(bytes), session.reserve(bytes)};
      });
    }
    for (auto& lease : leases) lease->abandon();
  }

 private:
  friend class TestPool<TestTree>;

  void open(const NbTreeOptions& options = {}) {
    auto handle = core().open_index("t", kEngineName, kKindOf<K>, kKindOf<V>);
    std::uint64_t& root = handle.root();
    tree_.emplace(std::move(handle), options);
    root_ = root;
  }
  void close() { tree_.reset(); }

  std::optional<Tree<K, V>> tree_;
  pm::Offset root_ = pm::kNull;
};

}  // namespace perdix::detail::index::nbtree
