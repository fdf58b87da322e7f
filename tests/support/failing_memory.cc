#include "support/failing_memory.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace perdix::test {
namespace {

// Operators new belong to the process, so what they look at does too.
std::atomic<bool> armed{false};
std::atomic<bool> onwards{false};
std::atomic<std::uint64_t> first{0};
std::atomic<std::uint64_t> count{0};
std::atomic<bool> failed{false};
thread_local int pauses = 0;

bool fails() noexcept {
  if (!armed.load(std::memory_order_acquire) || pauses > 0) return false;
  const std::uint64_t number = count.fetch_add(1, std::memory_order_relaxed) + 1;
  const bool fail = number == first || (onwards && number > first);
  if (fail) failed = true;
  return fail;
}

void* allocate(std::size_t size, std::size_t alignment) noexcept {
  if (fails()) return nullptr;
  if (size == 0) size = 1;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(size);
  return std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
}

void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  if (void* memory = allocate(size, alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

FailingMemory::FailingMemory(std::uint64_t n, Failing which) {
  first = n;
  onwards = which == Failing::onwards;
  count = 0;
  failed = false;
  armed = true;
}

FailingMemory::~FailingMemory() { armed = false; }

bool FailingMemory::hit() noexcept { return failed; }

FailingMemory::Pause::Pause() noexcept { ++pauses; }
FailingMemory::Pause::~Pause() { --pauses; }

}  // namespace perdix::test

using perdix::test::allocate;
using perdix::test::allocate_or_throw;

void* operator new(std::size_t size) { return allocate_or_throw(size, 1); }
void* operator new[](std::size_t size) { return allocate_or_throw(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size, 1); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept { return allocate(size, 1); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
