#include "pool/journal_area.h"

#include "util/checksum.h"

namespace perdix::detail::pool {
namespace {

// The word: where the area begins in units of kBlockSize, its bytes in units of kJournalUnit, and a
// part of the checksum of both.
constexpr unsigned kBeginBits = alloc::kOffsetBits - 12;
constexpr unsigned kBits = kBeginBits + 12;
static_assert(kBlockSize == 1 << 12 && kMaxJournal / kJournalUnit < 1 << 12);

std::uint64_t with_check(std::uint64_t word) noexcept {
  return word | util::checksum(&word, sizeof word) << kBits;
}

}  // namespace

std::uint64_t journal_name(pm::FileRange area) noexcept {
  if (area.begin == kFirstJournal.begin) return 0;
  return with_check(area.begin / kBlockSize | (area.end - area.begin) / kJournalUnit << kBeginBits);
}

std::optional<pm::FileRange> named_journal(std::uint64_t name) noexcept {
  if (name == 0) return kFirstJournal;
  const std::uint64_t word = name & ((std::uint64_t{1} << kBits) - 1);
  const std::uint64_t begin = (word & ((std::uint64_t{1} << kBeginBits) - 1)) * kBlockSize;
  const std::uint64_t bytes = (word >> kBeginBits) * kJournalUnit;
  if (with_check(word) != name || begin < alloc::kLanesEnd || bytes < kMinJournal)
    return std::nullopt;
  return pm::FileRange{begin, begin + bytes};
}

}  // namespace perdix::detail::pool
