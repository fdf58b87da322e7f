#include "index/elf/replacement.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include <perdix/error.h>

#include "alloc/session.h"
#include "pm/access.h"

namespace perdix::detail::index::elf {

Replacement::Replacement(pool::PoolCore& pool, Root& root, std::uint64_t rows)
    : pool_(pool),
      root_(root),
      spare_(pm::load(root.current) == 0 ? 1 : 0),
      shift_(root.slot_shift) {
  slot_count_ = (max_span(rows, root.dimensions, shift_) >> shift_) + 1;
  const std::uint64_t bytes = sizeof(TableLayout) + slot_count_ * sizeof(std::uint64_t);
  const auto& current = *pool_.at<TableLayout>(pm::load(root.tables[1 - spare_]));
  alloc::Session session = pool_.allocator().session();
  const pm::Offset block = session.reserve(bytes);
  table_ = pool_.at<TableLayout>(block);
  pool_.pm().zero(table_, bytes);
  pool_.pm().store(table_->magic, kTableMagic);
  pool_.pm().store(table_->generation, pm::load(current.generation) + 1);
  pool_.pm().store(table_->slots, slot_count_);
  pool_.pm().flush(table_, bytes);  // the commit fences
  session.commit(pm::set_word(root_.tables[spare_], block));
}

Position Replacement::reserve(std::uint64_t words) {
  if (words > capacity_ - words_.size()) {
    close_block();
    const std::uint64_t slots = (words + block_words(1, shift_) - 1) / block_words(1, shift_);
    capacity_ = block_words(slots, shift_);
  }
  const Position position = begin_ + words_.size();
  // Zeroed: a block may be linked before all pointers of its last lists are set, and old contents
  // of this memory must not get into the file.
  words_.resize(words_.size() + words, 0);
  return position;
}

void Replacement::set(Position position, std::uint32_t word) {
  if (position >= begin_) {
    *node(position) = word;
    return;
  }
  // The block is linked already, perhaps several slots before.
  std::uint64_t slot = position >> shift_;
  while (pm::load(slots()[slot]) == pm::kNull) --slot;
  auto* const words = pool_.at<std::uint32_t>(pm::load(slots()[slot]));
  std::uint32_t& there = words[position - (slot << shift_)];
  pool_.pm().store(there, word);
  pool_.pm().flush(&there, sizeof there);  // the commit of the table fences
}

void Replacement::finish_lists(std::span<const std::uint32_t> values, std::span<const Ref> refs) {
  close_block();
  if (refs.empty()) return;
  const std::uint64_t range = std::uint64_t{values.back()} - values.front() + 1;
  const bool dense = range * sizeof(Ref) <= refs.size() * (sizeof(Ref) + sizeof(std::uint32_t));
  const std::uint64_t count = dense ? range : refs.size();
  std::vector<std::uint64_t> words(2 + count + (dense ? 0 : (count + 1) / 2));
  const FirstList head = {static_cast<std::uint32_t>(count), dense ? 1U : 0U,
                          dense ? values.front() : 0U};
  std::memcpy(words.data(), &head, sizeof head);
  for (std::size_t i = 0; i < refs.size(); ++i)
    words[2 + (dense ? values[i] - values.front() : i)] = refs[i].word();
  if (!dense) std::memcpy(&words[2 + count], values.data(), values.size_bytes());
  link(table_->first_list, words.size() * sizeof(std::uint64_t), words.data());
}

void Replacement::link_dead(std::span<const std::uint64_t> bits) {
  if (!bits.empty()) link(table_->dead, bits.size_bytes(), bits.data());
}

void Replacement::set_dead(Tid tid) {
  std::uint64_t& word = pool_.at<std::uint64_t>(pm::load(table_->dead))[tid / 64];
  const std::uint64_t bit = std::uint64_t{1} << tid % 64;
  if ((pm::load(word) & bit) != 0) return;
  pool_.pm().store(word, pm::load(word) | bit);
  pool_.pm().flush(&word, sizeof word);  // the commit of the table fences
  pool_.pm().store(table_->erased, 1);   // its flush is that of the table's fields
}

void Replacement::close_block() {
  if (words_.empty()) return;
  const std::uint64_t slot = begin_ >> shift_;
  const std::uint64_t slots_taken = (words_.size() >> shift_) + 1;
  if (slot + slots_taken > slot_count_) {
    throw Error(Errc::too_large, fmt::format("{}: the lists of an Elf need more than {} slots",
                                             pool_.path().string(), slot_count_));
  }
  link(slots()[slot], words_.size() * sizeof(std::uint32_t), words_.data());
  begin_ += slots_taken << shift_;
  words_.clear();
  capacity_ = 0;
}

/// Allocates a block, copies `contents` to it and links it by `word`, in one commit.
void Replacement::link(std::uint64_t& word, std::uint64_t bytes, const void* contents) {
  alloc::Session session = pool_.allocator().session();
  const pm::Offset block = session.reserve(bytes);
  void* const to = pool_.base() + block;
  pool_.pm().copy(to, contents, bytes);
  pool_.pm().flush(to, bytes);  // the commit fences
  session.commit(pm::set_word(word, block));
}

}  // namespace perdix::detail::index::elf
