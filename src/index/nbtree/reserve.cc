// Blocks that are put aside, one for a small leaf and one for a large one. In a full pool erased
// entries must make room for others, emptied leaves must be joined, and a leaf that is closed must
// come open again: each replaces a leaf, before the old one is free. Each block is the claim of a
// Hold, which belongs to the holder of reserve_lock_.
#include <fmt/format.h>

#include <array>
#include <mutex>
#include <optional>

#include <perdix/error.h>

#include "index/nbtree/nbtree.h"

namespace perdix::index::nbtree {
namespace {

[[noreturn]] void throw_no_reserve(const pool::PoolCore& pool) {
  throw Error(Errc::out_of_space,
              fmt::format("{}: the pool is full, and there is no block to replace a leaf by; "
                          "erase something or let the pool grow",
                          pool.path().string()));
}

}  // namespace

/// The blocks that were put aside, for the caller alone. Throws out_of_space if another thread does
/// not come to an end with them.
template <class K>
auto WordTree<K>::lock_reserve() const -> std::unique_lock<util::SpinLock> {
  constexpr unsigned kTries = 10'000;
  std::unique_lock lock(reserve_lock_, std::try_to_lock);
  util::Backoff backoff;
  for (unsigned tries = 0; !lock && tries < kTries; ++tries) {
    backoff.pause();
    lock.try_lock();
  }
  if (!lock) throw_no_reserve(pool());
  return lock;
}

/// The claim of the smallest block that was put aside in which so many pairs fit. Throws
/// out_of_space if there is none.
template <class K>
auto WordTree<K>::reserve_for(unsigned pairs) const -> Hold& {
  for (std::optional<Hold>& hold : reserve_) {
    if (!hold || hold->claims()[0] == pm::kNull) continue;
    if (pairs <= capacity_at(hold->claims()[0])) return *hold;
  }
  throw_no_reserve(pool());
}

/// The capacity of the largest leaf for which there is room in a block.
template <class K>
unsigned WordTree<K>::capacity_at(pm::Offset block) const {
  const bool large = pool().allocator().block_size(block) >= block_bytes(kCapacity);
  return large ? kCapacity : kSmallCapacity;
}

/// Puts blocks aside, where there are none.
template <class K>
void WordTree<K>::fill_reserve() const {
  if (!reserve_lock_.try_lock()) return;
  const std::lock_guard lock(reserve_lock_, std::adopt_lock);
  fill_locked_reserve();
}

/// The same for who has the lock.
template <class K>
void WordTree<K>::fill_locked_reserve() const {
  auto& [small, large] = reserve_;
  put_aside(large, kCapacity);
  // Of two leaves that were joined both may be large, so that there is no space but for one such.
  if (!put_aside(small, kSmallCapacity)) put_aside(small, kCapacity);
}

/// Frees what is put aside, until the next modification.
template <class K>
void WordTree<K>::give_up_reserve() const {
  const std::lock_guard lock(reserve_lock_);
  for (std::optional<Hold>& hold : reserve_) hold.reset();
}

/// Claims a block for so many pairs, if the hold has none. False if there is no space.
template <class K>
bool WordTree<K>::put_aside(std::optional<Hold>& hold, unsigned capacity) const {
  if (hold && hold->claims()[0] != pm::kNull) return true;
  try {
    if (!hold) hold.emplace(*ledger_, Ledger::Purpose::modification);
    hold->make_room(4);
    hold->claim([&](alloc::Session& session) {
      return std::array<pm::Offset, 4>{session.reserve(block_bytes(capacity))};
    });
    return true;
  } catch (const Error& error) {
    pm::on_step("nbtree: no space for the reserve");
    if (error.code() != Errc::out_of_space) throw;  // it may be there next time
    return false;
  }
}

template auto WordTree<std::uint64_t>::lock_reserve() const -> std::unique_lock<util::SpinLock>;
template auto WordTree<std::uint64_t>::reserve_for(unsigned) const -> Hold&;
template unsigned WordTree<std::uint64_t>::capacity_at(pm::Offset) const;
template void WordTree<std::uint64_t>::fill_reserve() const;
template void WordTree<std::uint64_t>::give_up_reserve() const;
template void WordTree<std::uint64_t>::fill_locked_reserve() const;
template auto WordTree<std::string>::lock_reserve() const -> std::unique_lock<util::SpinLock>;
template auto WordTree<std::string>::reserve_for(unsigned) const -> Hold&;
template unsigned WordTree<std::string>::capacity_at(pm::Offset) const;
template void WordTree<std::string>::fill_reserve() const;
template void WordTree<std::string>::give_up_reserve() const;
template void WordTree<std::string>::fill_locked_reserve() const;

}  // namespace perdix::index::nbtree
