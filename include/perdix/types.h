// Types that all indexes share: kinds of keys and values, their limits, and what stats() and
// check() return.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace perdix {

/// The type of a key or a value. An index has one kind of each for all its life.
enum class Kind : std::uint8_t {
  u64 = 1,    ///< std::uint64_t, the full range
  bytes = 2,  ///< std::string, any bytes; compared as unsigned bytes, a prefix sorts first
};

/// The name of a kind as it is written in the enumeration, for example "u64".
std::string_view to_string(Kind kind) noexcept;

/// The kind of content of an index.
enum class DataModel : std::uint8_t {
  pairs = 0,      ///< keys with a value each: PointIndex, Index
  points = 1,     ///< rows of numbers; such an index has neither keys nor values
  container = 2,  ///< a container of the program's own type: TipsOf
};

/// The name of a model as it is written in the enumeration, for example "pairs".
std::string_view to_string(DataModel model) noexcept;

/// Bytes of a string key.
inline constexpr std::uint64_t kMaxKeySize = (std::uint64_t{1} << 16) - 1;
/// Bytes of a string value.
inline constexpr std::uint64_t kMaxValueSize = (std::uint64_t{1} << 32) - 1;
/// Bytes of an index's name.
inline constexpr std::size_t kMaxNameSize = 127;

/// A type that may be a key or a value.
template <class T>
concept Storable = std::is_same_v<T, std::uint64_t> || std::is_same_v<T, std::string>;

/// How a `Storable` is passed and shown without a copy: std::uint64_t or std::string_view.
template <Storable T>
using View = std::conditional_t<std::is_same_v<T, std::uint64_t>, std::uint64_t, std::string_view>;

/// The kind of a type.
template <Storable T>
inline constexpr Kind kKindOf = std::is_same_v<T, std::uint64_t> ? Kind::u64 : Kind::bytes;

/// For a budget of DRAM: no bound.
inline constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

/// The use that a Cceh, FastFair or SkipList makes of the DRAM of its `dram_budget` (SPTree in
/// docs/papers.md, section 3). Each form includes the one before.
enum class Technique : std::uint8_t {
  none,  ///< every write goes to its place in the pool
  b,     ///< Buffering: new pairs of a segment, leaf or tall node wait in a buffer and in a log
  bo,    ///< Out-of-place update: it comes into a copy of segment or leaf; nodes are never in place
  boc,   ///< Caching: the way to a segment, leaf or node is in DRAM, and may take a quarter of it
};

/// How an index is opened whose engine is chosen at run time. The classes of the engines have
/// options of their own, for example CcehOptions.
struct IndexOptions {
  /// After a restart, a background thread brings back what lies in DRAM, while the index is in use.
  /// If false, only what is used comes back, and the rest when a call needs all of it.
  bool resume_in_background = true;

  /// Further options of the engine, by their names in the options of its class: {{"dram_budget",
  /// "64M"}, {"technique", "bo"}}. A number may end in K, M, G or T, for powers of 1024; a budget
  /// may be "unlimited". Index::options() says what an engine has. Another name, or a value that
  /// can't be, is refused with invalid_argument.
  std::map<std::string, std::string, std::less<>> named{};
};

/// An option that an engine has.
struct OptionInfo {
  std::string name;           ///< for IndexOptions::named
  std::string type;           ///< "true or false", "integer", "number", "none, b, bo or boc"
  std::string default_value;  ///< as IndexOptions::named takes it
  std::string range;          ///< what a value must be; empty if any value of the type can be
  std::string meaning;        ///< a phrase

  /// Compares all of it.
  bool operator==(const OptionInfo&) const = default;
};

/// Counts of what Tips has done since the index was opened.
struct TipsStats {
  std::uint64_t cache_hits = 0;    ///< lookups that the cache has answered
  std::uint64_t cache_misses = 0;  ///< those that went to the index
  std::uint64_t cached = 0;        ///< bytes of the entries in the cache
  std::uint64_t waiting = 0;       ///< writes that wait for space in order to be replayed
  /// Replays of the logs.
  std::uint64_t replays = 0;
  std::uint64_t replayed = 0;      ///< writes, without those that later ones had replaced
  std::uint64_t max_waiting = 0;   ///< writes that one replay has found: how far it lagged behind
  std::uint32_t workers = 0;       ///< threads that the next replay takes
  std::uint64_t workers_used = 0;  ///< by all replays; by `replays`, their mean
  std::uint64_t reclamations = 0;  ///< of the logs
  std::uint64_t undo_records = 0;  ///< written
  std::uint64_t undo_saved = 0;    ///< not written, since the line had one, or its block is new
};

/// Sizes of an index, at the moment of the call.
struct IndexStats {
  std::uint64_t pairs = 0;   ///< keys in the index
  std::uint64_t leaves = 0;  ///< leaf nodes in PM
  /// Pool bytes of leaves, and of keys and values that lie outside of them.
  std::uint64_t pm_bytes = 0;
  std::uint64_t dram_bytes = 0;  ///< DRAM bytes of the layers above the leaves
  double recovery_seconds = 0;   ///< time that opening took, before the first operation
  /// Share of the leaves whose DRAM side is back since the index was opened; 1: all. Until then,
  /// `pairs`, `leaves` and bytes are those of this share.
  double resumed = 1;
  double resumption_seconds = 0;  ///< from the opening until all was back; 0 before

  double load_factor = 0;         ///< ElimDa, Cceh: pairs for each place of the table in the pool
  std::uint64_t relocations = 0;  ///< ElimDa: buckets that went from DRAM to the pool since opening
  TipsStats tips{};               ///< Tips
};

/// Result of verifying every invariant of an index or a pool.
struct CheckReport {
  /// One sentence each; empty if sound. At most a hundred are listed.
  std::vector<std::string> problems;
  /// Parts that could not be checked, no damage: indexes of engines that this release doesn't
  /// know, and indexes that have no space to be opened in.
  std::vector<std::string> unknown;
  /// The sound structures may lack acknowledged pairs, or have old or torn ones
  /// (Errc::needs_check): each page of a copy, or of a pool that the machine left open, may be of
  /// another moment. No check can see that.
  bool stores_may_be_missing = false;
  std::uint64_t pairs = 0;   ///< pairs visited
  std::uint64_t blocks = 0;  ///< pool blocks visited

  /// Returns whether nothing is wrong.
  bool ok() const noexcept { return problems.empty(); }
};

namespace detail::index {

// Pairs that were copied out of an index, on their way to a visitor. Their layout does not depend
// on the type of values, so that an engine can fill them and only calls with types read them. Names
// in `detail` are no part of the interface.

/// A pair whose value is a number, or a string of that size that lies elsewhere. Of a key that is a
/// string the size counts.
template <Storable K>
struct CopiedPair {
  View<K> key;
  std::uint64_t value;
};

/// The result of showing pairs.
struct Taken {
  std::size_t pairs;  ///< how many were looked at
  bool all;           ///< false: the one that looks has seen enough
};

/// A view of copied pairs. The bytes of their strings follow one another from `bytes` on, key after
/// value after key.
template <Storable K>
struct CopiedPairs {
  std::span<const CopiedPair<K>> pairs;
  const char* bytes = nullptr;  ///< of strings; integers need none

  /// Calls visit(key, value) for each pair until it returns false.
  template <Storable V, class Visit>
  Taken for_each(Visit&& visit) const {
    const char* at = bytes;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const View<K> key = take(pairs[i].key, at);
      if (!visit(key, take_value<V>(pairs[i].value, at))) return {i + 1, false};
    }
    return {pairs.size(), true};
  }

 private:
  // What lies at `at`, which moves behind it.
  static std::uint64_t take(std::uint64_t value, const char*&) { return value; }
  static std::string_view take(std::string_view copied, const char*& at) {
    const std::string_view taken(at, copied.size());
    at += taken.size();
    return taken;
  }
  template <Storable V>
  static View<V> take_value(std::uint64_t value, const char*& at) {
    if constexpr (std::is_same_v<V, std::uint64_t>) {
      return value;
    } else {
      return take(std::string_view(at, value), at);
    }
  }
};

}  // namespace detail::index

/// Shows pairs to a scan without owning the callable: a reference to any `bool(View<K>, View<V>)`;
/// false stops the scan.
template <Storable K, Storable V>
class Visitor {
 public:
  /// Refers to `visit`, which must outlive the scan. Another Visitor is copied.
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, Visitor> &&
           std::is_invocable_r_v<bool, F&, View<K>, View<V>>)
      Visitor(F&& visit)  // NOLINT(google-explicit-constructor): lambdas are passed directly
      : object_(const_cast<void*>(static_cast<const void*>(&visit))),
        call_([](void* object, View<K> key, View<V> value) -> bool {
          return (*static_cast<std::remove_reference_t<F>*>(object))(key, value);
        }),
        show_([](void* object, const detail::index::CopiedPairs<K>& pairs) {
          return pairs.template for_each<V>(*static_cast<std::remove_reference_t<F>*>(object));
        }) {}

  /// Calls the visitor.
  bool operator()(View<K> key, View<V> value) const { return call_(object_, key, value); }

  /// Calls the visitor for each pair until it returns false. For the library: by one call of a
  /// pointer, so that a visitor is inlined in the loop.
  detail::index::Taken show(const detail::index::CopiedPairs<K>& pairs) const {
    return show_(object_, pairs);
  }

 private:
  void* object_;
  bool (*call_)(void*, View<K>, View<V>);
  detail::index::Taken (*show_)(void*, const detail::index::CopiedPairs<K>&);
};

}  // namespace perdix
