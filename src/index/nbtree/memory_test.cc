// NbTree when the system has no more memory for an index: what a call throws, it has not done.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <limits>
#include <map>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "index/nbtree/test_tree.h"
#include "util/random.h"

namespace perdix::detail::index::nbtree {
namespace {

/// While it lives, no memory becomes accessible.
class NoMoreMemory {
 public:
  NoMoreMemory() { active = true; }
  NoMoreMemory(const NoMoreMemory&) = delete;
  NoMoreMemory& operator=(const NoMoreMemory&) = delete;
  ~NoMoreMemory() { active = false; }

  static std::atomic<bool> active;
};
std::atomic<bool> NoMoreMemory::active{false};

/// All that an arena has, but for `left` pieces of each size, as long as this lives.
class Taken {
 public:
  Taken(util::Arena& arena, unsigned left) : arena_(arena) {
    for (std::size_t bytes = 4096; bytes > 0; bytes -= util::Arena::kGranule) {
      const std::size_t before = pieces_.size();
      try {
        for (;;) pieces_.emplace_back(arena.allocate(bytes), bytes);
      } catch (const std::bad_alloc&) {
      }
      for (unsigned i = 0; i < left && pieces_.size() > before; ++i) release_one();
    }
  }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  ~Taken() {
    while (!pieces_.empty()) release_one();
  }

 private:
  void release_one() {
    arena_.release(pieces_.back().first, pieces_.back().second);
    pieces_.pop_back();
  }

  util::Arena& arena_;
  std::vector<std::pair<void*, std::size_t>> pieces_;
};

template <class Kinds>
class NbTreeMemory : public ::testing::Test {};

using MemoryKinds =
    ::testing::Types<std::pair<std::uint64_t, std::uint64_t>, std::pair<std::uint64_t, std::string>,
                     std::pair<std::string, std::uint64_t>, std::pair<std::string, std::string>>;
TYPED_TEST_SUITE(NbTreeMemory, MemoryKinds);

template <class T>
T datum(std::uint64_t number) {
  if constexpr (std::is_same_v<T, std::string>) {
    return std::to_string(number);
  } else {
    return number;
  }
}

/// Puts or erases at random, and expects what throws to have changed nothing. Returns how many
/// calls threw.
template <class K, class V>
unsigned change(TestTree<K, V>& tree, std::map<K, V>& model, util::Random& random, int steps) {
  unsigned failed = 0;
  for (int step = 0; step < steps; ++step) {
    const K key = datum<K>(random.below(6000));
    const V value = datum<V>(random());
    const bool erase = random.one_in(3);
    try {
      if (erase) {
        const bool erased = tree->erase(key);
        EXPECT_EQ(erased, model.erase(key) > 0);
      } else {
        tree->put(key, value);
        model[key] = value;
      }
    } catch (const std::bad_alloc&) {
      ++failed;
      const auto expected = model.find(key);
      EXPECT_EQ(tree->get(key),
                expected == model.end() ? std::nullopt : std::optional<V>(expected->second));
    }
  }
  return failed;
}

TYPED_TEST(NbTreeMemory, ACallThatThrowsHasChangedNothing) {
  using K = typename TypeParam::first_type;
  using V = typename TypeParam::second_type;
  TestTree<K, V> tree;
  std::map<K, V> model;
  util::Random random(7);
  EXPECT_EQ(change(tree, model, random, 5000), 0u);
  unsigned failed = 0;
  for (unsigned left = 0; left < 12; ++left) {
    {
      const NoMoreMemory none;
      const Taken taken(tree.arena(), left);
      failed += change(tree, model, random, 2000);
    }
    EXPECT_EQ(change(tree, model, random, 300), 0u) << "there is memory again";
    tree.core().reclaimer().drain();
  }
  EXPECT_GT(failed, 0u);
  EXPECT_EQ(change(tree, model, random, 5000), 0u);
  expect_same(tree, model);
  for (const auto& [key, value] : model) EXPECT_TRUE(tree.finds_leaf_at_once(key));
  tree.expect_sound_pool();
  expect_same(tree, model);
}

/// Mappings of the size that the bounds of the test below have.
struct LongBounds {
  static constexpr std::size_t kBytes = 5000, kMapping = 8192;
  static std::atomic<int> left;   ///< how many more there may be
  static std::atomic<int> there;  ///< how many there are
};
std::atomic<int> LongBounds::left{std::numeric_limits<int>::max()};
std::atomic<int> LongBounds::there{0};

/// Each bound in turn is the one for which there is no memory when the leaves come back.
TEST(NbTreeOpening, KeepsNoMemoryWhenLeavesCannotComeBackForWantOfMemory) {
  TestTree<std::string, std::uint64_t> tree;
  std::map<std::string, std::uint64_t> model;
  for (std::uint64_t i = 100; i < 600; ++i) {
    const std::string key = std::string(LongBounds::kBytes - 3, 'k') + std::to_string(i);
    tree->put(key, model[key] = i);
  }
  const int bounds = LongBounds::there;
  EXPECT_GT(bounds, 5);
  for (int enough = 0; enough < bounds; ++enough) {
    tree.reopen_cold();
    EXPECT_EQ(LongBounds::there, 0) << enough;
    LongBounds::left = enough;
    EXPECT_THROW(tree->size(), std::bad_alloc) << enough;
    EXPECT_EQ(LongBounds::there, enough);
    LongBounds::left = std::numeric_limits<int>::max();
    tree->get(model.rbegin()->first);  // beside those that have come back
  }
  tree.reopen_cold();
  EXPECT_EQ(tree->size(), model.size());
  EXPECT_EQ(LongBounds::there, bounds);
  expect_same(tree, model);
  tree.expect_sound_pool();
}

/// A split that has no memory for the bound of its new leaf gives back all that it has taken.
TEST(NbTreeSplit, KeepsNoMemoryWhenItFailsForWantOfMemory) {
  TestTree<std::string, std::uint64_t> tree;
  unsigned failed = 0;
  for (std::uint64_t i = 100; i < 600; ++i) {
    const std::string key = std::string(LongBounds::kBytes - 3, 'k') + std::to_string(i);
    tree.core().reclaimer().drain();
    const std::size_t before = tree.dram_in_use();
    LongBounds::left = 0;
    try {
      tree->put(key, i);
    } catch (const std::bad_alloc&) {
      ++failed;
      EXPECT_EQ(tree.dram_in_use(), before) << i;
    }
    LongBounds::left = std::numeric_limits<int>::max();
    tree->put(key, i);
  }
  EXPECT_GT(failed, 5u);
  EXPECT_EQ(tree->size(), 500u);
  tree.expect_sound_pool();
}

/// What an opening has built goes with it if it finds damage at its end.
TEST(NbTreeOpening, KeepsNoMemoryWhenItFailsForDamage) {
  TestTree<std::string, std::uint64_t> tree;
  for (std::uint64_t i = 100; i < 600; ++i)
    tree->put(std::string(LongBounds::kBytes - 3, 'k') + std::to_string(i), i);
  tree.claim_and_forget(100, kOperationStripes);  // so that opening reads all leaves
  tree.lead_round();
  EXPECT_THROW(tree.reopen_cold(), Error);
  EXPECT_EQ(LongBounds::there, 0);
}

}  // namespace
}  // namespace perdix::detail::index::nbtree

/// In place of the C library's: the arena calls them, and other files are mapped by them as well.
extern "C" void* mmap(void* at, std::size_t bytes, int access, int flags, int file,
                      off_t offset) noexcept {
  using perdix::detail::index::nbtree::LongBounds;
  const bool counts = file == -1 && bytes == LongBounds::kMapping;
  if (counts && --LongBounds::left < 0) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  void* const memory =
      reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, access, flags, file, offset));
  if (counts) ++LongBounds::there;
  return memory;
}
extern "C" int munmap(void* memory, std::size_t bytes) noexcept {
  using perdix::detail::index::nbtree::LongBounds;
  if (bytes == LongBounds::kMapping) --LongBounds::there;
  return static_cast<int>(syscall(SYS_munmap, memory, bytes));
}

/// In place of the C library's: the arena calls it.
extern "C" int mprotect(void* begin, std::size_t bytes, int access) noexcept {
  if (perdix::detail::index::nbtree::NoMoreMemory::active) {
    errno = ENOMEM;
    return -1;
  }
  return static_cast<int>(syscall(SYS_mprotect, begin, bytes, access));
}
