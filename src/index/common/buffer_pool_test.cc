// Which nodes get a write buffer: every node while buffers are left, then those that are written to
// more often.
#include "index/common/buffer_pool.h"

#include <array>
#include <bit>
#include <optional>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "index/common/write_buffer.h"
#include "util/test_eventually.h"

namespace perdix::detail::index {
namespace {

struct Owner {};

struct Shape {
  using Node = Owner;

  class Slots {
   public:
    static constexpr unsigned kWords = 2;
    Slots() = default;
    explicit Slots(std::array<std::uint64_t, kWords> words) : words_(words) {}
    std::uint64_t word(unsigned i) const { return words_[i]; }
    unsigned count() const {
      return static_cast<unsigned>(std::popcount(words_[0]) + std::popcount(words_[1]));
    }

   private:
    std::array<std::uint64_t, kWords> words_{};
  };

  static constexpr unsigned kPairs = 28;
  static constexpr unsigned kSlots = 128;
  static constexpr unsigned kNumberBits = 22;

  static std::uint8_t fingerprint(Hash16 hash) { return static_cast<std::uint8_t>(hash); }
};

using Pool = BufferPool<WriteBuffer<Shape>>;

class BufferPoolTest : public testing::Test {
 protected:
  Pool::Number acquire_for(Owner& owner) {
    const Pool::Number number = pool_.acquire(0);
    if (number != 0) pool_.at(number).node.store(&owner);
    return number;
  }

  util::Arena arena_;
  std::set<const Pool::Buffer*> made_;
  Pool pool_{arena_, [this](Pool::Buffer& buffer) { made_.insert(&buffer); }};
  Owner owner_;
};

TEST_F(BufferPoolTest, GivesAsManyAsTheBudgetAllows) {
  EXPECT_EQ(pool_.acquire(0), 0u) << "none without a budget";
  pool_.set_budget(600 * Pool::kBytesEach + 1);
  std::set<Pool::Number> numbers;
  while (const Pool::Number number = pool_.acquire(0)) EXPECT_TRUE(numbers.insert(number).second);
  EXPECT_EQ(numbers.size(), 600u);
  EXPECT_FALSE(numbers.contains(0));
  for (const Pool::Number number : numbers) EXPECT_TRUE(made_.contains(&pool_.at(number)));
  EXPECT_NE(pool_.acquire_beyond_budget(0), 0u) << "what survived a restart must go somewhere";
  pool_.release(*numbers.begin());
  EXPECT_EQ(pool_.acquire(0), 0u) << "that one was over the budget";
  pool_.release(*numbers.rbegin());
  EXPECT_NE(pool_.acquire(0), 0u);
}

TEST_F(BufferPoolTest, GivesThePreferredBufferIfItIsFree) {
  constexpr Pool::Number kBudget = 600, kPreferred = 555;
  pool_.set_budget(kBudget * Pool::kBytesEach);
  EXPECT_EQ(pool_.acquire(kPreferred), kPreferred);
  EXPECT_TRUE(made_.contains(&pool_.at(kPreferred)));
  std::set<Pool::Number> others;
  for (Pool::Number i = 1; i < kBudget; ++i) {
    const Pool::Number number = pool_.acquire(i % 2 == 0 ? kPreferred : 0);
    EXPECT_NE(number, kPreferred);
    EXPECT_TRUE(others.insert(number).second) << number << " was given away twice";
  }
  EXPECT_EQ(pool_.acquire(0), 0u);
  EXPECT_EQ(made_.size(), kBudget) << "none that the budget does not allow";
  pool_.release(kPreferred);
  EXPECT_EQ(pool_.acquire(kPreferred), kPreferred) << "again";
}

TEST_F(BufferPoolTest, GivesAPreferredAndReleasedBufferOnce) {
  pool_.set_budget(4 * Pool::kBytesEach);
  for (int round = 0; round < 1000; ++round) {
    EXPECT_EQ(pool_.acquire(3), 3u);
    const Pool::Number other = pool_.acquire(0);
    EXPECT_NE(other, 3u);
    pool_.release(3);
    pool_.release(other);
  }
  EXPECT_EQ(pool_.in_use(), 0u);
  EXPECT_EQ(made_.size(), 4u);
}

TEST(BufferPoolChunks, FewBuffersTakeLittleMemoryWhateverTheBudget) {
  util::Arena arena;
  std::size_t made = 0;
  Pool pool(arena, [&](Pool::Buffer&) { ++made; });
  pool.set_budget(~std::uint64_t{0});
  EXPECT_NE(pool.acquire(0), 0u);
  EXPECT_EQ(made, Pool::kChunk);
  EXPECT_LE(arena.bytes_in_use(), std::size_t{64} << 10);
}

TEST(BufferPoolAhead, MakesASlabReadyWhenHalfOfTheOneBeforeIsTaken) {
  constexpr std::size_t kSlabBytes = std::size_t{4} << 20;  // a mapping of huge pages
  util::Arena arena;
  std::size_t made = 0;
  std::optional<Pool> pool(std::in_place, arena, [&](Pool::Buffer&) { ++made; });
  pool->set_budget(~std::uint64_t{0});
  std::set<Pool::Number> numbers;
  const auto take_until = [&](std::size_t count) {
    while (numbers.size() < count) EXPECT_TRUE(numbers.insert(pool->acquire(0)).second);
  };
  take_until(Pool::kSlab / 2);
  EXPECT_EQ(arena.bytes_in_use(), made * sizeof(Pool::Buffer));
  take_until(Pool::kSlab / 2 + 1);
  util::eventually_reaches(
      "a thread has made the next slab ready", [&] { return arena.bytes_in_use(); },
      made * sizeof(Pool::Buffer) + kSlabBytes);
  take_until(Pool::kSlab);
  EXPECT_EQ(made, Pool::kSlab) << "the slab has no place yet";
  take_until(Pool::kSlab + 1);
  EXPECT_EQ(made, 2 * Pool::kSlab);
  EXPECT_EQ(arena.bytes_in_use(), Pool::kSlab * sizeof(Pool::Buffer) + kSlabBytes)
      << "the one that was ready";
  take_until(Pool::kSlab + Pool::kSlab / 2 + 1);
  pool.reset();
  EXPECT_EQ(arena.bytes_in_use(), 0u) << "also what was ready and not needed";
}

TEST(BufferPoolAhead, MakesNoSlabBeyondTheBudget) {
  constexpr std::size_t kSlabs = 8;
  util::Arena arena;
  Pool pool(arena, [](Pool::Buffer&) {});
  pool.set_budget(kSlabs * Pool::kSlab * Pool::kBytesEach);
  while (pool.acquire(0) != 0) {
  }
  EXPECT_EQ(pool.in_use(), kSlabs * Pool::kSlab);
  EXPECT_LE(arena.bytes_in_use(), kSlabs * Pool::kSlab * Pool::kBytesEach);
}

/// Of buffers of 9 KiB.
struct LargeShape : Shape {
  static constexpr unsigned kPairs = 510;
  static constexpr unsigned kSlots = 1020;
};

template <class P>
void expect_bound(std::uint64_t budget) {
  constexpr std::size_t kPage = 4096;
  util::Arena arena;
  P pool(arena, [](auto&) {});
  pool.set_budget(budget);
  while (pool.acquire(0) != 0) {
  }
  EXPECT_LE(pool.in_use() * P::kBytesEach, budget);
  EXPECT_GT((pool.in_use() + 1) * P::kBytesEach, budget) << "as many as the budget buys";
  EXPECT_LE(arena.bytes_in_use(), budget + kPage) << budget;
}

TEST(BufferPoolBudget, IsABoundInBytesWhateverTheSizeOfABuffer) {
  using LargePool = BufferPool<WriteBuffer<LargeShape>>;
  for (const std::uint64_t budget : {1, 1000, 9000, 20'000, 100'000, 1'000'000, 6'000'000}) {
    expect_bound<Pool>(budget);
    expect_bound<LargePool>(budget);
  }
  expect_bound<LargePool>(50'000'000);  // with slabs
}

TEST(BufferPoolBudget, BuffersBeyondItHaveLaterNumbers) {
  util::Arena arena;
  Pool pool(arena, [](Pool::Buffer&) {});
  constexpr Pool::Number kBudget = Pool::kChunk + 1;
  pool.set_budget(kBudget * Pool::kBytesEach);
  std::set<const Pool::Buffer*> buffers;
  Owner owner;
  for (Pool::Number i = 0; i < 3 * Pool::kChunk; ++i) {
    Pool::Buffer& buffer = pool.at(pool.acquire_beyond_budget(0));
    buffer.node.store(&owner);
    buffers.insert(&buffer);
  }
  EXPECT_EQ(buffers.size(), 3 * Pool::kChunk);
  std::size_t visited = 0;
  pool.for_each_used([&](Pool::Buffer& buffer) { visited += buffers.count(&buffer); });
  EXPECT_EQ(visited, buffers.size());
  for (Pool::Number i = 0; i < 8 * Pool::kChunk; ++i) {
    if (const Pool::Number cold = pool.cold()) {
      EXPECT_TRUE(buffers.contains(&pool.at(cold)));
    }
  }
}

TEST_F(BufferPoolTest, AChangeNeedsOneLineBesidesThatOfItsPair) {
  pool_.set_budget(Pool::kBytesEach);
  const Pool::Buffer& buffer = pool_.at(pool_.acquire(0));
  const auto line = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) / 64; };
  EXPECT_EQ(line(&buffer.owner), line(&buffer.head));
  EXPECT_EQ(line(&buffer.node), line(&buffer.head)) << "and so what lies between";
  EXPECT_EQ(line(&buffer.records), line(&buffer.head));
  EXPECT_EQ(line(&buffer.hot), line(&buffer.head));
}

TEST_F(BufferPoolTest, AsksForLinesOfAnyBuffer) {
  pool_.set_budget(600 * Pool::kBytesEach);
  for (Pool::Number number = 1; number <= 600; ++number) pool_.prefetch(number);
  EXPECT_TRUE(made_.empty()) << "it makes none";
}

TEST_F(BufferPoolTest, OffersBuffersWithoutWriters) {
  pool_.set_budget(8 * Pool::kBytesEach);
  std::vector<Pool::Number> numbers;
  for (int i = 0; i < 8; ++i) numbers.push_back(acquire_for(owner_));
  const auto offered_while_hot = [&](Pool::Number hot) {
    std::multiset<Pool::Number> offered;
    for (int i = 0; i < 2000; ++i) {
      pool_.at(hot).hot.store(true);
      if (const Pool::Number cold = pool_.cold()) offered.insert(cold);
    }
    return offered;
  };
  const auto offered = offered_while_hot(numbers[3]);
  EXPECT_EQ(offered.count(numbers[3]), 0u);
  for (const Pool::Number number : numbers) {
    if (number != numbers[3]) {
      EXPECT_GT(offered.count(number), 0u) << number;
    }
  }
}

TEST_F(BufferPoolTest, OffersNoFreeBuffer) {
  EXPECT_EQ(pool_.cold(), 0u);
  pool_.set_budget(4 * Pool::kBytesEach);
  const Pool::Number mine = acquire_for(owner_);
  pool_.acquire(0);  // by a thread that has not said for which node
  for (int i = 0; i < 1000; ++i) {
    const Pool::Number cold = pool_.cold();
    EXPECT_TRUE(cold == 0 || cold == mine);
  }
}

}  // namespace
}  // namespace perdix::detail::index
