// An SpTree whose DRAM side gets no memory, at any moment: a call that throws has changed nothing,
// and what was left out is done later. This program replaces malloc.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "index/common/test_pool.h"
#include "index/sptree/test_tree.h"

namespace {

/// What becomes of the calling thread's requests for memory: after `before` of them, `failing`
/// fail.
struct Failures {
  std::uint64_t before = 0;
  std::uint64_t failing = 0;
  std::uint64_t failed = 0;

  bool next() {
    if (failing == 0) return false;
    if (before > 0) return --before, false;
    --failing;
    ++failed;
    return true;
  }
};
thread_local Failures failures;

/// The first request of a thread that wants to be stopped waits until that is over.
thread_local bool wants_stop = false;
std::atomic<bool> stopped{false}, released{false};

void stop_here() {
  if (!wants_stop) return;
  wants_stop = false;
  stopped = true;
  stopped.notify_all();
  released.wait(false);
}

/// epoch::Reclaimer::retire() takes memory where nothing may fail: lists of objects of this size.
bool is_list_of_retired(std::size_t bytes) { return bytes % 24 == 0; }

}  // namespace

// Not inlined: the compiler would compare malloc with delete, and free with new.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  stop_here();
  if (!is_list_of_retired(bytes) && failures.next()) throw std::bad_alloc();
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

extern "C" void* mmap(void* address, std::size_t bytes, int access, int flags, int fd,
                      off_t offset) noexcept {
  if ((flags & MAP_ANONYMOUS) != 0 && failures.next()) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(::syscall(SYS_mmap, address, bytes, access, flags, fd, offset));
}

extern "C" int mprotect(void* address, std::size_t bytes, int access) noexcept {
  if (failures.next()) {
    errno = ENOMEM;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_mprotect, address, bytes, access));
}

namespace perdix::detail::index::sptree {
namespace {

template <class K>
class MemoryTree : public TestPool<MemoryTree<K>> {
 public:
  using Tree = sptree::Tree<K, std::string>;

  explicit MemoryTree(std::uint64_t budget) : budget_(budget) { open(); }

  void open() {
    SpTreeOptions options;
    options.dram_budget = budget_;
    options.resume_in_background = false;
    tree_.emplace(this->core().open_index("t", kEngineName, kKindOf<K>, Kind::bytes), options);
  }
  void close() { tree_.reset(); }
  void reopen() {
    this->reopen_pool();
    open();
  }

  Tree& operator*() { return *tree_; }
  Tree* operator->() { return &*tree_; }

 private:
  std::uint64_t budget_;
  std::optional<Tree> tree_;
};

template <class K>
K key_of(std::uint64_t number) {
  if constexpr (std::is_same_v<K, std::string>) {
    // Bounds of leaves are mappings of their own, so that many requests can fail.
    return std::string(number % 8 == 0 ? 10 : 4200, 'p') + fmt::format("{:08}", number);
  } else {
    return number << 40;
  }
}

template <class K>
class MemoryTest : public testing::Test {
 protected:
  using Model = std::map<K, std::string>;

  /// Calls change() with memory as `random` has it; whether it threw bad_alloc.
  template <class Change>
  bool fails(Change change) {
    failures = {random_() % 6, random_() % 3 == 0 ? 1000 : 1 + random_() % 2, 0};
    bool failed = false;
    try {
      change();
    } catch (const std::bad_alloc&) {
      failed = true;
    }
    refused_ += failures.failed;
    failures = {};
    return failed;
  }

  void step(MemoryTree<K>& tree, Model& model, bool grow) {
    const K key = key_of<K>(random_() % kKeys);
    const std::string value(random_() % 40, 'v');
    if (grow) {
      if (!fails([&] { tree->put(key, value); })) model[key] = value;
    } else {
      bool erased = false;
      if (!fails([&] { erased = tree->erase(key); })) {
        ASSERT_EQ(erased, model.erase(key) == 1);
      }
    }
    ASSERT_EQ(tree->contains(key), model.contains(key));
  }

  void run(std::uint64_t budget) {
    MemoryTree<K> tree(budget);
    Model model;
    for (int round = 0; round < 6 && !this->HasFatalFailure(); ++round) {
      for (int i = 0; i < 4000 && !this->HasFatalFailure(); ++i) step(tree, model, round % 3 != 2);
      expect_same(tree, model);
      tree.expect_sound_pool();
      tree.reopen();
      // Leaves come back as memory allows.
      for (int i = 0; i < 300; ++i) {
        const K key = key_of<K>(random_() % kKeys);
        bool there = false;
        if (fails([&] { there = tree->contains(key); })) there = tree->contains(key);
        ASSERT_EQ(there, model.contains(key));
      }
    }
    EXPECT_GT(refused_, 0u);
  }

  static constexpr std::uint64_t kKeys = 20'000;
  std::mt19937_64 random_{3};
  std::uint64_t refused_ = 0;
};

using Kinds = testing::Types<std::uint64_t, std::string>;
TYPED_TEST_SUITE(MemoryTest, Kinds);

TYPED_TEST(MemoryTest, ACallThatThrowsHasChangedNothing) { this->run(0); }

TYPED_TEST(MemoryTest, ACallThatThrowsHasChangedNothingWithBuffers) { this->run(kUnlimited); }

// A thread that stands still while it makes a leaf warm, for lack of a processor for example, keeps
// others only from the leaves of the same cold range. If it kept them from more, this would not
// end.
TEST(ColdLeaves, OfOtherGapsDoNotWaitForAThreadThatStandsStill) {
  MemoryTree<std::uint64_t> tree(kUnlimited);
  constexpr std::uint64_t kKeys = 20'000;
  for (std::uint64_t i = 0; i < kKeys; ++i) tree->put(2 * i, "value");
  // Each leaf has something in the log, for which memory is needed when it comes back.
  for (std::uint64_t i = 0; i < kKeys; i += 20) tree->put(2 * i + 1, "value");
  tree.reopen();
  EXPECT_TRUE(tree->contains(kKeys));  // two cold ranges
  std::thread still([&] {
    wants_stop = true;
    EXPECT_TRUE(tree->contains(kKeys / 2));
    wants_stop = false;
  });
  stopped.wait(false);
  for (std::uint64_t i = kKeys; i < 2 * kKeys; i += 100) EXPECT_TRUE(tree->contains(i));
  EXPECT_GT(tree->stats().leaves, 50u);
  released = true;
  released.notify_all();
  still.join();
  EXPECT_EQ(tree->size(), kKeys + kKeys / 20);
  tree.expect_sound();
}

}  // namespace
}  // namespace perdix::detail::index::sptree
