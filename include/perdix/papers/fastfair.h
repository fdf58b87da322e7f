// FastFair: an ordered index that lies in PM as a whole, a B+-tree of sorted nodes (FAST&FAIR in
// docs/papers.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <perdix/ordered_index.h>

namespace perdix {

/// Options of a FastFair; may differ each time that it is opened.
struct FastFairOptions {
  /// Bytes of DRAM for write buffers, of 384 bytes each, for all that is kept about them, and for
  /// the cached way to leaves (Technique::boc): a bound, but for 64 KiB and 5 %. 0: none, every
  /// write goes to its place in the pool. kUnlimited: every written leaf gets one. In between, the
  /// leaves written to most have one. Without a `technique` it has no effect. If more were in use
  /// before the index was closed, those that exceed the budget are merged when it is opened. An
  /// index that had none before gets none while its pool is full.
  std::uint64_t dram_budget = 0;

  /// The use of `dram_budget`; may differ each time.
  Technique technique = Technique::none;

  /// After a restart, a background thread brings back write buffers and what is cached, while the
  /// index is in use. If false, only what is used comes back, and the rest when a call needs all of
  /// it: size() and check(). Long writing with write buffers brings back the rest, too: until then
  /// their log can't be shortened.
  bool resume_in_background = true;
};

/// A durable ordered map, see OrderedIndex.
///
/// Readers take no lock and write nothing shared, but wait for a writer that is inside a node on
/// their way. A scan shows each leaf as it was at one instant (or as much of a leaf as it copies in
/// one step).
///
/// Cost of get(): lines of one node on each level, half of a node's on average, and one of its
/// neighbour. The first size() that runs without concurrent writers counts all leaves; later calls
/// are O(1). stats() reads the whole index.
///
/// With `technique` and `dram_budget`, new pairs of a leaf wait in a buffer in DRAM and
/// in a log, and reach the leaf in batches of up to half of what it holds: far fewer bytes are
/// written to media with large units. A call that finds a full buffer writes the leaf or, with
/// `bo`, a new one in its place. With `boc` the way to leaves is kept in DRAM, so that a get reads
/// one leaf only; after a restart it comes back as it is used, and in the background. The technique
/// may differ each time that the index is opened.
template <Storable K, Storable V>
class FastFair : public OrderedIndex<K, V> {
 public:
  /// The options of an opening.
  using Options = FastFairOptions;

  /// Opens the index of that name in the pool, or creates it. Throws wrong_engine, wrong_kind,
  /// in_use if it is open already, invalid_argument for a bad name, corrupt. Cost: one line of PM,
  /// whatever the size: nothing is rebuilt before calls are served.
  FastFair(const Pool& pool, std::string_view name, const FastFairOptions& options = {});
};

extern template class FastFair<std::uint64_t, std::uint64_t>;
extern template class FastFair<std::uint64_t, std::string>;
extern template class FastFair<std::string, std::uint64_t>;
extern template class FastFair<std::string, std::string>;

}  // namespace perdix
