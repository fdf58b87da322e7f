// PageSync when there is no memory. This program has its own operator new and msync().
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "pm/page_sync.h"

namespace {

std::atomic<bool> no_memory{false};
std::atomic<unsigned> syncs{0};

}  // namespace

void* operator new(std::size_t bytes) {
  void* const memory = no_memory ? nullptr : std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

extern "C" int msync(void* address, std::size_t n, int flags) {
  ++syncs;
  return static_cast<int>(::syscall(SYS_msync, address, n, flags));
}

namespace perdix::pm {
namespace {

// What a thread flushes it has stored: a flush that threw would leave that, undone by nobody.
TEST(PageSyncMemory, WhatCanNotBeNotedIsSyncedAtOnce) {
  constexpr std::size_t kPage = 4096;
  void* const page =
      ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  bool failed = false;
  PageSync pages([&] { failed = true; });
  no_memory = true;
  pages.note(page, 8);
  no_memory = false;
  EXPECT_EQ(syncs, 1U);
  pages.sync();
  EXPECT_EQ(syncs, 1U) << "nothing is left to be synced";
  pages.note(page, 8);
  EXPECT_EQ(syncs, 1U);
  pages.sync();
  EXPECT_EQ(syncs, 2U);
  EXPECT_FALSE(failed);
  ::munmap(page, kPage);
  no_memory = true;
  pages.note(page, 8);
  no_memory = false;
  EXPECT_TRUE(failed) << "the kernel syncs no page that is not mapped";
}

}  // namespace
}  // namespace perdix::pm
