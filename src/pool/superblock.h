// Reading and replacing the superblock, which is kept twice so that no crash and no single damaged
// block loses it.
//
// Invariants: (1) outside of update() both copies are valid and equal, but for one that an earlier
// crash or damage left behind; (2) update() never touches the newest copy before the other one is
// durable with the next generation. So at every moment one copy is valid, and it is the old or the
// new state. Not thread-safe; the pool serialises updates.
#pragma once

#include <cstddef>
#include <cstdint>

#include <perdix/pool.h>

#include "pm/file.h"
#include "pm/persist.h"
#include "pool/layout.h"

namespace perdix::detail::pool {

/// The checksum that belongs into `superblock.checksum`.
std::uint64_t checksum_of(const Superblock& superblock) noexcept;

/// The result of read_superblock().
struct FoundSuperblock {
  Superblock superblock;
  int copy;  ///< the copy that it was read from: the newest
};

/// The newest valid copy. Throws not_a_pool, newer_format, corrupt or truncated with a message that
/// tells which and what to do. Reads the file, not a mapping: nothing is known of its size yet.
FoundSuperblock read_superblock(const pm::File& file);

/// What a superblock says of the run that wrote it.
inline bool unclean(const Superblock& superblock) noexcept {
  return superblock.cleanness == static_cast<std::uint8_t>(Cleanness::unclean);
}
inline bool on_page_cache(const Superblock& superblock) noexcept {
  return superblock.domain == static_cast<std::uint8_t>(pm::Domain::page_cache);
}
inline bool has_journal(const Superblock& superblock) noexcept {
  return (superblock.features & kHasJournal) != 0;
}
inline bool has_halves(const Superblock& superblock) noexcept {
  return (superblock.features & kJournalFeatures) == kJournalFeatures;
}
/// The durability of an opening: without a wish, the one that was last asked for.
inline Durability durability_of(const Superblock& superblock, Durability asked) noexcept {
  return asked != Durability::automatic ? asked
                                        : static_cast<Durability>(superblock.requested_durability);
}
inline bool process_only(const Superblock& superblock) noexcept {
  return superblock.durability == static_cast<std::uint8_t>(Durability::process);
}

class SuperblockStore {
 public:
  /// Of an open pool mapped at `base`.
  SuperblockStore(std::byte* base, const pm::Persister& persister, const FoundSuperblock& found)
      : base_(base), pm_(persister), current_(found.superblock), newest_(found.copy) {}

  /// Of a pool that is being created: marks the file, so that it is recognised if creation doesn't
  /// end. The first update() makes it a pool.
  SuperblockStore(std::byte* base, const pm::Persister& persister);

  const Superblock& current() const noexcept { return current_; }

  /// Replaces the superblock; magic, version, generation and checksum are filled in. Durable in
  /// both copies when it returns.
  void update(Superblock next);

 private:
  void write(int copy, const Superblock& superblock);

  std::byte* base_;
  const pm::Persister& pm_;
  Superblock current_{};
  int newest_ = 0;
};

}  // namespace perdix::detail::pool
