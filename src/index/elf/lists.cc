#include "index/elf/lists.h"

#include <algorithm>

#include <fmt/format.h>

#include "pool/checked.h"

namespace perdix::detail::index::elf {

FirstEntries::FirstEntries(const pool::PoolCore& pool, pm::Offset block) {
  const auto& head =
      pool::checked<FirstList>(pool, block, "a first list", [](const FirstList&) { return true; });
  count_ = pm::load(head.count);
  const bool dense = pm::load(head.dense) != 0;
  const std::uint64_t bytes =
      sizeof head + std::uint64_t{count_} * (sizeof(Ref) + (dense ? 0 : sizeof(std::uint32_t)));
  const std::uint64_t least = pm::load(head.least);
  if (!pool.contains(block, bytes) || (dense && least + count_ > std::uint64_t{1} << 32))
    pool::throw_corrupt(pool, "a first list", block);
  min_ = static_cast<std::uint32_t>(least);
  refs_ = reinterpret_cast<const std::uint64_t*>(&head + 1);
  if (dense) return;
  values_ = reinterpret_cast<const std::uint32_t*>(refs_ + count_);
  if (count_ > 0) greatest_ = pm::load(values_[count_ - 1]);
}

FirstEntries::Entry FirstEntries::entry(std::uint32_t i) const {
  note_words_read(in_pm_, reinterpret_cast<const std::uint32_t*>(refs_ + i), 2);
  if (values_ != nullptr) note_words_read(in_pm_, values_ + i, 1);
  const Ref ref = Ref::from_word(refs_[i]);
  return {values_ == nullptr ? min_ + i : values_[i], in_pm_ ? ref.from_pm() : ref};
}

std::uint64_t FirstEntries::copy_bytes() const {
  const std::uint64_t values = values_ == nullptr ? 0 : (std::uint64_t{count_} + 1) / 2;
  return (count_ + values) * sizeof(std::uint64_t);
}

std::uint32_t FirstEntries::lower_bound(std::uint32_t bound) const {
  if (values_ == nullptr) return bound <= min_ ? 0 : std::min(bound - min_, count_);
  const List list{values_, nullptr, count_, List::Form::wide, in_pm_, 0};
  return list.lower_bound(bound, greatest_);
}

Lists::Lists(pool::PoolCore& pool, const TableLayout& table, const Root& root)
    : pool_(pool),
      dimensions_(root.dimensions),
      shift_(root.slot_shift),
      greatest_(std::make_shared<GreatestValues>()) {
  read_slots(table);
  if (const pm::Offset first = pm::load(table.first_list); first != pm::kNull)
    first_ = FirstEntries(pool, first);
}

void Lists::read_slots(const TableLayout& table) {
  const std::uint64_t count = pm::load(table.slots);
  const auto* offsets = reinterpret_cast<const std::uint64_t*>(&table + 1);
  std::uint64_t used = count;
  while (used > 0 && pm::load(offsets[used - 1]) == pm::kNull) --used;
  const std::uint64_t slot_words = std::uint64_t{1} << shift_;
  std::uint64_t left = 0;  // words of the block from the begin of the current slot on
  const std::uint32_t* begin = nullptr;
  for (std::uint64_t i = 0; i < used || left > 0; ++i) {
    const pm::Offset block = i < used ? pm::load(offsets[i]) : pm::kNull;
    if (block != pm::kNull) {
      const std::uint64_t bytes = pool_.allocator().block_size(block);
      if (bytes == 0 || block % sizeof(std::uint64_t) != 0 || !pool_.contains(block, bytes))
        pool::throw_corrupt(pool_, "lists", block);
      begin = pool_.at<std::uint32_t>(block);
      left = bytes / sizeof *begin;
    }
    slots_.push_back({begin, left});
    begin = left > slot_words ? begin + slot_words : nullptr;
    left -= std::min(left, slot_words);
  }
}

std::uint64_t Lists::bytes() const {
  std::uint64_t words = 0;
  for (std::size_t i = 0; i < slots_.size(); ++i) words += words_of_slot(i);
  return words * sizeof(std::uint32_t);
}

void Lists::throw_no_node(Position position) const {
  pool::throw_damaged(pool_,
                      fmt::format("an Elf leads to word {}, where no node can be", position));
}

void Lists::throw_wrong_row(Tid tid) const {
  pool::throw_damaged(pool_, fmt::format("an Elf leads to row {}, which cannot be there", tid));
}

}  // namespace perdix::detail::index::elf
