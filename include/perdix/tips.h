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

/// Options of a Tips index: what its paper varies (TIPS in docs/papers.md, sections 4.2.1 and 7.5).
struct TipsOptions {
  /// After a restart, a background thread inspects the index and replays what the logs have, while
  /// it is in use. If false, the first call that needs it does.
  bool resume_in_background = true;

  /// Pairs that the cache in DRAM has room for, as a share of the pairs that the index has when it
  /// is opened: from 0 to 1. With the default chain the cache has room for at least 20,480 pairs
  /// and at most 5 million. A long pair takes the room of several.
  double cache_share = 0.25;

  /// Pairs that the cache has room for at least, for an index that grows while it is open: the
  /// larger of this and `cache_share` counts. At most 2^32. The opening makes room for all: 16
  /// bytes for each of the first million, 3 for each of more than five.
  std::uint64_t cached_pairs = 0;

  /// Entries of a chain of the cache before those that were replayed leave it: from 1 to 64.
  std::uint32_t chain = 5;

  /// Bytes of each of the eight operational logs: a power of two from 256 KiB to 256 MiB. Writers
  /// wait for a log that is full. A log is made when a thread first needs it. 0: a 4096th of the
  /// machine's memory or a 64th of the pool's max_size, whichever is less, from 256 KiB to 32 MiB.
  /// Applies to an index that is created; others keep theirs. The cache takes half of that in DRAM,
  /// at most 16 MiB, so that its chains stay short. While puts wait for their replay, the pool
  /// keeps free what they may need: for a B+-tree of integers 17 bytes for each byte of a full log.
  std::uint32_t log_bytes = 0;

  /// Records of the undo log, of a cache line each, after which the logs are reclaimed: from 320 to
  /// 2^22. At most this number is read when the index is opened after a crash. More than the caches
  /// of the processor hold make a replay slower.
  std::uint32_t undo_records = 8192;

  /// Threads that replay the logs, at least: from 1 to `max_workers`, or to 256 if that is 0.
  std::uint32_t min_workers = 1;
  /// Threads that replay the logs, at most: up to 256. 0: as many as the machine has processors, or
  /// `min_workers` if it has fewer.
  std::uint32_t max_workers = 0;
};

/// The indexes that Tips makes durable.
namespace tips {

/// The base class of indexes whose keys have no order.
struct Unordered {
  /// For Opened.
  template <class K, class V>
  using Base = PointIndex<K, V>;
};

/// The base class of indexes whose keys are in order.
struct Ordered {
  /// For Opened.
  template <class K, class V>
  using Base = OrderedIndex<K, V>;
};

/// A hash table with chains and a readers-writer lock.
struct Hash {
  /// The engine's name.
  static constexpr std::string_view kEngine = "tips:hash";
  /// Says whether keys are in order.
  using Order = Unordered;
};

/// A B+-tree with a readers-writer lock.
struct BTree {
  /// The engine's name.
  static constexpr std::string_view kEngine = "tips:btree";
  /// Says whether keys are in order.
  using Order = Ordered;
};

/// The name of an index of the caller's own, as an argument of User: 1 to 19 visible ASCII
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
  /// Says whether keys are in order: whether the class has a scan().
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
         const TipsOptions& options);
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
/// answers doesn't touch it. A scan merges what waits in the log with the index. size(), stats(),
/// check() and a visit of an index without order first replay what was written before the call.
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
  /// The options of an opening.
  using Options = TipsOptions;

  /// Opens the index of that name in the pool, or creates it. Throws wrong_engine, wrong_kind,
  /// in_use if it is open already, invalid_argument for a bad name, unsupported if the pool was
  /// opened without the plug-in, out_of_space, corrupt. Cost:
  /// reads the operational logs, up to 2 MiB and what is too large for them. A thread of the
  /// index's own looks at each node once, since the file may hold anything, and replays the logs;
  /// until it has, lookups take longer, and scans and size() wait for it.
  Tips(const Pool& pool, std::string_view name, const TipsOptions& options = {})
      : tips::Opened<typename Plugin::Order, K, V>(pool, name, Plugin::kEngine, options) {}
};

}  // namespace perdix
