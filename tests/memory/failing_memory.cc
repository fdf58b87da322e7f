#include "memory/failing_memory.h"

#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace perdix::test {
namespace {

// Operators new belong to the process, so what they look at does too.
constinit std::atomic<bool> armed{false};
constinit std::atomic<std::uint64_t> first{0};
constinit std::atomic<std::uint64_t> count{0};
constinit std::atomic<bool> onwards{false};
constinit std::atomic<bool> of_others{false};
constinit std::atomic<bool> failed{false};
thread_local constinit bool is_caller = false;
constinit std::atomic<std::int64_t> held{0};

bool fails() noexcept {
  if (!armed.load(std::memory_order_acquire) || is_caller == of_others.load()) return false;
  const std::uint64_t number = count.fetch_add(1) + 1;
  const bool fail = number == first.load() || (onwards.load() && number > first.load());
  if (fail) failed = true;
  return fail;
}

void* allocate(std::size_t size, std::size_t alignment) noexcept {
  if (fails()) return nullptr;
  if (size == 0) size = 1;
  void* const memory =
      alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__
          ? std::malloc(size)
          : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  held += static_cast<std::int64_t>(malloc_usable_size(memory));
  return memory;
}

void release(void* memory) noexcept {
  held -= static_cast<std::int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  if (void* const memory = allocate(size, alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

FailingMemory::FailingMemory(std::uint64_t n, Failing which) {
  first = n;
  onwards = which.count == Failing::Count::onwards;
  of_others = which.threads == Failing::Threads::others;
  count = 0;
  failed = false;
  is_caller = true;
  armed = true;
}

FailingMemory::~FailingMemory() {
  stop();
  is_caller = false;
}

void FailingMemory::stop() noexcept { armed = false; }

bool FailingMemory::hit() noexcept { return failed; }

std::int64_t held_bytes() noexcept { return held; }

}  // namespace perdix::test

using perdix::test::allocate;
using perdix::test::allocate_or_throw;
using perdix::test::release;

void* operator new(std::size_t size) { return allocate_or_throw(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return allocate(size, 1); }
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
