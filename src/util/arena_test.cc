#include "util/arena.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <new>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "util/random.h"

namespace perdix::detail::util {
namespace {

/// Calls of mprotect by threads with a Here wait as long as this lives.
class SuspendedCalls {
 public:
  struct Here {
    Here() { here = true; }
  };

  /// Calls start(), and waits until this many threads are suspended.
  template <class Start>
  SuspendedCalls(unsigned threads, const Start& start) {
    released = false;
    start();
    for (unsigned now = count; now != threads; now = count) count.wait(now);
  }
  SuspendedCalls(const SuspendedCalls&) = delete;
  SuspendedCalls& operator=(const SuspendedCalls&) = delete;
  ~SuspendedCalls() {
    released = true;
    released.notify_all();
  }

  static void suspend() {
    if (!here || released) return;
    ++count;
    count.notify_all();
    released.wait(false);
  }

 private:
  static thread_local bool here;
  static std::atomic<unsigned> count;
  static std::atomic<bool> released;
};
thread_local bool SuspendedCalls::here = false;
std::atomic<unsigned> SuspendedCalls::count{0};
std::atomic<bool> SuspendedCalls::released{true};

struct Piece {
  std::byte* memory;
  std::size_t bytes;
  int mark;
};

void fill(const Piece& piece) { std::memset(piece.memory, piece.mark, piece.bytes); }

/// Whether the first byte is the mark, and each other one is as the one before it.
bool intact(const Piece& piece) {
  return piece.memory[0] == static_cast<std::byte>(piece.mark) &&
         std::memcmp(piece.memory, piece.memory + 1, piece.bytes - 1) == 0;
}

std::size_t random_size(Random& random) {
  if (random.one_in(50)) return 1 + random.below(std::size_t{5} << 20);
  return 1 + random.below(random.one_in(2) ? 200 : 5000);
}

// Allocates and frees at random; every live piece keeps its bytes, so no two overlap.
void churn(Arena& arena, std::uint64_t seed, int steps) {
  Random random(seed);
  std::vector<Piece> live;
  for (int step = 0; step < steps; ++step) {
    if (live.size() < 100 || random.one_in(2)) {
      const std::size_t bytes = random_size(random);
      live.push_back({static_cast<std::byte*>(arena.allocate(bytes)), bytes,
                      static_cast<int>(random.below(256))});
      fill(live.back());
    } else {
      std::swap(live[random.below(live.size())], live.back());
      ASSERT_TRUE(intact(live.back())) << "seed " << seed << " step " << step;
      arena.release(live.back().memory, live.back().bytes);
      live.pop_back();
    }
  }
  for (const Piece& piece : live) {
    ASSERT_TRUE(intact(piece)) << "seed " << seed;
    arena.release(piece.memory, piece.bytes);
  }
}

TEST(Arena, PiecesNeverOverlap) {
  Arena arena;
  churn(arena, 1, 20'000);
  EXPECT_EQ(arena.bytes_in_use(), 0u);
}

TEST(Arena, ThreadsShareOneArena) {
  Arena arena;
  std::vector<std::thread> threads;
  for (std::uint64_t seed = 10; seed < 14; ++seed)
    threads.emplace_back([&, seed] { churn(arena, seed, 3'000); });
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(arena.bytes_in_use(), 0u);
}

TEST(Arena, AlignsBySize) {
  Arena arena;
  const std::map<std::size_t, std::size_t> alignments = {
      {1, 16},   {24, 16},   {64, 64},     {100, 16},
      {192, 64}, {4096, 64}, {4097, 4096}, {3 << 20, 2 << 20}};
  for (auto [bytes, alignment] : alignments) {
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.allocate(bytes)) % alignment, 0u) << bytes;
    }
  }
}

TEST(Arena, ReusesWhatWasReleased) {
  Arena arena;
  void* const first = arena.allocate(160);
  EXPECT_EQ(arena.bytes_in_use(), 160u);
  arena.release(first, 160);
  EXPECT_EQ(arena.allocate(155), first) << "155 rounds to the same class";
  EXPECT_EQ(arena.bytes_in_use(), 160u);
}

TEST(Arena, GivesManyPiecesAtOnce) {
  Arena arena;
  void* const released = arena.allocate(100);
  arena.release(released, 100);
  std::array<void*, 2000> pieces{};  // of several slabs
  arena.allocate(100, pieces);
  EXPECT_EQ(arena.bytes_in_use(), pieces.size() * 112);
  EXPECT_EQ(pieces[0], released);
  for (std::size_t i = 0; i < pieces.size(); ++i)
    fill({static_cast<std::byte*>(pieces[i]), 100, static_cast<int>(i % 250)});
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_TRUE(intact({static_cast<std::byte*>(pieces[i]), 100, static_cast<int>(i % 250)})) << i;
    arena.release(pieces[i], 100);
  }
  EXPECT_EQ(arena.bytes_in_use(), 0u);
}

TEST(Arena, ThirtyTwoBitsNameAPieceOfARange) {
  Arena arena(Arena::kMaxRange);
  churn(arena, 3, 3'000);
  std::map<Arena::Ref, void*> pieces;
  for (int i = 0; i < 100'000; ++i) {
    void* const piece = arena.allocate(16 * (1 + i % 10));
    const Arena::Ref ref = arena.ref(piece);
    EXPECT_NE(ref, 0u);
    EXPECT_EQ(arena.piece(ref), piece);
    EXPECT_TRUE(pieces.emplace(ref, piece).second);
  }
  EXPECT_EQ(arena.ref(nullptr), 0u);
  EXPECT_EQ(arena.piece(0), nullptr);
}

TEST(Arena, ARangeComesToAnEnd) {
  constexpr std::size_t kRange = std::size_t{4} << 20, kPiece = 4096;
  Arena arena(kRange);
  std::vector<void*> pieces(kRange / kPiece);
  for (void*& piece : pieces) piece = arena.allocate(kPiece);
  EXPECT_THROW(arena.allocate(kPiece), std::bad_alloc);
  arena.release(arena.allocate(2 * kPiece), 2 * kPiece);  // no piece of the range
  arena.release(pieces[0], kPiece);
  EXPECT_EQ(arena.allocate(kPiece), pieces[0]);
}

/// Ends the process: with 0 if there is an arena where the process may have 4 GiB of addresses
/// more.
[[noreturn]] void use_an_arena_of_few_addresses() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const std::size_t bytes =
      pages * static_cast<std::size_t>(getpagesize()) + (std::size_t{4} << 30);
  const rlimit limit{bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::_Exit(2);
  Arena arena(Arena::kMaxRange);
  std::memset(arena.allocate(16), 1, 16);
  std::_Exit(0);
}

TEST(Arena, ALimitOnAddressesLeavesASmallerRange) {
  EXPECT_EXIT(use_an_arena_of_few_addresses(), ::testing::ExitedWithCode(0), "");
}

TEST(Arena, ASmallOneStaysSmall) {
  for (const std::size_t range : {std::size_t{0}, Arena::kMaxRange}) {
    const auto arena = range == 0 ? std::make_unique<Arena>() : std::make_unique<Arena>(range);
    EXPECT_EQ(arena->bytes_reserved(), 0u);
    for (const std::size_t bytes : {16, 48, 80, 96, 400, 1344})
      std::memset(arena->allocate(bytes), 1, bytes);
    EXPECT_LE(arena->bytes_reserved(), 64u * 1024);
    for (int i = 0; i < 40'000; ++i) std::memset(arena->allocate(96), 1, 96);
    EXPECT_EQ(arena->bytes_reserved() % (2 << 20), 0u) << "whole huge pages";
    EXPECT_LE(arena->bytes_reserved(), std::size_t{6} << 20);
  }
}

TEST(Arena, AThreadUsesWhatAnotherReleases) {
  constexpr std::size_t kPiece = 96, kPieces = 1000;
  Arena arena(Arena::kMaxRange);
  std::size_t after_one_round = 0;
  for (int round = 0; round < 50; ++round) {
    std::vector<void*> pieces(kPieces);
    std::thread([&] {
      for (void*& piece : pieces) piece = arena.allocate(kPiece);
    }).join();
    std::thread([&] {
      for (void* piece : pieces) arena.release(piece, kPiece);
    }).join();
    if (round == 0) after_one_round = arena.bytes_reserved();
  }
  // A stripe keeps a batch or two, and there are sixteen.
  EXPECT_LE(arena.bytes_reserved(), 4 * after_one_round);
}

/// Threads that are stopped in the system call that makes memory accessible: more than there are
/// stripes, all of which they hold.
TEST(Arena, NoThreadWaitsForSuspendedThreads) {
  constexpr unsigned kThreads = 24;
  Arena arena(Arena::kMaxRange);
  {
    std::vector<std::jthread> threads;
    const SuspendedCalls suspended(kThreads, [&] {
      for (unsigned t = 0; t < kThreads; ++t) {
        threads.emplace_back([&] {
          const SuspendedCalls::Here here;
          arena.release(arena.allocate(64), 64);
        });
      }
    });
    churn(arena, 4, 5'000);
  }
  EXPECT_EQ(arena.bytes_in_use(), 0u);
}

TEST(Arena, ReturnsLargeMappingsAtOnce) {
  Arena arena;
  const std::size_t bytes = (std::size_t{4} << 20) + 1;
  void* const memory = arena.allocate(bytes);
  EXPECT_EQ(arena.bytes_in_use(), std::size_t{6} << 20);
  EXPECT_EQ(arena.bytes_reserved(), std::size_t{6} << 20);
  arena.release(memory, bytes);
  EXPECT_EQ(arena.bytes_reserved(), 0u);
}

}  // namespace
}  // namespace perdix::detail::util

/// In place of the C library's: the arena calls it.
extern "C" int mprotect(void* begin, std::size_t bytes, int access) noexcept {
  perdix::detail::util::SuspendedCalls::suspend();
  return static_cast<int>(syscall(SYS_mprotect, begin, bytes, access));
}
