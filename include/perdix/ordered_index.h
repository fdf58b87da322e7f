// The calls that all ordered indexes have in common.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <perdix/cursor.h>
#include <perdix/key_range.h>
#include <perdix/point_index.h>
#include <perdix/types.h>

namespace perdix {

/// A durable ordered map: the calls of PointIndex, and those that the order of the keys gives:
/// integers by value, strings by their bytes. SpTree, NbTree, FastFair and SkipList are such maps.
/// Each says what the calls cost in it, and what a scan promises beyond what is said here.
template <Storable K, Storable V>
class OrderedIndex : public PointIndex<K, V> {
 public:
  /// How calls show a key.
  using Key = View<K>;
  /// How calls show a value.
  using Value = View<V>;
  /// How calls take a key.
  using KeyArgument = Argument<K>;

  /// Takes over the open index; the other object can then only be assigned to or destroyed.
  OrderedIndex(OrderedIndex&&) noexcept = default;
  /// Closes the index that this object had, then takes over the other one as the constructor does.
  OrderedIndex& operator=(OrderedIndex&&) noexcept = default;

  /// Shows the pairs with key >= from in ascending order until the visitor returns false. A scan is
  /// not a snapshot. Each pair was present at some instant between the call and its showing; each
  /// skipped key was absent at some such instant. Keys ascend strictly, and none is shown twice.
  /// for_each() says what a visitor may do, and the cost.
  void scan(KeyArgument from, Visitor<K, V> visit) const;

  /// Like scan() without a limit, but shows at most `limit` pairs, and reads few others.
  void scan(KeyArgument from, std::size_t limit, Visitor<K, V> visit) const;

  /// At most `limit` pairs with key >= from, ascending. Reads no string behind the last of them,
  /// but for keys of the same leaf.
  std::vector<std::pair<K, V>> scan(KeyArgument from, std::size_t limit) const;

  /// A key and its value, as copies.
  using Pair = std::pair<K, V>;

  /// The pair nearest to `key` on one side, or none. It was present at some instant of the call,
  /// and each skipped key was absent at some such instant. Cost: a get() and a copy of the pair;
  /// more if the leaves nearest to the key are empty.
  std::optional<Pair> lower_bound(KeyArgument key) const;  ///< key not less
  std::optional<Pair> floor(KeyArgument key) const;        ///< key not greater
  std::optional<Pair> after(KeyArgument key) const;        ///< key greater
  std::optional<Pair> before(KeyArgument key) const;       ///< key less
  /// The pair with the smallest key.
  std::optional<Pair> first() const;
  /// The pair with the largest key.
  std::optional<Pair> last() const;

  /// Puts the pairs next to `key` in a direction, without its own, to the beginning of `pairs`,
  /// nearest first, and returns how many: at most `limit`, and only as many as have 16 KiB of
  /// strings, but one at least if there is any. `pairs` grows if need be and never shrinks, so that
  /// the memory of its strings is used again. Each pair was present at some instant of the call,
  /// and each key between was absent at some such instant. If the call throws, `pairs` may hold
  /// anything. Cost: a lookup, and what a scan() costs for each pair.
  std::size_t read_beyond(KeyArgument key, Direction direction, std::size_t limit,
                          std::vector<Pair>& pairs) const;

  /// A position in this index.
  using IndexCursor = Cursor<OrderedIndex, K, V>;
  /// A part of this index.
  using Range = KeyRange<OrderedIndex, K, V>;

  /// A cursor that is nowhere yet.
  IndexCursor cursor() const { return IndexCursor(*this); }

  /// The pairs with from <= key < to.
  Range range(KeyArgument from, KeyArgument to) const { return Range(*this, K(from), K(to)); }

  /// The pairs with key >= from.
  Range range(KeyArgument from) const { return Range(*this, K(from), std::nullopt); }

  /// The pairs whose keys begin with these bytes; for string keys.
  template <std::same_as<std::string> T = K>
  Range prefix(KeyArgument bytes) const {
    return Range(*this, K(bytes), end_of_prefix(bytes));
  }

  /// Removes the keys with from <= key < to and returns how many. Each is erased by itself: other
  /// threads see some gone before others, a crash may leave some, and keys inserted during the call
  /// may stay.
  std::uint64_t erase_range(KeyArgument from, KeyArgument to);

  /// Removes the keys with key >= from, the largest included, and returns how many; each by itself.
  std::uint64_t erase_range(KeyArgument from);

 protected:
  using PointIndex<K, V>::PointIndex;
  ~OrderedIndex() = default;
};

}  // namespace perdix
