// That budgets bound the DRAM of a cache, that which filling it takes among it. The program counts
// what operator new gives. Only in the instrumented build, which no sanitizer is in.
#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include <gtest/gtest.h>

#include "index/elf/test_elf.h"

namespace {

std::atomic<std::size_t> live{0};
std::atomic<std::size_t> peak{0};

void* counted(void* p) {
  if (p == nullptr) throw std::bad_alloc();
  const std::size_t now = live += malloc_usable_size(p);
  std::size_t before = peak;
  while (now > before && !peak.compare_exchange_weak(before, now)) continue;
  return p;
}

void release(void* p) {
  live -= p == nullptr ? 0 : malloc_usable_size(p);
  std::free(p);
}

}  // namespace

void* operator new(std::size_t n) { return counted(std::malloc(n)); }
void* operator new[](std::size_t n) { return counted(std::malloc(n)); }
void* operator new(std::size_t n, std::align_val_t alignment) {
  const auto a = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(a, (n + a - 1) / a * a));
}
void operator delete(void* p) noexcept { release(p); }
void operator delete[](void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t) noexcept { release(p); }
void operator delete[](void* p, std::size_t) noexcept { release(p); }
void operator delete(void* p, std::align_val_t) noexcept { release(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { release(p); }

namespace perdix::detail::index::elf {
namespace {

constexpr unsigned kDimensions = 6;

class Budgets : public ::testing::Test {
 protected:
  Budgets() {
    util::Random random(3);
    for (int i = 0; i < 60'000; ++i) {
      TestRow row(kDimensions);
      for (std::uint32_t& value : row) value = static_cast<std::uint32_t>(random.below(9));
      model_.add(row);
    }
    EXPECT_TRUE(build(*elf_, columns_of(model_, kDimensions)));
  }

  /// Bytes that a cache took at most.
  std::size_t peak_of(const CachePolicy& policy) {
    elf_->cache(CachePolicy::none());
    peak = live.load();
    const std::size_t before = peak;
    elf_->cache(policy);
    elf_->wait_for_cache();
    return peak - before;
  }

  Model model_;
  TestElf elf_{kDimensions, Shape{}};
};

// The counters of an Elf's queries take 64 KiB whatever the policy is.
TEST_F(Budgets, FillingTakesNotMuchMoreThanTheBudget) {
  constexpr std::size_t kBudget = 256 << 10;
  const std::size_t all = peak_of(CachePolicy::static_levels(kDimensions));
  ASSERT_GT(all, 12 * kBudget);
  for (const CachePolicy& policy :
       {CachePolicy::static_levels(kDimensions).within(kBudget), CachePolicy::probability(kBudget),
        CachePolicy::hybrid().within(kBudget)}) {
    EXPECT_LE(peak_of(policy), 3 * kBudget);
    EXPECT_GT(elf_->elf_stats().cache_bytes, kBudget / 2);
    EXPECT_LE(elf_->elf_stats().cache_bytes, kBudget);
  }
}

TEST_F(Budgets, AnEmptyDynamicCacheIsSmallAndCountsItsTable) {
  const std::uint64_t lists = elf_->elf_stats().elf_bytes;
  elf_->cache(CachePolicy::dynamic(CachePolicy::kUnlimited));
  EXPECT_GT(elf_->elf_stats().cache_bytes, lists / 64);
  EXPECT_LT(elf_->elf_stats().cache_bytes, lists / 4);
}

}  // namespace
}  // namespace perdix::detail::index::elf
