// The indexes of a pool, and which of them are open: the directory in PM, with what this process
// knows of each entry.
//
// Invariants:
//   1. An entry with handles is not freed, nor opened again (the pool asks require_closed() first).
//   2. An entry that is being dropped, and has no handle, waits for the next opening of the pool.
//
// Not thread-safe; the pool serialises access.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <perdix/pool.h>

#include "pm/persist.h"
#include "pool/directory.h"

namespace perdix::detail::pool {

class IndexTable {
 public:
  using Slot = Directory::Slot;

  /// `pool_name` is for messages.
  IndexTable(DirectoryEntry* entries, const pm::Persister& pm, std::string pool_name)
      : directory_(entries, pm, pool_name),
        pool_name_(std::move(pool_name)),
        handles_(kDirectoryEntries, 0) {}

  /// As Directory.
  void check() const { directory_.check(); }

  /// The live index of that name.
  std::optional<Slot> find(std::string_view name) const { return directory_.find(name); }

  /// Like find(). Throws not_found.
  Slot slot_of(std::string_view name) const;

  IndexInfo info(Slot slot) const { return directory_.info(slot); }
  std::uint64_t& root(Slot slot) const { return directory_.root(slot); }
  std::uint64_t& claim_of(const std::uint64_t& root) const { return directory_.claim_of(root); }
  std::uint64_t claimed() const { return directory_.claimed(); }

  /// Live indexes, by name.
  std::vector<IndexInfo> live() const;

  /// Hidden indexes without a handle.
  std::vector<Slot> dropping() const;

  /// These, and why each is left.
  std::vector<UnfinishedDrop> unfinished_drops() const;

  /// Throws wrong_engine or wrong_kind, or in_use.
  void require_may_open(Slot slot, const IndexInfo& wanted) const;

  /// Throws in_use if the index is open, or any index is.
  void require_closed(Slot slot) const;
  void require_all_closed() const;

  unsigned handles(Slot slot) const { return handles_[slot]; }
  void add_handle(Slot slot) noexcept { ++handles_[slot]; }
  void remove_handle(Slot slot) noexcept { --handles_[slot]; }

  Slot add(const IndexInfo& info) { return directory_.add(info); }
  void begin_drop(Slot slot) { directory_.begin_drop(slot); }

  /// Frees the entry of a hidden index, and counts its last handle as gone: the next index may take
  /// the entry immediately, and would count as open.
  void finish_drop(Slot slot);

  /// Notes why an index is left hidden, as far as there is memory for it.
  void postpone_drop(Slot slot, std::string_view why) noexcept;

 private:
  Directory directory_;
  std::string pool_name_;
  std::vector<unsigned> handles_;  // of each entry
  std::map<Slot, std::string> why_postponed_;
};

}  // namespace perdix::detail::pool
