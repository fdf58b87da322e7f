// SkipList: an ordered index that lies in persistent memory as a whole, a list of nodes with towers
// of links (Pugh 1990, docs/papers.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <perdix/ordered_index.h>

namespace perdix {

/// Options of a SkipList; may differ each time that it is opened.
struct SkipListOptions {
  /// Bytes of DRAM for write buffers, of 384 bytes each, for all that is kept about them, and for
  /// the cached way to tall nodes (Technique::boc): a bound, but for 64 KiB and 5 %. 0: none, every
  /// write goes to its place in the pool. kUnlimited: every tall node that is written to gets one.
  /// In between, those written to most have one. Without a `technique` it has no effect. If more
  /// were in use before the index was closed, those that exceed the budget are merged when it is
  /// opened. An index that had none before gets none while its pool is full.
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
/// Readers take no lock and write nothing shared, but wait for a writer that is changing the node
/// that they have found, or the one before it. Writers to different nodes do not wait for each
/// other. A scan shows each pair as it was at some instant after the one before.
///
/// Cost of get(): a line of each node on the way, which are about 1.5 log2(n) and those that end a
/// level, and with string keys the lines of their bytes. An insert writes a node of 32 bytes, for
/// one key in four of 64, and 1.33 links on average. The first size() that runs without concurrent
/// writers counts all pairs; later calls cost nothing. stats() reads the whole index.
///
/// With a technique and a dram_budget, new pairs wait in a buffer and in a log, and enter the list
/// 16 at a time. One node in 16 is tall and has a buffer for the pairs up to the next tall one.
/// With Technique::boc the way to the tall nodes is kept in DRAM, too (some 2 bytes for each pair):
/// a get then reads a few nodes, whatever the size. After a restart it comes back as it is used,
/// and in the background.
///
/// A hash of the key decides how many levels its node has. A program whose users choose the keys
/// lets them make searches slow.
template <Storable K, Storable V>
class SkipList : public OrderedIndex<K, V> {
 public:
  /// The options of an opening.
  using Options = SkipListOptions;

  /// Opens the index of that name in the pool, or creates it. Throws wrong_engine, wrong_kind,
  /// in_use if it is open already, invalid_argument for a bad name, corrupt. Cost: three lines of
  /// PM, and the end of a log: whatever the size, nothing is rebuilt before calls are served.
  SkipList(const Pool& pool, std::string_view name, const SkipListOptions& options = {});
};

extern template class SkipList<std::uint64_t, std::uint64_t>;
extern template class SkipList<std::uint64_t, std::string>;
extern template class SkipList<std::string, std::uint64_t>;
extern template class SkipList<std::string, std::string>;

}  // namespace perdix
