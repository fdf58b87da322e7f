// Tips: makes volatile indexes durable (Krishnan et al., USENIX ATC 2021).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <perdix/ordered_index.h>
#include <perdix/point_index.h>

namespace perdix {

namespace detail::index::tips {
template <class K, class V>
class Map;
template <class K, class V>
class OrderedMap;
}  // namespace detail::index::tips

/// The indexes that Tips makes durable.
namespace tips {

/// An index whose keys have no order.
struct Unordered {
  template <class K, class V>
  using Engine = detail::index::tips::Map<K, V>;
  template <class K, class V>
  using Base = PointIndex<Engine<K, V>, K, V>;
};

/// An index whose keys are in order.
struct Ordered {
  template <class K, class V>
  using Engine = detail::index::tips::OrderedMap<K, V>;
  template <class K, class V>
  using Base = OrderedIndex<Engine<K, V>, K, V>;
};

/// A hash table with chains and a readers-writer lock.
struct Hash : Unordered {
  static constexpr std::string_view kEngine = "tips:hash";
};

/// A B+-tree with a readers-writer lock.
struct BTree : Ordered {
  static constexpr std::string_view kEngine = "tips:btree";
};

}  // namespace tips

/// A volatile index in a pool, made durable: see PointIndex, and OrderedIndex for tips::BTree.
///
/// A write goes into an operational log and a cache in DRAM, and is replayed into the index in the
/// background. So writers wait for the index only if it can't keep up, and a lookup that the cache
/// answers doesn't touch it. A scan, size(), stats() and check() first replay what was written
/// before the call.
///
/// The index holds addresses, so its pool is mapped at the same address from then on: see
/// PoolOptions::address.
///
/// Cost of a write: one line of PM and one fence for two integers; a put never reads the index, the
/// other writes do if the cache doesn't have the key. In a full pool writes that were acknowledged
/// may wait for space: they are found, and put() throws out_of_space until they have got it.
/// for_each() and scan() copy pairs in batches of 128, or 64 KiB of strings.
template <class Plugin, Storable K, Storable V>
class Tips : public Plugin::template Base<K, V> {
 public:
  /// Opens the index of that name in the pool, or creates it. Throws wrong_engine, wrong_kind,
  /// in_use if it is open already, invalid_argument for a bad name, out_of_space, corrupt. Cost:
  /// looks at each node once, since the file may hold anything, and reads the operational logs.
  Tips(const Pool& pool, std::string_view name, const IndexOptions& options = {});
};

extern template class Tips<tips::Hash, std::uint64_t, std::uint64_t>;
extern template class Tips<tips::Hash, std::uint64_t, std::string>;
extern template class Tips<tips::Hash, std::string, std::uint64_t>;
extern template class Tips<tips::Hash, std::string, std::string>;
extern template class Tips<tips::BTree, std::uint64_t, std::uint64_t>;
extern template class Tips<tips::BTree, std::uint64_t, std::string>;
extern template class Tips<tips::BTree, std::string, std::uint64_t>;
extern template class Tips<tips::BTree, std::string, std::string>;

}  // namespace perdix
