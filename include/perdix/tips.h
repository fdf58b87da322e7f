// Tips: makes volatile indexes durable (TIPS in docs/papers.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <perdix/ordered_index.h>
#include <perdix/point_index.h>
#include <perdix/tips_plugin.h>

namespace perdix {

/// The indexes that Tips makes durable.
namespace tips {

/// What indexes have whose keys have no order.
struct Unordered {
  /// For Opened.
  template <class K, class V>
  using Base = PointIndex<K, V>;
};

/// What those have whose keys are in order.
struct Ordered {
  /// For Opened.
  template <class K, class V>
  using Base = OrderedIndex<K, V>;
};

/// A hash table with chains and a readers-writer lock.
struct Hash {
  /// The engine's name.
  static constexpr std::string_view kEngine = "tips:hash";
  /// Whether keys are in order.
  using Order = Unordered;
};

/// A B+-tree with a readers-writer lock.
struct BTree {
  /// The engine's name.
  static constexpr std::string_view kEngine = "tips:btree";
  /// Whether keys are in order.
  using Order = Ordered;
};

/// What an index of the caller's own is called, as an argument of User: 1 to 19 visible ASCII
/// characters.
template <std::size_t kSize>
struct Name {
  static_assert(kSize >= 2 && kSize <= 20, "a plug-in's name has 1 to 19 characters");
  /// The characters, and a zero.
  char text[kSize];

  /// The name in a literal.
  consteval Name(const char (&literal)[kSize]) {  // NOLINT(google-explicit-constructor): "name"
    for (std::size_t i = 0; i < kSize; ++i) text[i] = literal[i];
  }
};

/// An index of the caller's own, plugged into Tips: a class template over the memory policy and the
/// kind of keys, which has the calls that PluginOf names. The engine is "tips:user:" and the name.
///
///   using SkipLists = perdix::tips::User<"skiplist", SkipList>;
///   perdix::PoolOptions options;
///   options.plugins = SkipLists::plugins();
///   const auto pool = perdix::Pool::open_or_create("data.pool", options);
///   perdix::Tips<SkipLists, std::uint64_t, std::string> index(pool, "index");
template <Name kName, template <class Memory, class Keys> class Index>
struct User {
  /// Whether keys are in order: whether the class has a scan().
  using Order =
      std::conditional_t<OrderedIndexClass<Index<Durable, IntegerKeys>>, Ordered, Unordered>;

 private:
  static constexpr std::string_view kPrefix = "tips:user:";
  static constexpr auto kText = [] {
    std::array<char, kPrefix.size() + sizeof kName.text - 1> text{};
    for (std::size_t i = 0; i < text.size(); ++i)
      text[i] = i < kPrefix.size() ? kPrefix[i] : kName.text[i - kPrefix.size()];
    return text;
  }();

 public:
  /// The engine's name.
  static constexpr std::string_view kEngine{kText.data(), kText.size()};

  /// The plug-in for one type of keys.
  template <Storable K>
  static const Plugin& plugin() {
    using Keys = std::conditional_t<std::is_same_v<K, std::uint64_t>, IntegerKeys, StringKeys>;
    static constexpr PluginOf<Index<Durable, Keys>> kPlugin(kEngine.substr(kTips), kKindOf<K>);
    return kPlugin;
  }

  /// Both plug-ins, for PoolOptions::plugins. They live as long as the program.
  static std::vector<const Plugin*> plugins() {
    return {&plugin<std::uint64_t>(), &plugin<std::string>()};
  }

 private:
  static constexpr std::size_t kTips = sizeof "tips:" - 1;  // a plug-in's name is without it
};

/// An index of an engine that was opened.
template <class Order, Storable K, Storable V>
struct Opened : Order::template Base<K, V> {
 protected:
  /// For Tips.
  Opened(const Pool& pool, std::string_view name, std::string_view engine,
         const IndexOptions& options);
};

extern template struct Opened<Unordered, std::uint64_t, std::uint64_t>;
extern template struct Opened<Unordered, std::uint64_t, std::string>;
extern template struct Opened<Unordered, std::string, std::uint64_t>;
extern template struct Opened<Unordered, std::string, std::string>;
extern template struct Opened<Ordered, std::uint64_t, std::uint64_t>;
extern template struct Opened<Ordered, std::uint64_t, std::string>;
extern template struct Opened<Ordered, std::string, std::uint64_t>;
extern template struct Opened<Ordered, std::string, std::string>;

}  // namespace tips

/// A volatile index in a pool, made durable: see PointIndex, and OrderedIndex for those in order.
///
/// A write goes into an operational log and a cache in DRAM, and is replayed into the index in the
/// background. So writers wait for the index only if it can't keep up, and a lookup that the cache
/// answers doesn't touch it. A scan, size(), stats() and check() first replay what was written
/// before the call.
///
/// The index holds addresses, so its pool is mapped at the same address from then on: see
/// PoolOptions::address. `Plugin` is tips::Hash or tips::BTree, one of <perdix/tips_indexes.h>, or
/// tips::User of one that the caller brings along.
///
/// Cost of a write: one line of PM and one fence for two integers; a put never reads the index, the
/// other writes do if the cache doesn't have the key. In a full pool writes that were acknowledged
/// may wait for space: they are found, and put() throws out_of_space until they have got it.
/// for_each() and scan() copy pairs in batches of 128, or 64 KiB of strings.
template <class Plugin, Storable K, Storable V>
class Tips : public tips::Opened<typename Plugin::Order, K, V> {
 public:
  /// Opens the index of that name in the pool, or creates it. Throws wrong_engine, wrong_kind,
  /// in_use if it is open already, invalid_argument for a bad name, unsupported if the pool was
  /// opened without the plug-in, out_of_space, corrupt. Cost:
  /// reads the operational logs, up to 2 MiB and what is too large for them. A thread of the
  /// index's own looks at each node once, since the file may hold anything, and replays the logs;
  /// until it has, lookups take longer, and scans and size() wait for it.
  Tips(const Pool& pool, std::string_view name, const IndexOptions& options = {})
      : tips::Opened<typename Plugin::Order, K, V>(pool, name, Plugin::kEngine, options) {}
};

}  // namespace perdix
