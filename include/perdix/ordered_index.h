// The calls that all ordered indexes have in common.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <perdix/point_index.h>
#include <perdix/types.h>

namespace perdix {

/// A durable ordered map: what a PointIndex has, and what the order of the keys gives: integers by
/// value, strings by their bytes. SpTree, NbTree and FastFair are such maps: each says what the
/// calls cost in it and what a scan shows besides what is promised here.
template <class Engine, Storable K, Storable V>
class OrderedIndex : public PointIndex<Engine, K, V> {
 public:
  using Key = View<K>;
  using Value = View<V>;

  OrderedIndex(OrderedIndex&&) noexcept = default;
  OrderedIndex& operator=(OrderedIndex&&) noexcept = default;

  /// Shows the pairs with key >= from in ascending order until the visitor returns false. A scan is
  /// not a snapshot: each pair was present at some moment between the call and its showing, and
  /// each key that is passed over was absent at such a moment. Keys ascend strictly, and none is
  /// shown twice. What a visitor may do, and the cost: see for_each().
  void scan(Key from, Visitor<K, V> visit) const;

  /// At most `limit` pairs with key >= from, ascending. Reads no string behind the last of them,
  /// but for keys of the same leaf.
  std::vector<std::pair<K, V>> scan(Key from, std::size_t limit) const;

 protected:
  explicit OrderedIndex(std::unique_ptr<Engine> engine);
  ~OrderedIndex() = default;
};

}  // namespace perdix
