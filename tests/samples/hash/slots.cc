#include "samples/hash/slots.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include <fmt/format.h>

#include <perdix/error.h>

#include "alloc/session.h"
#include "pm/access.h"
#include "util/hash.h"

namespace perdix::samples::hash {
namespace {

using KeySize = std::uint32_t;

constexpr std::uint64_t kFirstSize = 32;

[[noreturn]] void throw_corrupt(const detail::pool::PoolCore& pool) {
  throw Error(Errc::corrupt, fmt::format("{}: an array of a sample hash index is damaged; run "
                                         "`perdix check` on the pool",
                                         pool.path().string()));
}

std::span<std::uint64_t> slots_of(detail::pool::PoolCore& pool, detail::pm::Offset offset) {
  if (offset == detail::pm::kNull) return {};
  if (!pool.allocator().validate_block(offset, sizeof(Array))) throw_corrupt(pool);
  Array& array = *pool.at<Array>(offset);
  const std::uint64_t size = detail::pm::load(array.size);
  const std::uint64_t room = pool.allocator().block_size(offset) / sizeof(std::uint64_t) - 1;
  if (!std::has_single_bit(size) || size > room) throw_corrupt(pool);
  return {&array.size + 1, size};
}

bool holds_pair(std::uint64_t slot) { return slot != kNever && slot != kErased; }

std::string join(std::string_view key, std::string_view value) {
  const auto size = static_cast<KeySize>(key.size());
  std::string pair(sizeof size, '\0');
  std::memcpy(pair.data(), &size, sizeof size);
  return pair.append(key).append(value);
}

/// The root is the commit. No slot holds a pair.
void free_array(detail::pool::PoolCore& pool, std::uint64_t& root) {
  if (detail::pm::load(root) == detail::pm::kNull) return;
  detail::alloc::Session session = pool.allocator().session();
  session.free(detail::pm::load(root));
  session.commit(detail::pm::set_word(root, detail::pm::kNull));
}

/// Shows what join() has joined.
template <class Use>
auto split(const detail::pool::PoolCore& pool, std::string_view pair, Use use) {
  KeySize size = 0;
  if (pair.size() < sizeof size) throw_corrupt(pool);
  std::memcpy(&size, pair.data(), sizeof size);
  pair.remove_prefix(sizeof size);
  if (pair.size() < size) throw_corrupt(pool);
  return use(pair.substr(0, size), pair.substr(size));
}

}  // namespace

Slots::Slots(detail::pool::PoolCore& pool, std::uint64_t& root)
    : pool_(pool), root_(root), words_(pool) {
  for (const std::uint64_t& slot : slots()) {
    pairs_ += holds_pair(detail::pm::load(slot)) ? 1 : 0;
    used_ += detail::pm::load(slot) != kNever ? 1 : 0;
  }
}

void Slots::destroy(detail::pool::PoolCore& pool, std::uint64_t& root) {
  for (std::uint64_t& slot : slots_of(pool, detail::pm::load(root))) {
    if (!holds_pair(detail::pm::load(slot))) continue;
    detail::alloc::Session session = pool.allocator().session();
    Words::free(session, detail::pm::load(slot));
    session.commit(detail::pm::set_word(slot, kErased));
  }
  free_array(pool, root);
}

bool Slots::find(std::string_view key, std::string_view& value) const {
  const std::uint64_t* slot = slot_of(key);
  if (slot == nullptr || !holds_pair(detail::pm::load(*slot))) return false;
  split(pool_, words_.view(detail::pm::load(*slot)),
        [&](auto, std::string_view found) { value = found; });
  return true;
}

void Slots::set(std::string_view key, std::string_view value) {
  std::uint64_t* slot = slot_of(key);
  if (slot == nullptr || (detail::pm::load(*slot) == kNever && 2 * (used_ + 1) > slots().size())) {
    replace_array(std::max(kFirstSize, 4 * std::bit_ceil(pairs_ + 1)));
    slot = slot_of(key);
  }
  const std::uint64_t before = detail::pm::load(*slot);
  detail::alloc::Session session = pool_.allocator().session();
  const std::uint64_t word = words_.write(session, join(key, value), Words::hash16(key));
  if (holds_pair(before)) Words::free(session, before);
  session.commit(detail::pm::set_word(*slot, word));
  if (!holds_pair(before)) ++pairs_;
  if (before == kNever) ++used_;
}

bool Slots::erase(std::string_view key) {
  std::uint64_t* slot = slot_of(key);
  if (slot == nullptr || !holds_pair(detail::pm::load(*slot))) return false;
  {
    detail::alloc::Session session = pool_.allocator().session();
    Words::free(session, detail::pm::load(*slot));
    session.commit(detail::pm::set_word(*slot, kErased));
  }
  if (--pairs_ == 0) used_ = 0, free_array(pool_, root_);
  return true;
}

void Slots::for_each(const Show& show) const {
  for (const std::uint64_t& slot : slots())
    if (holds_pair(detail::pm::load(slot))) split(pool_, words_.view(detail::pm::load(slot)), show);
}

void Slots::for_each_block(const detail::pool::BlockVisitor& visit) const {
  if (const detail::pm::Offset array = detail::pm::load(root_); array != detail::pm::kNull)
    visit(array);
  for (const std::uint64_t& slot : slots())
    if (holds_pair(detail::pm::load(slot)))
      visit(detail::index::blob_offset(detail::pm::load(slot)));
}

std::uint64_t Slots::pm_bytes() const {
  std::uint64_t bytes = 0;
  for_each_block([&](detail::pm::Offset block) { bytes += pool_.allocator().block_size(block); });
  return bytes;
}

CheckReport Slots::check() const {
  CheckReport report;
  report.blocks = slots().empty() ? 0 : 1;
  bool ends = slots().empty();
  for (const std::uint64_t& slot : slots()) {
    const std::uint64_t word = detail::pm::load(slot);
    ends |= word == kNever;
    if (!holds_pair(word)) continue;
    ++report.pairs, ++report.blocks;
    if (!words_.sound(word)) {
      report.problems.push_back(fmt::format("slot {:#x} leads to no blob (T1)", word));
      return report;
    }
    split(pool_, words_.view(word), [&](std::string_view key, auto) {
      if (slot_of(key) != &slot || detail::index::word_tag(word) != Words::hash16(key))
        report.problems.emplace_back("a pair lies where a search doesn't find it (T2)");
    });
  }
  if (!ends) report.problems.emplace_back("no slot ends a search (T3)");
  return report;
}

std::span<std::uint64_t> Slots::slots() const { return slots_of(pool_, detail::pm::load(root_)); }

/// The slot of the key; if it has none, the one that it would get; null if there is no array.
std::uint64_t* Slots::slot_of(std::string_view key) const {
  const std::span<std::uint64_t> all = slots();
  if (all.empty()) return nullptr;
  const detail::index::Hash16 tag = Words::hash16(key);
  const std::uint64_t first = detail::util::hash(key);
  std::uint64_t* erased = nullptr;
  for (std::uint64_t i = 0; i < all.size(); ++i) {
    std::uint64_t& slot = all[(first + i) % all.size()];
    const std::uint64_t word = detail::pm::load(slot);
    if (word == kNever) return erased != nullptr ? erased : &slot;
    if (word == kErased && erased == nullptr) erased = &slot;
    if (word == kErased || detail::index::word_tag(word) != tag) continue;
    if (split(pool_, words_.view(word), [&](auto found, auto) { return found == key; }))
      return &slot;
  }
  throw_corrupt(pool_);
}

/// Moves the pairs into a new array, without what was erased.
void Slots::replace_array(std::uint64_t size) {
  detail::alloc::Session session = pool_.allocator().session();
  const detail::pm::Offset offset = session.reserve(sizeof(Array) + size * sizeof(std::uint64_t));
  std::vector<std::uint64_t> array(1 + size, kNever);
  array[0] = size;
  for (const std::uint64_t& slot : slots()) {
    if (!holds_pair(detail::pm::load(slot))) continue;
    std::uint64_t at = 0;
    split(pool_, words_.view(detail::pm::load(slot)),
          [&](auto key, auto) { at = detail::util::hash(key); });
    while (array[1 + at % size] != kNever) ++at;
    array[1 + at % size] = detail::pm::load(slot);
  }
  if (const detail::pm::Offset before = detail::pm::load(root_); before != detail::pm::kNull)
    session.free(before);
  auto* const to = pool_.at<std::uint64_t>(offset);
  pool_.pm().copy(to, array.data(), array.size() * sizeof array[0]);
  pool_.pm().flush(to, array.size() * sizeof array[0]);  // the commit fences
  session.commit(detail::pm::set_word(root_, offset));
  used_ = pairs_;
}

}  // namespace perdix::samples::hash
