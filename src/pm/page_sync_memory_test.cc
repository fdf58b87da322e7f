// PageSync when there is no memory. This program has its own operator new and msync().
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

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

namespace perdix::detail::pm {
namespace {

// A thread has already stored what it flushes. If a flush or fence threw, nothing would undo that
// store.
TEST(PageSyncMemory, NothingIsAllocatedOnceThereIsAJournal) {
  constexpr std::size_t kBytes = 4 << 20, kData = 1 << 20;
  void* const memory =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* const base = static_cast<std::byte*>(memory);
  const auto word = [&](std::size_t i) {
    return reinterpret_cast<std::uint64_t*>(base + kData + 2 * i * kLineSize);
  };
  bool failed = false;
  PageSync pages([&] { failed = true; });
  no_memory = true;
  pages.note(word(0), 8);
  pages.sync();  // without a journal
  no_memory = false;
  EXPECT_EQ(syncs, 1U);
  pages.use_journal({base, 64 << 10, kData - (64 << 10), 4096});  // two halves, each for any batch
  no_memory = true;
  pages.start_journal();
  for (unsigned round = 0; round < 1000; ++round) {  // checkpoints among them
    for (std::size_t i = 0; i < 3 * PageNotes::kCapacity; ++i) pages.note(word(i), 8);
    pages.note(word(0), 8192);     // longer than most, in the batch
    pages.note(word(0), 1 << 20);  // is synced in its place
    for (std::size_t i = 0; i < PageNotes::kCapacity + 1; ++i) pages.store_for_all(*word(i), i);
    const Change change = set_word(*word(200), round);
    pages.commit({&change, 1});
  }
  pages.sync_in_place(base, 8);
  pages.checkpoint();
  no_memory = false;
  EXPECT_FALSE(failed);
  EXPECT_EQ(*word(200), 999U);
  ::munmap(memory, kBytes);
}

}  // namespace
}  // namespace perdix::detail::pm
