// How large the journal of a pool is, and the word that names where it lies (layout.h).
#pragma once

#include <cstdint>
#include <optional>

#include "alloc/layout.h"
#include "pm/file.h"
#include "pm/offset.h"
#include "pool/layout.h"

namespace perdix::detail::pool {

/// The area in the pool's first MiB.
inline constexpr pm::FileRange kFirstJournal{kJournalOffset, kPoolAreaSize};
inline constexpr std::uint64_t kMinJournal = kFirstJournal.end - kFirstJournal.begin;
inline constexpr std::uint64_t kMaxJournal = std::uint64_t{255} << 20;
inline constexpr std::uint64_t kMaxDefaultJournal = std::uint64_t{64} << 20;
inline constexpr std::uint64_t kJournalUnit = alloc::kSpanSize;

/// The journal of a pool of `size` bytes, if nothing was asked for. Nothing is taken of a pool that
/// is small, or is kept small.
constexpr std::uint64_t default_journal(std::uint64_t size, std::uint64_t max_size) noexcept {
  if (size < 2 * kGrowthUnit || max_size / 4 < size) return kMinJournal;
  return size / 8 < kMaxDefaultJournal ? size / 8 : kMaxDefaultJournal;
}

/// Bytes of the block for a journal of the wanted size; 0 if the first MiB has room for it.
constexpr std::uint64_t journal_block_size(std::uint64_t wanted) noexcept {
  if (wanted <= kMinJournal) return 0;
  return (wanted < kMaxJournal ? wanted : kMaxJournal) / kJournalUnit * kJournalUnit;
}

/// The whole pages, in whole units of bytes, of a block that the journal has.
constexpr pm::FileRange journal_area(pm::Offset block, std::uint64_t bytes) noexcept {
  const pm::Offset begin = (block + kBlockSize - 1) / kBlockSize * kBlockSize;
  const std::uint64_t whole = (block + bytes - begin) / kJournalUnit * kJournalUnit;
  return {begin, begin + (whole < kMaxJournal ? whole : kMaxJournal)};
}

/// The word for an area; 0 for kFirstJournal.
std::uint64_t journal_name(pm::FileRange area) noexcept;

/// The area that a word names; nothing if it is no word for an area behind the allocator's lanes.
std::optional<pm::FileRange> named_journal(std::uint64_t name) noexcept;

}  // namespace perdix::detail::pool
