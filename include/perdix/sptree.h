// SpTree: an ordered index with a DRAM radix tree on top of leaves in PM (Zhao et al., ICPE 2024,
// section 4).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <perdix/pool.h>
#include <perdix/types.h>

namespace perdix {

namespace index::sptree {
template <class K, class V>
class Tree;
}

/// A durable ordered map. `K` and `V` are each std::uint64_t or std::string.
///
/// Every call is thread-safe, and durably linearizable: it survives a crash once it has returned,
/// its effect survives once any thread could have observed it, and a call in flight at the crash
/// happened entirely or not at all. Calls throw too_large for keys above 64 KiB - 1 or values above
/// 4 GiB - 1, out_of_space when the pool can't grow, and io_error once a sync to disk has failed; a
/// call that throws changed nothing.
///
/// Readers take no lock and write nothing shared, but wait for a writer that is inside the same
/// leaf (paper §4.2).
template <Storable K, Storable V>
class SpTree {
 public:
  using Key = View<K>;
  using Value = View<V>;

  /// Opens the index of that name in the pool, or creates it. Throws wrong_engine, wrong_kind,
  /// in_use if it is open already, invalid_argument for a bad name, corrupt. Cost: a few lines of
  /// PM, and with write buffers what the log has since its last checkpoint, some megabytes at most.
  /// What lies in DRAM comes back after that, leaf by leaf (paper §4.6): as calls need it, which
  /// may therefore throw corrupt, and in the background.
  ///
  /// `options.dram_budget` buys write buffers (paper §4.1, §4.7): a leaf's changes are collected in
  /// DRAM and in a log, which a write extends by one line, and reach the leaf in batches of 14.
  /// That saves most of the media traffic where the media's unit is larger than a pair.
  SpTree(const Pool& pool, std::string_view name, const IndexOptions& options = {});
  ~SpTree();
  SpTree(SpTree&&) noexcept;
  SpTree& operator=(SpTree&&) noexcept;

  /// Sets the value of a key, new or not.
  void put(Key key, Value value);

  /// Adds a key; false, and nothing changes, if it is there.
  bool insert(Key key, Value value);

  /// Replaces the value of a key; false, and nothing changes, if it is not there.
  bool update(Key key, Value value);

  /// Removes a key; false if it is not there.
  bool erase(Key key);

  /// The value of a key. Cost: lines of one leaf at most; usually none in PM if the key is absent
  /// (Bloom filter).
  std::optional<V> get(Key key) const;

  bool contains(Key key) const;

  /// out[i] = get(keys[i]) for all i, each as by a call of its own. Throws invalid_argument if
  /// `out` is shorter than `keys`. Cost: the lookups of sixteen keys wait for memory together,
  /// which takes about a third of the time where the index is larger than the processor's caches.
  void get_many(std::span<const Key> keys, std::span<std::optional<V>> out) const;

  /// Shows the pairs with key >= from in ascending order until the visitor returns false. Each leaf
  /// is shown as it was at one moment of the scan; keys ascend strictly. No lock is held while the
  /// visitor runs, and it may call this index.
  void scan(Key from, Visitor<K, V> visit) const;

  /// At most `limit` pairs with key >= from, ascending.
  std::vector<std::pair<K, V>> scan(Key from, std::size_t limit) const;

  /// Number of keys: exact when no writer is active. Cost: the first call after the opening brings
  /// back all that is not back yet.
  std::uint64_t size() const;

  /// Cost: visits the backup of the top layer, some 2 % of the index.
  IndexStats stats() const;

  /// Verifies every invariant of the index. Writers must be idle. Cost: reads the whole index.
  CheckReport check() const;

 private:
  std::unique_ptr<index::sptree::Tree<K, V>> tree_;
};

extern template class SpTree<std::uint64_t, std::uint64_t>;
extern template class SpTree<std::uint64_t, std::string>;
extern template class SpTree<std::string, std::uint64_t>;
extern template class SpTree<std::string, std::string>;

}  // namespace perdix
