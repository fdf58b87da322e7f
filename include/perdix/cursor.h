// A position in an ordered index.
#pragma once

#include <optional>
#include <utility>

#include <perdix/types.h>

namespace perdix {

/// Moves over the pairs of an ordered index in both directions.
///
///   auto cursor = orders.cursor();
///   for (cursor.seek(1000); cursor.valid(); cursor.next()) use(cursor.key(), cursor.value());
///
/// A cursor owns a copy of its pair and holds nothing of the index between calls: no lock, no
/// guard. So it survives any change of the index, also the erasure of its pair, and a resting
/// cursor delays no other thread. Each move searches anew: it goes to the pair that is next to the
/// cursor's key at an instant of the call. Cost of a move: a lookup and a copy of the pair; scan()
/// is cheaper.
///
/// Not thread-safe: a cursor belongs to one thread. Calls throw as scan() does; the cursor is then
/// where it was. `Ordered` is an OrderedIndex, which must neither move nor end before its cursors.
template <class Ordered, Storable K, Storable V>
class Cursor {
 public:
  /// A key and its value, as copies.
  using Pair = std::pair<K, V>;

  /// Nowhere: not valid.
  explicit Cursor(const Ordered& index) : index_(&index) {}

  /// Goes to the first pair with a key that is not less.
  void seek(View<K> key) { pair_ = index_->lower_bound(key); }

  /// Goes to the last pair with a key that is not greater.
  void seek_floor(View<K> key) { pair_ = index_->floor(key); }

  /// Goes to the last pair with a smaller key.
  void seek_below(View<K> key) { pair_ = index_->before(key); }

  /// Goes to the pair with the smallest key.
  void seek_first() { pair_ = index_->first(); }
  /// Goes to the pair with the largest key.
  void seek_last() { pair_ = index_->last(); }

  /// Go to the next pair in the direction; not valid if there is none. Only if valid.
  void next() { pair_ = index_->after(pair_->first); }
  /// The same towards smaller keys.
  void prev() { pair_ = index_->before(pair_->first); }

  /// Whether the cursor has a pair.
  bool valid() const noexcept { return pair_.has_value(); }

  /// The pair, as it was when the cursor moved here. Valid until it moves. Only if valid.
  View<K> key() const noexcept { return pair_->first; }
  /// The value of that pair.
  View<V> value() const noexcept { return pair_->second; }

 private:
  const Ordered* index_;
  std::optional<Pair> pair_;
};

}  // namespace perdix
