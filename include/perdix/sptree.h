// SpTree: an ordered index with a DRAM radix tree on top of leaves in PM (SPTree in docs/papers.md,
// section 4).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <perdix/ordered_index.h>

namespace perdix {

/// Options of an SpTree; may differ each time that it is opened.
struct SpTreeOptions {
  /// Bytes of DRAM for write buffers, of 576 bytes each, and for all that is kept about them: a
  /// bound, but for 64 KiB and 5 %. 0: none, every write goes to its place in the pool. kUnlimited:
  /// every written leaf gets one, and so may neighbours that are not written to. In between, the
  /// leaves written to most have one. If more were in use before the index was closed, those that
  /// exceed the budget are merged when it is opened. An index that had none before gets none while
  /// its pool is full.
  std::uint64_t dram_budget = 0;

  /// After a restart, a background thread brings back what lies in DRAM, while the index is in use.
  /// If false, only what is used comes back, and the rest when a call needs all of it: size() and
  /// check(). Long writing with write buffers brings back the rest, too: until then their log can't
  /// be shortened.
  bool resume_in_background = true;

  /// Bytes of DRAM for the order of leaves, which scans keep so that a leaf is sorted once, and
  /// writes carry over: a byte for each pair of the leaves that were scanned, and about 20 for each
  /// leaf. Every scan sorts the leaves for which the budget has no room.
  std::uint64_t scan_budget = kUnlimited;
};

/// A durable ordered map, see OrderedIndex.
///
/// Readers take no lock and write nothing shared, but wait for a writer that is inside the same
/// leaf (SPTree, section 4.2). A scan shows each leaf as it was at one instant (or as much of a
/// leaf as it copies in one step). It sorts a leaf once per change and keeps the order in DRAM,
/// within `options.scan_budget`.
///
/// Cost of get(): lines of one leaf at most; usually none in PM if the key is absent (Bloom
/// filter). get_many() takes about a third of that time where the index is larger than the
/// processor's caches. The first size() after opening brings back all that is not back yet. stats()
/// visits the backup of the top layer, which has one leaf in four.
///
/// An index has up to 64 GiB of DRAM for the nodes of its leaves, which is enough for more than 20
/// billion pairs; what would need more throws no_memory.
template <Storable K, Storable V>
class SpTree : public OrderedIndex<K, V> {
 public:
  /// The options of an opening.
  using Options = SpTreeOptions;

  /// Opens the index of that name in the pool, or creates it. Throws wrong_engine, wrong_kind,
  /// in_use if it is open already, invalid_argument for a bad name, corrupt. Cost: a few lines of
  /// PM, and with write buffers what the log has since its last checkpoint, some megabytes at most.
  /// What lies in DRAM comes back after that, leaf by leaf (SPTree, section 4.6): as calls need it,
  /// which may therefore throw corrupt, and in the background.
  ///
  /// `options.dram_budget` buys write buffers (SPTree, sections 4.1 and 4.7): a leaf's changes are
  /// collected in DRAM and in a log, which a write extends by one line, and reach the leaf in
  /// batches of 28. That saves most of the media traffic where the media's unit is larger than a
  /// pair.
  SpTree(const Pool& pool, std::string_view name, const SpTreeOptions& options = {});
};

extern template class SpTree<std::uint64_t, std::uint64_t>;
extern template class SpTree<std::uint64_t, std::string>;
extern template class SpTree<std::string, std::uint64_t>;
extern template class SpTree<std::string, std::string>;

}  // namespace perdix
