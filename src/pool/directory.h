// The named indexes of a pool: a table of entries in PM (layout.h), each of which becomes visible,
// and vanishes, by one atomic store of its state.
//
// Not thread-safe; the pool serialises access. Roots are the engines' own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <perdix/pool.h>

#include "pm/persist.h"
#include "pool/layout.h"

namespace perdix::detail::pool {

class Directory {
 public:
  using Slot = std::size_t;

  /// `pool_name` is for messages.
  Directory(DirectoryEntry* entries, const pm::Persister& persister, std::string pool_name)
      : entries_(entries), pm_(persister), pool_name_(std::move(pool_name)) {}

  /// Verifies every entry. Throws corrupt. Before it has returned, nothing else may be called on a
  /// pool that was opened.
  void check() const;

  /// The live index of that name.
  std::optional<Slot> find(std::string_view name) const;

  /// Adds an index with root 0. Crash-atomic. The name must not be live. Throws out_of_space if the
  /// table is full.
  Slot add(const IndexInfo& info);

  /// Hides a live index; its root stays. Crash-atomic.
  void begin_drop(Slot slot);

  /// Frees the entry of a hidden index. Crash-atomic.
  void finish_drop(Slot slot);

  IndexInfo info(Slot slot) const;

  /// Throws wrong_engine or wrong_kind if a live index is not what the caller takes it for.
  void require_same(Slot slot, const IndexInfo& wanted) const;

  std::uint64_t& root(Slot slot) const { return entries_[slot].root; }

  /// The word of an index that says what is claimed for it, by its root.
  std::uint64_t& claim_of(const std::uint64_t& root) const;

  /// Spans that are claimed for all indexes.
  std::uint64_t claimed() const;

  std::vector<Slot> live() const { return in_state(kEntryLive); }
  std::vector<Slot> dropping() const { return in_state(kEntryDropping); }

 private:
  std::vector<Slot> in_state(std::uint64_t state) const;
  DirectoryEntry read(Slot slot) const;
  void check_entry(Slot slot) const;

  DirectoryEntry* entries_;
  const pm::Persister& pm_;
  std::string pool_name_;
};

/// Throws invalid_argument or too_large unless `name` can name an index: 1 to kMaxNameSize bytes
/// without control characters.
void require_index_name(std::string_view name);

/// The checksum that belongs into `entry.checksum`.
std::uint64_t checksum_of(const DirectoryEntry& entry) noexcept;

}  // namespace perdix::detail::pool
