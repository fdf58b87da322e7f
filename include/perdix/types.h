// What all indexes share: kinds of keys and values, their limits, and what stats() and check()
// return.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace perdix {

/// What a key or a value is. An index has one kind of each for all its life.
enum class Kind : std::uint8_t {
  u64 = 1,    ///< std::uint64_t, the full range
  bytes = 2,  ///< std::string, any bytes; compared as unsigned bytes, a prefix sorts first
};

/// The name of a kind as it is written in the enumeration, for example "u64".
std::string_view to_string(Kind kind) noexcept;

/// What an index holds.
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

/// How an ElimDa index is laid out. The defaults are those of its paper (docs/papers.md). An index
/// keeps what it was created with, but for `fingerprint_bits` and `reserved_cache_ways`.
struct ElimDaOptions {
  /// Collecting logs, each of a media unit, which new pairs enter first: a power of two, at most
  /// 32768. 0: their number grows with the index, up to 8192, so that they take about half as much
  /// of the pool as its table at most; with the other defaults they are 64 at first. A pool with a
  /// small max_size has fewer: they take at most a sixty-fourth of it. Each has a lock: give a
  /// number if many threads write to an index that stays small.
  std::uint32_t collecting_logs = 0;

  /// Bytes that the device writes at a time: 64, 256 (Optane) or 4096.
  std::uint32_t media_unit = 256;

  /// Pairs of a bucket in DRAM: a power of two, at most 2048. Less than a media unit's sixteenth is
  /// raised to that.
  std::uint32_t d_bucket_pairs = 16;

  /// Pairs of a bucket in the pool: a power of two, at most 4096. Less than 16, or than two buckets
  /// of DRAM, is raised to that.
  std::uint32_t p_bucket_pairs = 256;

  /// Bits of DRAM for each pair in the pool, at most 16. Those that its position in the bucket
  /// doesn't need tell pairs apart. Fewer bits save nothing and cost reads; for experiments.
  std::uint32_t fingerprint_bits = 16;

  /// Ways of the last-level cache that this process reserves while the index is open, if the
  /// machine has Intel CAT, resctrl is mounted and the process may use it. Has no effect elsewhere.
  /// The process fills no other ways. 0: none. This concerns the whole process, so the first index
  /// that asks decides.
  std::uint32_t reserved_cache_ways = 0;
};

/// What the paper on Tips varies (TIPS in docs/papers.md, sections 4.2.1 and 7.5), for each Tips
/// index.
struct TipsOptions {
  /// Pairs that the cache in DRAM has room for, as a share of the pairs that the index has when it
  /// is opened: from 0 to 1. With the default chain the cache has room for at least 20,480 pairs
  /// and at most 5 million. A long pair takes the room of several.
  double cache_share = 0.25;

  /// The same as a number, for an index that grows while it is open or is larger: the larger room
  /// counts. At most 2^32. The opening makes room for all: 16 bytes for each of the first million,
  /// 3 for each of more than five.
  std::uint64_t cached_pairs = 0;

  /// Entries of a chain of the cache before those that were replayed leave it: from 1 to 64.
  std::uint32_t chain = 5;

  /// Bytes of each of the eight operational logs: a power of two from 256 KiB to 256 MiB. Writers
  /// wait for a log that is full. Applies to an index that is created; others keep theirs. The
  /// cache takes half of that in DRAM, at most 16 MiB, so that its chains stay short.
  std::uint32_t log_bytes = std::uint32_t{256} << 10;

  /// Records of the undo log, of a cache line each, after which the logs are reclaimed: from 320 to
  /// 2^22. At most this number is read when the index is opened after a crash.
  std::uint32_t undo_records = 8192;

  /// Threads that replay the logs: at least `least_workers`, at most `most_workers`; 0: as many as
  /// the machine has processors. At most 256.
  std::uint32_t least_workers = 1;
  /// The greatest number of threads.
  std::uint32_t most_workers = 0;
};

/// The form of a Cceh index that is created; others keep theirs.
struct CcehOptions {
  /// Bytes of a segment, its first line included: a multiple of 64 from 320 to 1 MiB. The pool
  /// stores four segments of the default in 64 KiB; one of 16,384 bytes would take a third more.
  std::uint32_t segment_bytes = 16320;

  /// A split of a segment whose keys have fewer bits of their hashes in common writes one half only
  /// and leaves the moved pairs behind, until others need their place (the paper's lazy deletion);
  /// others write both halves. At most 64; with keys of strings more than 16 count as 16.
  std::uint32_t lazy_depth = 64;
};

/// What a Cceh, FastFair or SkipList does with the DRAM of its `dram_budget` (SPTree in
/// docs/papers.md, section 3); others ignore it. Each form includes the one before.
enum class Technique : std::uint8_t {
  none,  ///< every write goes to its place in the pool
  b,     ///< Buffering: new pairs of a segment, leaf or tall node wait in a buffer and in a log
  bo,    ///< Out-of-place update: it comes into a copy of segment or leaf; nodes are never in place
  boc,   ///< Caching: the way to a segment, leaf or node is in DRAM, and may take a quarter of it
};

/// How an index uses memory while it is open; may differ each time.
struct IndexOptions {
  /// For a budget: no bound.
  static constexpr std::uint64_t kUnlimited = ~std::uint64_t{0};

  /// Bytes of DRAM for write buffers, for all that is kept about them, and for what
  /// `Technique::boc` keeps: a bound, but for 64 KiB and 5 %. SpTree has buffers, of 576
  /// bytes; Cceh, FastFair and SkipList have them with a `technique`, of 9 KiB, 384 and 384 bytes;
  /// other engines ignore the budget. 0: none, every write goes to its place in the pool.
  /// kUnlimited: every written leaf gets one (Cceh: up to a million segments), and so may
  /// neighbours that are not written to. In between, the leaves written to most have one. If more
  /// were in use before the index was closed, those that exceed the budget are merged when it is
  /// opened. An index that had none before gets none while its pool is full.
  std::uint64_t dram_budget = 0;

  /// For Cceh, FastFair and SkipList. Others ignore it.
  Technique technique = Technique::none;

  /// After a restart, a background thread brings back what lies in DRAM, while the index is in use
  /// (SpTree, NbTree, Cceh, FastFair, SkipList; others ignore it). If false, only what is used
  /// comes back, and the rest when a call needs all of it: size() and check(). Long writing with
  /// write buffers brings back the rest, too: until then their log can't be shortened.
  bool resume_in_background = true;

  /// Bytes of DRAM for the order of leaves, which scans keep so that each leaf is sorted once per
  /// change (SpTree, NbTree; others ignore it): a byte for each pair of the leaves that were
  /// scanned, and about 20 for each leaf. Every scan sorts the leaves for which the budget has no
  /// room.
  std::uint64_t scan_budget = kUnlimited;

  ElimDaOptions elimda{};  ///< for ElimDa; others ignore it
  TipsOptions tips{};      ///< for Tips; others ignore it
  CcehOptions cceh{};      ///< for Cceh; others ignore it
};

/// What Tips has done since the index was opened.
struct TipsStats {
  std::uint64_t cache_hits = 0;    ///< lookups that the cache has answered
  std::uint64_t cache_misses = 0;  ///< those that went to the index
  std::uint64_t cached = 0;        ///< bytes of the entries in the cache
  std::uint64_t waiting = 0;       ///< writes that wait for space in order to be replayed
  /// Replays of the logs.
  std::uint64_t replays = 0;
  std::uint64_t replayed = 0;      ///< writes, without those that later ones had replaced
  std::uint64_t most_waiting = 0;  ///< writes that one replay has found: how far it lagged behind
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
  /// What could not be checked, and is no damage: indexes of engines that this release doesn't
  /// know, and indexes that have no space to be opened in.
  std::vector<std::string> unknown;
  /// The sound structures may lack acknowledged pairs, or have old or torn ones
  /// (Errc::needs_check): each page of a copy, or of a pool that the machine left open, may be of
  /// another moment. No check can see that.
  bool stores_may_be_missing = false;
  std::uint64_t pairs = 0;   ///< pairs visited
  std::uint64_t blocks = 0;  ///< pool blocks visited

  /// Whether nothing is wrong.
  bool ok() const noexcept { return problems.empty(); }
};

/// Shows pairs to a scan without owning the callable: a reference to any `bool(View<K>, View<V>)`;
/// false stops the scan.
template <Storable K, Storable V>
class Visitor {
 public:
  /// Refers to `visit`, which must outlive the scan.
  template <class F>
  requires std::is_invocable_r_v<bool, F&, View<K>, View<V>> Visitor(
      F&& visit)  // NOLINT(google-explicit-constructor): lambdas are passed directly
      : object_(const_cast<void*>(static_cast<const void*>(&visit))),
        call_([](void* object, View<K> key, View<V> value) -> bool {
          return (*static_cast<std::remove_reference_t<F>*>(object))(key, value);
        }) {}

  /// Calls the visitor.
  bool operator()(View<K> key, View<V> value) const { return call_(object_, key, value); }

 private:
  void* object_;
  bool (*call_)(void*, View<K>, View<V>);
};

}  // namespace perdix
