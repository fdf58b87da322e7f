#include "index/elimda/bucket.h"

#include <algorithm>
#include <array>
#include <bit>
#include <new>

namespace perdix::detail::index::elimda {

/// In whole lines: the arena aligns these to a line. match_eight() may read behind the last entry,
/// and must stay within the bucket.
std::size_t Bucket::Layout::bytes() const {
  constexpr std::size_t kLine = 64;
  const std::size_t bytes =
      pairs_at() + std::max(d_capacity * (sizeof(Pair) + sizeof(BackupRef)), kGranule);
  return (bytes + kLine - 1) / kLine * kLine;
}

Bucket::Layout Bucket::Layout::filled(unsigned most) const {
  Layout filled = *this;
  for (Layout next = *this; next.d_capacity < most; filled = next) {
    ++next.d_capacity;
    if (next.bytes() != bytes()) break;
  }
  return filled;
}

Bucket::Contents Bucket::room_for(const Shape& shape, unsigned d_count) {
  Contents contents;
  contents.d_min = d_count + 1;
  contents.d_max = d_count < shape.d_pairs ? shape.d_pairs : 2 * shape.d_pairs;
  if (d_count >= 2 * shape.d_pairs) contents.d_min = std::min(2 * d_count, kMaxDramPairs);
  return contents;
}

Bucket::Contents Bucket::contents_for(const Shape& shape, unsigned d_count, bool straight) {
  Contents contents = room_for(shape, d_count);
  if (!straight) return contents;
  contents.recent = shape.recent_pairs();
  if (d_count == 0) contents.d_min = contents.d_max = 0;
  return contents;
}

/// Only the layout is filled in.
Bucket* Bucket::make_empty(util::Arena& arena, const Layout& layout) {
  auto* made = ::new (arena.allocate(layout.bytes())) Bucket;
  made->d_capacity_ = static_cast<std::uint16_t>(layout.d_capacity);
  made->entry_count_ = static_cast<std::uint16_t>(layout.entries);
  made->recent_capacity_ = static_cast<std::uint8_t>(layout.recent);
  made->group_bits_ = static_cast<std::uint8_t>(std::countr_zero(layout.groups));
  return made;
}

Bucket* Bucket::make(util::Arena& arena, const FingerprintCode& code, const Contents& contents) {
  const Bucket* before = contents.before;
  const unsigned entries = (before == nullptr ? 0 : before->entry_count_ - before->killed_) +
                           static_cast<unsigned>(contents.slots.size());
  const Layout layout =
      Layout{code.groups(), contents.recent, contents.d_min, entries}.filled(contents.d_max);
  Bucket* made = make_empty(arena, layout);
  std::memset(made->memory() + kHead, 0, layout.bytes() - kHead);
  made->used_ = static_cast<std::uint16_t>(contents.used);
  made->fill_groups(code, contents);
  for (const DPair& pair : contents.d_pairs) made->d_add(pair);
  return made;
}

Bucket* Bucket::make_larger(util::Arena& arena, unsigned d_min, unsigned d_max) const {
  Layout larger = layout();
  larger.d_capacity = d_min;
  Bucket* made = make_empty(arena, larger.filled(d_max));
  made->first_group_ = first_group_;
  made->used_ = used_;
  made->killed_ = killed_;
  const unsigned count = d_count();
  // Where groups begin, and recent prints.
  std::memcpy(made->memory() + kHead, memory() + kHead, layout().prints_at() - kHead);
  std::memcpy(made->prints_begin(), prints_begin(), count);
  std::memset(made->prints_begin() + count, 0, granules(made->d_capacity_) - count);
  std::memcpy(made->entries_begin(), entries_begin(), entry_count_ * sizeof(std::uint16_t));
  std::memcpy(made->d_begin(), d_begin(), count * sizeof(Pair));
  std::memcpy(made->refs_begin(), refs_begin(), count * sizeof(BackupRef));
  made->recent_count_.store(static_cast<std::uint8_t>(recent_count()), std::memory_order_relaxed);
  made->d_count_.store(static_cast<std::uint16_t>(count), std::memory_order_relaxed);
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
  if (layout().wide())
    at<std::uint16_t>(kHead)[group] = static_cast<std::uint16_t>(start);
  else
    starts()[group] = static_cast<std::uint8_t>(start);
}

/// Entries by group: those of the bucket before, then the new ones; all ascend within a group.
void Bucket::fill_groups(const FingerprintCode& code, const Contents& contents) {
  std::array<std::uint16_t, FingerprintCode::kMaxGroups> added;
  std::fill_n(added.begin(), code.groups(), std::uint16_t{0});
  for (const PSlot& slot : contents.slots) ++added[code.group(slot.signature)];
  std::array<std::uint16_t*, FingerprintCode::kMaxGroups> next;
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
