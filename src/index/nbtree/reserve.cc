#include "index/nbtree/reserve.h"

#include <fmt/format.h>

#include <perdix/error.h>

#include "pm/probe.h"
#include "util/spin_lock.h"

namespace perdix::detail::index::nbtree {
namespace {

[[noreturn]] void throw_no_reserve(const pool::PoolCore& pool) {
  throw Error(Errc::out_of_space,
              fmt::format("{}: the pool is full, and there is no block to replace a leaf by; "
                          "erase something or let the pool grow",
                          pool.path().string()));
}

}  // namespace

auto Reserve::lock() -> Lock {
  constexpr unsigned kTries = 10'000;
  Lock lock(lock_, std::try_to_lock);
  util::Backoff backoff;
  for (unsigned tries = 0; !lock && tries < kTries; ++tries) {
    backoff.pause();
    lock.try_lock();
  }
  if (!lock) throw_no_reserve(pool_);
  return lock;
}

Ledger::StripeLease& Reserve::claim_for(unsigned pairs) {
  for (std::optional<Ledger::StripeLease>& lease : leases_) {
    if (!lease || lease->claims()[0] == pm::kNull) continue;
    if (pairs <= capacity_at(lease->claims()[0])) return *lease;
  }
  throw_no_reserve(pool_);
}

unsigned Reserve::capacity_at(pm::Offset block) const {
  const bool large = pool_.allocator().block_size(block) >= block_bytes(kCapacity);
  return large ? kCapacity : kSmallCapacity;
}

void Reserve::fill() {
  const Lock lock(lock_, std::try_to_lock);
  if (lock) fill_locked();
}

/// Puts blocks aside, where there are none. The caller has the lock.
void Reserve::fill_locked() {
  auto& [small, large] = leases_;
  put_aside(large, kCapacity);
  // Of two leaves that were joined both may be large, so that there is no space but for one such.
  if (!put_aside(small, kSmallCapacity)) put_aside(small, kCapacity);
}

void Reserve::give_up() {
  const std::lock_guard lock(lock_);
  for (std::optional<Ledger::StripeLease>& lease : leases_) lease.reset();
}

/// Claims a block of this capacity if the lease has none. False if there is no space.
bool Reserve::put_aside(std::optional<Ledger::StripeLease>& lease, unsigned capacity) {
  if (lease && lease->claims()[0] != pm::kNull) return true;
  try {
    if (!lease) lease.emplace(ledger_, Ledger::Purpose::modification);
    lease->make_room(4);
    lease->claim([&](alloc::Session& session) {
      return std::array<pm::Offset, 4>{session.reserve(block_bytes(capacity))};
    });
    return true;
  } catch (const Error& error) {
    pm::on_step("nbtree: no space for the reserve");
    if (error.code() != Errc::out_of_space) throw;  // it may be there next time
    return false;
  }
}

/// The holds, null where there is none.
std::array<Ledger::StripeLease*, 2> Reserve::own() {
  const auto lease = [](std::optional<Ledger::StripeLease>& held) {
    return held ? &*held : nullptr;
  };
  return {lease(leases_[0]), lease(leases_[1])};
}

bool Reserve::free_garbage() {
  const Lock lock(lock_, std::try_to_lock);
  if (!lock) return ledger_.free_unlinked();
  const bool any = ledger_.free_unlinked(own());
  fill_locked();  // before another index can have what was freed
  return any;
}

bool Reserve::free_pages() {
  const Lock lock(lock_, std::try_to_lock);
  return lock && ledger_.free_empty_pages(own());
}

}  // namespace perdix::detail::index::nbtree
