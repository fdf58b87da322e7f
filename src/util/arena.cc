#include "util/arena.h"

#include <sys/mman.h>

#include <cassert>
#include <mutex>
#include <new>
#include <utility>

namespace perdix::util {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = 2 * 1024 * 1024;

constexpr std::size_t round_up(std::size_t n, std::size_t unit) {
  return (n + unit - 1) / unit * unit;
}

constexpr int kAccess = PROT_READ | PROT_WRITE;

/// What is mapped without access are addresses only.
std::byte* map(std::size_t bytes, int access = kAccess) {
  void* p = mmap(nullptr, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(p);
}

void unmap(std::byte* p, std::size_t bytes) {
  if (bytes > 0) munmap(p, bytes);
}

// Maps more than is needed and cuts off both ends, since mmap aligns to small pages only.
std::byte* map_huge(std::size_t bytes, int access = kAccess) {
  std::byte* const mapped = map(bytes + kHugePage, access);
  const auto address = reinterpret_cast<std::uintptr_t>(mapped);
  const std::size_t head = round_up(address, kHugePage) - address;
  unmap(mapped, head);
  unmap(mapped + head + bytes, kHugePage - head);
  // Without huge pages everything still works, only slower.
  madvise(mapped + head, bytes, MADV_HUGEPAGE);
  return mapped + head;
}

std::size_t mapping_size(std::size_t bytes) {
  return round_up(bytes, bytes < kHugePage ? kPage : kHugePage);
}

/// As many addresses, or half of them, and so on: a limit on them is no reason to have none.
std::span<std::byte> reserve(std::size_t bytes) {
  constexpr std::size_t kLeast = std::size_t{64} << 20;
  for (bytes = round_up(bytes, kHugePage);; bytes = round_up(bytes / 2, kHugePage)) {
    try {
      return {map_huge(bytes, PROT_NONE), bytes};
    } catch (const std::bad_alloc&) {
      if (bytes <= kLeast) throw;
    }
  }
}

}  // namespace

Arena::Arena(std::size_t range) {
  assert(range <= kMostRange);
  const std::span<std::byte> addresses = reserve(range);
  before_range_ = reinterpret_cast<std::uintptr_t>(addresses.data()) - kGranule;
  range_ = addresses.data();
  range_end_ = range_ + addresses.size();
}

Arena::~Arena() {
  for (std::byte* block : blocks_) {
    if (block != nullptr) unmap(block, kBlock);
  }
  if (before_range_ == 0) return;
  auto* const begin = reinterpret_cast<std::byte*>(before_range_ + kGranule);
  unmap(begin, static_cast<std::size_t>(range_end_ - begin));
}

void* Arena::allocate(std::size_t bytes) {
  assert(bytes > 0);
  if (bytes > kLargestClass) return allocate_mapping(mapping_size(bytes));
  bytes = round_up(bytes, kGranule);
  const std::lock_guard guard(lock_);
  return take(classes_[bytes / kGranule], bytes);
}

void Arena::allocate(std::size_t bytes, std::span<void*> pieces) {
  assert(bytes > 0 && bytes <= kLargestClass);
  bytes = round_up(bytes, kGranule);
  const std::lock_guard guard(lock_);
  SizeClass& size_class = classes_[bytes / kGranule];
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    try {
      pieces[i] = take(size_class, bytes);
    } catch (const std::bad_alloc&) {
      while (i > 0) give_back(size_class, pieces[--i], bytes);
      throw;
    }
  }
}

/// A piece of the class. The caller holds the lock, here and below.
void* Arena::take(SizeClass& size_class, std::size_t bytes) {
  if (FreeChunk* chunk = size_class.freed) {
    size_class.freed = chunk->next;
    in_use_ += bytes;
    return chunk;
  }
  if (static_cast<std::size_t>(size_class.fresh_end - size_class.fresh) < bytes) refill(size_class);
  std::byte* const memory = size_class.fresh;
  size_class.fresh += bytes;
  in_use_ += bytes;
  return memory;
}

void Arena::refill(SizeClass& size_class) {
  if (slab_ == slab_end_) {
    slab_ = next_block();
    slab_end_ = slab_ + kBlock;
    reserved_ += kBlock;
  }
  size_class.fresh = slab_;
  size_class.fresh_end = slab_ + kSlab;
  slab_ += kSlab;
}

std::byte* Arena::next_block() {
  if (before_range_ == 0) {
    blocks_.push_back(nullptr);  // first, so that nothing can fail once the block is mapped
    return blocks_.back() = map_huge(kBlock);
  }
  if (range_ == range_end_ || mprotect(range_, kBlock, kAccess) != 0) throw std::bad_alloc();
  return std::exchange(range_, range_ + kBlock);
}

void Arena::give_back(SizeClass& size_class, void* memory, std::size_t bytes) noexcept {
  size_class.freed = new (memory) FreeChunk{size_class.freed};
  in_use_ -= bytes;
}

void* Arena::allocate_mapping(std::size_t bytes) {
  std::byte* const memory = bytes < kHugePage ? map(bytes) : map_huge(bytes);
  const std::lock_guard guard(lock_);
  in_use_ += bytes;
  reserved_ += bytes;
  return memory;
}

void Arena::release(void* memory, std::size_t bytes) noexcept {
  if (bytes > kLargestClass) {
    bytes = mapping_size(bytes);
    unmap(static_cast<std::byte*>(memory), bytes);
    const std::lock_guard guard(lock_);
    in_use_ -= bytes;
    reserved_ -= bytes;
    return;
  }
  bytes = round_up(bytes, kGranule);
  const std::lock_guard guard(lock_);
  give_back(classes_[bytes / kGranule], memory, bytes);
}

std::size_t Arena::bytes_in_use() const noexcept {
  const std::lock_guard guard(lock_);
  return in_use_;
}

std::size_t Arena::bytes_reserved() const noexcept {
  const std::lock_guard guard(lock_);
  return reserved_;
}

}  // namespace perdix::util
