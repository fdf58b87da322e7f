// NbTree: an ordered index whose operations do not wait for suspended threads, a B+-tree with
// leaves that are searched in DRAM and lie in PM (NBTree in docs/papers.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <perdix/ordered_index.h>

namespace perdix {

/// Options of an NbTree; may differ each time that it is opened.
struct NbTreeOptions {
  /// After a restart, a background thread brings back what lies in DRAM, while the index is in use.
  /// If false, only what is used comes back, and the rest when a call needs all of it: size() and
  /// check().
  bool resume_in_background = true;

  /// Bytes of DRAM for the order of leaves, which scans keep so that a leaf is sorted once, and
  /// writes carry over: a byte for each pair of the leaves that were scanned, and about 20 for each
  /// leaf. Every scan sorts the leaves for which the budget has no room.
  std::uint64_t scan_budget = kUnlimited;
};

/// A durable ordered map, see OrderedIndex.
///
/// Lookups, and updates and erases of integers that need not replace a leaf, do not wait for a call
/// that is suspended (NBTree, section IV). Other calls allocate or free. They do not wait either,
/// as long as fewer than 32 are suspended while they do that, and none is suspended inside of the
/// short locks of the pool: those of the allocator's spans, of reclamation, and of a pool that
/// grows or is full. A suspended call delays reclamation, so memory is not reused until it goes on.
/// A call that is suspended while it brings the layers above the leaves up to date makes others
/// search longer. size(), check() and destruction do wait. docs/durability/nbtree.md lists which
/// calls may wait for which.
///
/// A scan reads leaf by leaf: the pairs of one leaf are read together, but each at another instant.
/// It sorts a leaf once per insert or erase and keeps the order in DRAM, within
/// `options.scan_budget`.
///
/// An insert, update or erase of integers flushes one line and fences once (Table I), apart from
/// what replacing leaves costs; strings cost what their allocation costs, too. A get() reads one PM
/// line, and those of the strings. The first size() after opening brings back all that is not back
/// yet; stats() costs no PM. `stats().dram_bytes` is what the index has taken from the system: it
/// grows from some dozen KiB, in steps of 2 MiB once it is as large as that, and the memory of
/// erased pairs is kept for reuse.
///
/// In a full pool everything can be erased, and emptied leaves are joined when there is space.
/// Before a call of any index of the pool throws out_of_space, this one gives back what it keeps
/// and does not need.
///
/// An index has up to 64 GiB of DRAM, which is enough for more than 20 billion pairs of integers;
/// what would need more throws no_memory.
template <Storable K, Storable V>
class NbTree : public OrderedIndex<K, V> {
 public:
  /// The options of an opening.
  using Options = NbTreeOptions;

  /// Opens the index of that name in the pool, or creates it. Throws wrong_engine, wrong_kind,
  /// in_use if it is open already, invalid_argument for a bad name, corrupt. Cost: reads the bounds
  /// of all leaves, 16 bytes each. What else lies in DRAM comes back after that, leaf by leaf: as
  /// calls need it, which may therefore throw corrupt, and in the background
  /// (`options.resume_in_background`).
  NbTree(const Pool& pool, std::string_view name, const NbTreeOptions& options = {});
};

extern template class NbTree<std::uint64_t, std::uint64_t>;
extern template class NbTree<std::uint64_t, std::string>;
extern template class NbTree<std::string, std::uint64_t>;
extern template class NbTree<std::string, std::string>;

}  // namespace perdix
