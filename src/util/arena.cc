#include "util/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <new>
#include <utility>

namespace perdix::detail::util {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = 2 * 1024 * 1024;

constexpr std::size_t round_up(std::size_t n, std::size_t unit) {
  return (n + unit - 1) / unit * unit;
}

constexpr int kAccess = PROT_READ | PROT_WRITE;

/// Memory that is mapped without access costs only addresses.
std::byte* map(std::size_t bytes, int access = kAccess) {
  void* p = mmap(nullptr, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(p);
}

void unmap(std::byte* p, std::size_t bytes) {
  if (bytes > 0) munmap(p, bytes);
}

void advise_huge(std::byte* p, std::size_t bytes) {
  madvise(p, bytes, MADV_HUGEPAGE);  // without huge pages everything still works, only slower
}

/// Has the pages of a block that was small become one huge page, as far as the kernel can do that.
void make_huge(std::byte* block) {
  constexpr int kCollapse = 25;  // MADV_COLLAPSE, which older headers lack
  advise_huge(block, kHugePage);
  madvise(block, kHugePage, kCollapse);
}

// Maps more than is needed and cuts off both ends, since mmap aligns to small pages only.
std::byte* map_huge(std::size_t bytes, int access = kAccess) {
  std::byte* const mapped = map(bytes + kHugePage, access);
  const auto address = reinterpret_cast<std::uintptr_t>(mapped);
  const std::size_t head = round_up(address, kHugePage) - address;
  unmap(mapped, head);
  unmap(mapped + head + bytes, kHugePage - head);
  advise_huge(mapped + head, bytes);
  return mapped + head;
}

std::size_t mapping_size(std::size_t bytes) {
  return round_up(bytes, bytes < kHugePage ? kPage : kHugePage);
}

/// As many addresses, or half of them, and so on: a limit on them is no reason to have none.
std::span<std::byte> reserve(std::size_t bytes) {
  constexpr std::size_t kMinBytes = std::size_t{64} << 20;
  for (bytes = round_up(bytes, kHugePage);; bytes = round_up(bytes / 2, kHugePage)) {
    try {
      return {map_huge(bytes, PROT_NONE), bytes};
    } catch (const std::bad_alloc&) {
      if (bytes <= kMinBytes) throw;
    }
  }
}

/// How many pieces a batch has: enough that batches are rarely exchanged, few enough that they take
/// little memory.
constexpr std::uint32_t batch_of(std::size_t bytes) {
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(kPage / bytes, 2, 32));
}

}  // namespace

Arena::Arena(std::size_t range) {
  assert(range <= kMaxRange);
  stripes_ = reinterpret_cast<Stripe*>(map(kArenaStripes * sizeof(Stripe)));
  if (range == 0) return;
  try {
    const std::span<std::byte> addresses = reserve(range);
    range_ = addresses.data();
    range_size_ = addresses.size();
  } catch (const std::bad_alloc&) {
    unmap(reinterpret_cast<std::byte*>(stripes_), kArenaStripes * sizeof(Stripe));
    throw;
  }
  before_range_ = reinterpret_cast<std::uintptr_t>(range_) - kGranule;
  madvise(range_, kBlock, MADV_NOHUGEPAGE);
}

Arena::~Arena() {
  unmap(reinterpret_cast<std::byte*>(stripes_), kArenaStripes * sizeof(Stripe));
  for (std::byte* block : blocks_) unmap(block, kBlock);
  unmap(range_, range_size_);
}

void* Arena::allocate(std::size_t bytes) {
  assert(bytes > 0);
  if (bytes > kLargestClass) return allocate_mapping(mapping_size(bytes));
  bytes = round_up(bytes, kGranule);
  Stripe* stripe = nullptr;
  const auto lock = try_stripe(stripe);
  if (stripe == nullptr) return take_without_stripe(bytes);
  void* const memory = take(stripe->classes[bytes / kGranule], bytes);
  stripe->in_use.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  return memory;
}

void Arena::allocate(std::size_t bytes, std::span<void*> pieces) {
  assert(bytes > 0 && bytes <= kLargestClass);
  std::size_t have = 0;
  try {
    for (; have < pieces.size(); ++have) pieces[have] = allocate(bytes);
  } catch (const std::bad_alloc&) {
    while (have > 0) release(pieces[--have], bytes);
    throw;
  }
}

/// Locks an unlocked stripe, if there is one: the thread's own, if that is free.
std::unique_lock<SpinLock> Arena::try_stripe(Stripe*& stripe) {
  const std::size_t own = current_stripe();
  for (std::size_t i = 0; i < kArenaStripes; ++i) {
    Stripe& candidate = stripes_[(own + i) % kArenaStripes];
    std::unique_lock lock(candidate.lock, std::try_to_lock);
    if (!lock) continue;
    stripe = &candidate;
    return lock;
  }
  return {};
}

/// A piece of the class. The caller holds the lock of the stripe, here and below.
void* Arena::take(Local& local, std::size_t bytes) {
  for (;;) {
    if (local.freed == nullptr && local.full != nullptr) {
      local.freed = std::exchange(local.full, nullptr);
      local.count = batch_of(bytes);
    }
    if (Free* piece = local.freed) {
      local.freed = piece->next;
      if (local.count > 0) --local.count;
      return piece;
    }
    if (static_cast<std::size_t>(local.fresh_end - local.fresh) >= bytes)
      return std::exchange(local.fresh, local.fresh + bytes);
    if (refill(local, bytes)) continue;
    if (void* piece = take_from_others(bytes)) return piece;
    throw std::bad_alloc();
  }
}

/// Gets a batch or a slab. False if there is no memory.
bool Arena::refill(Local& local, std::size_t bytes) {
  if (Free* batch = pop_batch(bytes)) {
    local.freed = batch;
    local.count = batch_of(bytes);
    return true;
  }
  constexpr std::uint32_t kMaxDoublings = 4;
  const std::size_t first = round_up(4 * bytes, kPage);
  const std::size_t slab = std::min(first << std::min(local.slabs, kMaxDoublings), kLargestSlab);
  const std::span<std::byte> carved = carve(bytes, slab);
  if (carved.empty()) return false;
  ++local.slabs;
  local.fresh = carved.data();
  local.fresh_end = carved.data() + carved.size();
  return true;
}

/// What other stripes have of a class, when there is no more: nullptr if nothing, or if they are
/// locked.
void* Arena::take_from_others(std::size_t bytes) noexcept {
  for (std::size_t i = 0; i < kArenaStripes; ++i) {
    const std::unique_lock lock(stripes_[i].lock, std::try_to_lock);
    if (!lock) continue;
    Local& local = stripes_[i].classes[bytes / kGranule];
    for (Free** list : {&local.freed, &local.full}) {
      if (Free* piece = *list) {
        *list = piece->next;
        return piece;
      }
    }
    if (static_cast<std::size_t>(local.fresh_end - local.fresh) >= bytes)
      return std::exchange(local.fresh, local.fresh + bytes);
  }
  return nullptr;
}

/// For a thread that finds all stripes locked, perhaps by suspended ones.
void* Arena::take_without_stripe(std::size_t bytes) {
  void* memory = nullptr;
  if (Free* batch = pop_batch(bytes)) {
    memory = batch;
    if (Free* others = batch->next) {
      others->next_batch = nullptr;
      push_batches(others, bytes);
    }
  } else {
    memory = carve(bytes, bytes).data();
    if (memory == nullptr) throw std::bad_alloc();
  }
  in_use_.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  return memory;
}

/// Takes all batches of a class, and puts all but the first back.
Arena::Free* Arena::pop_batch(std::size_t bytes) noexcept {
  std::atomic<Free*>& list = batches_[bytes / kGranule];
  if (list.load(std::memory_order_relaxed) == nullptr) return nullptr;
  Free* const first = list.exchange(nullptr, std::memory_order_acq_rel);
  if (first == nullptr) return nullptr;
  if (first->next_batch != nullptr) push_batches(first->next_batch, bytes);
  return first;
}

/// Puts a list of batches before those that the class has.
void Arena::push_batches(Free* first, std::size_t bytes) noexcept {
  std::atomic<Free*>& list = batches_[bytes / kGranule];
  Free* now = nullptr;  // as it is, most likely, if they were just taken from there
  if (list.compare_exchange_strong(now, first, std::memory_order_acq_rel)) return;
  Free* last = first;
  while (last->next_batch != nullptr) last = last->next_batch;
  do {
    last->next_batch = now;
  } while (!list.compare_exchange_weak(now, first, std::memory_order_acq_rel));
}

void Arena::give_back(Local& local, void* memory, std::size_t bytes) noexcept {
  if (local.count >= batch_of(bytes)) {
    if (local.full != nullptr) {
      local.full->next_batch = nullptr;
      push_batches(local.full, bytes);
    }
    local.full = std::exchange(local.freed, nullptr);
    local.count = 0;
  }
  local.freed = new (memory) Free{local.freed, nullptr};
  ++local.count;
}

/// Memory that was never used: at least `least` bytes, up to `most` if there are as many. Empty if
/// the system has no more.
std::span<std::byte> Arena::carve(std::size_t least, std::size_t most) {
  return before_range_ != 0 ? carve_range(least, most) : carve_block(least, most);
}

std::span<std::byte> Arena::carve_range(std::size_t least, std::size_t most) {
  least = round_up(least, kCacheLine);
  most = std::max(least, most);
  std::size_t begin = carved_.load(std::memory_order_relaxed);
  for (;;) {
    const std::size_t bytes = std::min(most, range_size_ - begin);
    if (bytes < least) return {};
    // Before others can see that it is carved: so nothing is lost if the system has no more.
    if (!make_accessible(begin, begin + bytes)) return {};
    if (carved_.compare_exchange_weak(begin, begin + bytes, std::memory_order_relaxed))
      return {range_ + begin, bytes};
  }
}

/// Makes a part of the range accessible, with all of its blocks. Several threads may do so
/// concurrently, and none relies on another that has not finished.
bool Arena::make_accessible(std::size_t begin, std::size_t end) {
  const std::size_t already = accessible_.load(std::memory_order_acquire);
  if (end <= already) return true;
  const std::size_t first = std::max(already, begin / kBlock * kBlock);
  const std::size_t last = round_up(end, kBlock);
  if (mprotect(range_ + first, last - first, kAccess) != 0) return false;
  std::size_t before = accessible_.load(std::memory_order_relaxed);
  while (before >= first && before < last) {
    if (!accessible_.compare_exchange_weak(before, last, std::memory_order_acq_rel)) continue;
    if (before <= kBlock && last > kBlock) make_huge(range_);  // it was small until now
    break;
  }
  return true;
}

std::span<std::byte> Arena::carve_block(std::size_t least, std::size_t most) {
  const std::lock_guard lock(block_lock_);
  least = round_up(least, kCacheLine);
  if (static_cast<std::size_t>(slab_end_ - slab_) < least) {
    try {
      blocks_.reserve(blocks_.size() + 1);
      slab_ = map_huge(kBlock);
    } catch (const std::bad_alloc&) {
      return {};
    }
    if (blocks_.empty()) madvise(slab_, kBlock, MADV_NOHUGEPAGE);
    if (blocks_.size() == 1) make_huge(blocks_[0]);
    blocks_.push_back(slab_);
    slab_end_ = slab_ + kBlock;
  }
  const std::size_t bytes =
      std::min(std::max(least, most), static_cast<std::size_t>(slab_end_ - slab_));
  carved_.fetch_add(bytes, std::memory_order_relaxed);
  return {std::exchange(slab_, slab_ + bytes), bytes};
}

void* Arena::allocate_mapping(std::size_t bytes) {
  std::byte* const memory = bytes < kHugePage ? map(bytes) : map_huge(bytes);
  in_use_.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
  mappings_.fetch_add(bytes, std::memory_order_relaxed);
  return memory;
}

void Arena::release(void* memory, std::size_t bytes) noexcept {
  if (bytes > kLargestClass) {
    bytes = mapping_size(bytes);
    unmap(static_cast<std::byte*>(memory), bytes);
    in_use_.fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
    mappings_.fetch_sub(bytes, std::memory_order_relaxed);
    return;
  }
  bytes = round_up(bytes, kGranule);
  Stripe* stripe = nullptr;
  const auto lock = try_stripe(stripe);
  if (stripe == nullptr) {
    push_batches(new (memory) Free{nullptr, nullptr}, bytes);
    in_use_.fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
    return;
  }
  give_back(stripe->classes[bytes / kGranule], memory, bytes);
  stripe->in_use.fetch_sub(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
}

std::size_t Arena::bytes_in_use() const noexcept {
  std::int64_t bytes = in_use_.load(std::memory_order_relaxed);
  for (std::size_t i = 0; i < kArenaStripes; ++i)
    bytes += stripes_[i].in_use.load(std::memory_order_relaxed);
  return static_cast<std::size_t>(bytes);
}

std::size_t Arena::bytes_reserved() const noexcept {
  const std::size_t carved = carved_.load(std::memory_order_relaxed);
  return mappings_.load(std::memory_order_relaxed) +
         (carved <= kBlock ? carved : round_up(carved, kBlock));
}

}  // namespace perdix::detail::util
