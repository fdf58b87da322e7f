// NbTree: an ordered index whose operations wait for nobody, a B+-tree with leaves that are
// searched in DRAM and lie in PM (nbtree.txt).
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

namespace index::nbtree {
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
/// Calls do not wait for one that is suspended (nbtree.txt IV), as long as fewer than 32 are
/// suspended while they allocate or free, and none is while the pool takes more space into use;
/// size(), check() and destruction do wait. docs/durability/nbtree.md lists who may wait for whom.
/// An insert, update or erase of integers flushes one line and fences once (Table I), apart from
/// what replacing leaves costs; strings cost what their allocation costs, too.
template <Storable K, Storable V>
class NbTree {
 public:
  using Key = View<K>;
  using Value = View<V>;

  /// Opens the index of that name in the pool, or creates it. Throws wrong_engine, wrong_kind,
  /// in_use if it is open already, invalid_argument for a bad name, corrupt. Cost: reads the bounds
  /// of all leaves, 16 bytes each. What else lies in DRAM comes back after that, leaf by leaf: as
  /// calls need it, which may therefore throw corrupt, and in the background
  /// (`options.resume_in_background`).
  NbTree(const Pool& pool, std::string_view name, const IndexOptions& options = {});
  ~NbTree();
  NbTree(NbTree&&) noexcept;
  NbTree& operator=(NbTree&&) noexcept;

  /// Sets the value of a key, new or not.
  void put(Key key, Value value);

  /// Adds a key; false, and nothing changes, if it is there.
  bool insert(Key key, Value value);

  /// Replaces the value of a key; false, and nothing changes, if it is not there.
  bool update(Key key, Value value);

  /// Removes a key; false if it is not there.
  bool erase(Key key);

  /// The value of a key. Cost: one PM line, and those of the strings.
  std::optional<V> get(Key key) const;

  bool contains(Key key) const;

  /// out[i] = get(keys[i]) for all i, each as by a call of its own. Throws invalid_argument if
  /// `out` is shorter than `keys`. Cost: the lookups of sixteen keys wait for memory together.
  void get_many(std::span<const Key> keys, std::span<std::optional<V>> out) const;

  /// Shows the pairs with key >= from in ascending order until the visitor returns false. Each pair
  /// was there at some moment between the showing of the one before and its own, and each key that
  /// is passed over was not; keys ascend strictly. The visitor may call this index.
  void scan(Key from, Visitor<K, V> visit) const;

  /// At most `limit` pairs with key >= from, ascending.
  std::vector<std::pair<K, V>> scan(Key from, std::size_t limit) const;

  /// Number of keys: exact when no writer is active. Cost: the first call after the opening brings
  /// back all that is not back yet.
  std::uint64_t size() const;

  /// Cost: no PM.
  IndexStats stats() const;

  /// Verifies every invariant of the index. Writers must be idle. Cost: reads the whole index.
  CheckReport check() const;

 private:
  std::unique_ptr<index::nbtree::Tree<K, V>> tree_;
};

extern template class NbTree<std::uint64_t, std::uint64_t>;
extern template class NbTree<std::uint64_t, std::string>;
extern template class NbTree<std::string, std::uint64_t>;
extern template class NbTree<std::string, std::string>;

}  // namespace perdix
