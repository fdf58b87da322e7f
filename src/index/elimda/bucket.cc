#include "index/elimda/bucket.h"

#include <algorithm>
#include <array>
#include <new>

namespace perdix::detail::index::elimda {

/// In whole lines, which the arena aligns; with what match_eight() may read behind the last entry.
std::size_t Bucket::bytes_for(unsigned groups, bool wide, unsigned d_capacity, unsigned entries) {
  constexpr std::size_t kLine = 64, kReadBehind = 16;
  const std::size_t bytes = pairs_at(groups, wide, d_capacity) +
                            d_capacity * (sizeof(Pair) + sizeof(BackupRef)) +
                            entries * sizeof(std::uint16_t) + kReadBehind;
  return (bytes + kLine - 1) / kLine * kLine;
}

Bucket* Bucket::make(util::Arena& arena, const FingerprintCode& code, const Contents& contents) {
  const Bucket* before = contents.before;
  const unsigned entries = (before == nullptr ? 0 : before->entry_count_ - before->killed_) +
                           static_cast<unsigned>(contents.slots.size());
  const bool wide = code.slots() > kMostInBytes;
  const std::size_t bytes = bytes_for(code.groups(), wide, contents.d_capacity, entries);
  auto* made = ::new (arena.allocate(bytes)) Bucket;
  std::memset(made->memory() + kHead, 0, bytes - kHead);
  made->d_capacity_ = static_cast<std::uint16_t>(contents.d_capacity);
  made->entry_count_ = static_cast<std::uint16_t>(entries);
  made->units_ = static_cast<std::uint16_t>(contents.units);
  made->groups_ = static_cast<std::uint16_t>(code.groups());
  made->fill_groups(code, contents);
  for (const DPair& pair : contents.d_pairs) made->d_add(pair);
  return made;
}

/// Copies the live entries of a group; returns the place behind them.
std::uint16_t* Bucket::copy_group(const FingerprintCode& code, unsigned group,
                                  std::uint16_t* to) const {
  const unsigned begin = group_begin(group), end = group_end(code, group);
  for (unsigned i = begin; i < end; ++i) {
    const std::uint16_t copied = entry(i);
    if (killed_ == 0 || !code.killed(copied)) *to++ = copied;
  }
  return to;
}

void Bucket::set_group_begin(unsigned group, unsigned start) {
  if (wide())
    at<std::uint16_t>(kHead)[group] = static_cast<std::uint16_t>(start);
  else
    starts()[group] = static_cast<std::uint8_t>(start);
}

/// Entries by group: those of the bucket before, then the new ones; all ascend within a group.
void Bucket::fill_groups(const FingerprintCode& code, const Contents& contents) {
  std::array<std::uint16_t, FingerprintCode::kMostGroups> added;
  std::fill_n(added.begin(), code.groups(), std::uint16_t{0});
  for (const PSlot& slot : contents.slots) ++added[code.group(slot.signature)];
  std::array<std::uint16_t*, FingerprintCode::kMostGroups> next;
  std::uint16_t* const entries = entries_begin();
  unsigned start = 0;
  first_group_ = static_cast<std::uint16_t>(code.groups());
  for (unsigned g = 0; g < code.groups(); ++g) {
    set_group_begin(g, start);
    next[g] = entries + start;
    unsigned size = added[g];
    if (contents.before != nullptr) {
      next[g] = contents.before->copy_group(code, g, next[g]);
      size += static_cast<unsigned>(next[g] - (entries + start));
    }
    if (size > 0 && first_group_ == code.groups()) first_group_ = static_cast<std::uint16_t>(g);
    start += size;
  }
  for (const PSlot& slot : contents.slots)
    *next[code.group(slot.signature)]++ = code.entry(slot.slot, slot.signature);
}

}  // namespace perdix::detail::index::elimda
