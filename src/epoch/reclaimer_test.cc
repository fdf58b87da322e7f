#include "epoch/reclaimer.h"

#include <atomic>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "epoch/guard.h"
#include "util/random.h"
#include "util/test_eventually.h"

namespace perdix::detail::epoch {
namespace {

void count_dispose(void* object, void* context) {
  delete static_cast<int*>(object);
  static_cast<std::atomic<int>*>(context)->fetch_add(1);
}

TEST(Reclaimer, DrainDisposesOfAllRetired) {
  std::atomic<int> disposed{0};
  Reclaimer reclaimer;
  for (int i = 0; i < 1000; ++i) reclaimer.retire(new int(i), count_dispose, &disposed);
  reclaimer.drain();
  EXPECT_EQ(disposed, 1000);
  EXPECT_EQ(reclaimer.pending(), 0u);
}

TEST(Reclaimer, BackgroundThreadNeedsNoHelp) {
  std::atomic<int> disposed{0};
  Reclaimer reclaimer;
  for (int round = 1; round <= 3; ++round) {  // it must wake up again after it has slept
    reclaimer.retire(new int(round), count_dispose, &disposed);
    util::eventually_reaches("the thread has disposed of what was retired", disposed, round);
  }
  const Reclaimer::Ticket ticket = reclaimer.ticket();
  util::eventually("a grace period has ended", [&] { return reclaimer.passed(ticket); });
}

TEST(Reclaimer, WithoutBackgroundThreadOnlyCallsEndGracePeriods) {
  std::atomic<int> disposed{0};
  Reclaimer reclaimer(false);
  reclaimer.retire(new int(1), count_dispose, &disposed);
  const Reclaimer::Ticket ticket = reclaimer.ticket();
  // As long as a thread takes for ten grace periods.
  std::atomic<int> elsewhere{0};
  Reclaimer with_thread;
  for (int round = 1; round <= 10; ++round) {
    with_thread.retire(new int(round), count_dispose, &elsewhere);
    util::eventually_reaches("another reclaimer's thread has disposed", elsewhere, round);
  }
  EXPECT_EQ(disposed, 0);
  EXPECT_FALSE(reclaimer.passed(ticket));
  reclaimer.settle();
  EXPECT_EQ(disposed, 1);
  EXPECT_TRUE(reclaimer.passed(ticket));
}

TEST(Reclaimer, AThreadInAGuardNeverWaits) {
  std::atomic<int> disposed{0};
  Reclaimer reclaimer(false);
  reclaimer.retire(new int(1), count_dispose, &disposed);
  const Reclaimer::Ticket ticket = reclaimer.ticket();
  {
    const Guard guard;
    EXPECT_FALSE(reclaimer.advance());
    EXPECT_FALSE(reclaimer.drain());
    EXPECT_FALSE(reclaimer.settle());
    EXPECT_EQ(reclaimer.pending(), 1u);
    EXPECT_FALSE(reclaimer.passed(ticket));
  }
  EXPECT_EQ(disposed, 0);
  EXPECT_TRUE(reclaimer.settle());
  EXPECT_EQ(disposed, 1);
}

TEST(Reclaimer, SettleLetsEveryTicketPass) {
  Reclaimer reclaimer;
  for (int i = 0; i < 100; ++i) {
    const Reclaimer::Ticket ticket = reclaimer.ticket();
    reclaimer.settle();
    EXPECT_TRUE(reclaimer.passed(ticket));
  }
}

struct Chain {
  Reclaimer* reclaimer;
  int left;
};

void retire_again(void* object, void* context) {
  auto* chain = static_cast<Chain*>(object);
  if (--chain->left > 0) chain->reclaimer->retire(object, retire_again, context);
}

TEST(Reclaimer, DestructorDisposesOfObjectsThatDisposeRetires) {
  Chain chain{nullptr, 5};
  {
    Reclaimer reclaimer;
    chain.reclaimer = &reclaimer;
    reclaimer.retire(&chain, retire_again, nullptr);
  }
  EXPECT_EQ(chain.left, 0);
}

// A thread that is inside a Guard until told otherwise.
class Reader {
 public:
  Reader()
      : thread_([this] {
          const Guard guard;
          inside_.release();
          leave_.acquire();
        }) {
    inside_.acquire();
  }
  void leave() {
    leave_.release();
    thread_.join();
  }

 private:
  std::binary_semaphore inside_{0};
  std::binary_semaphore leave_{0};
  std::thread thread_;
};

TEST(Reclaimer, NothingIsDisposedOfWhileAGuardMaySeeIt) {
  std::atomic<int> disposed{0};
  Reclaimer reclaimer;
  Reader reader;
  reclaimer.retire(new int(1), count_dispose, &disposed);
  const Reclaimer::Ticket ticket = reclaimer.ticket();
  std::atomic<bool> drained{false};
  std::thread drainer([&] {
    reclaimer.drain();
    drained = true;
  });
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(drained);
    EXPECT_EQ(disposed, 0);
    EXPECT_FALSE(reclaimer.passed(ticket));
    std::this_thread::yield();
  }
  reader.leave();
  drainer.join();
  EXPECT_EQ(disposed, 1);
  EXPECT_TRUE(reclaimer.passed(ticket));
}

TEST(Reclaimer, ALaterGuardDelaysNothing) {
  Reclaimer reclaimer;
  const Reclaimer::Ticket ticket = reclaimer.ticket();
  reclaimer.advance();
  Reader reader;
  EXPECT_TRUE(reclaimer.passed(ticket));
  EXPECT_FALSE(reclaimer.passed(reclaimer.ticket()));
  reader.leave();
}

// Readers follow a pointer that a writer keeps replacing. The sanitizers would see a use after the
// free.
TEST(Reclaimer, ReadersNeverSeeAFreedObject) {
  constexpr std::uint64_t kSeed = 3;
  Reclaimer reclaimer;
  std::atomic<std::uint64_t*> shared{new std::uint64_t(0)};
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      std::uint64_t last = 0;
      while (!stop) {
        const Guard guard;
        const std::uint64_t value = *shared.load(std::memory_order_acquire);
        ASSERT_GE(value, last);
        last = value;
      }
    });
  }
  util::Random random(kSeed);
  for (std::uint64_t value = 1; value <= 20'000; ++value) {
    auto* old = shared.exchange(new std::uint64_t(value), std::memory_order_acq_rel);
    reclaimer.retire(
        old,
        [](void* object, void*) {
          *static_cast<std::uint64_t*>(object) = 0;  // a reader that still looked here would see it
          delete static_cast<std::uint64_t*>(object);
        },
        nullptr);
    if (random.one_in(1000)) reclaimer.advance();
  }
  stop = true;
  for (auto& reader : readers) reader.join();
  delete shared.load();
}

// The use of tickets by an allocator: memory is reused in place once its ticket has passed.
TEST(Reclaimer, MemoryIsReusedAfterItsTicket) {
  struct Cell {
    std::uint64_t a = 0, b = 0;  // always equal while linked
  };
  Reclaimer reclaimer;
  Cell cells[2];
  std::atomic<Cell*> shared{&cells[0]};
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop) {
      const Guard guard;
      const Cell* cell = shared.load(std::memory_order_acquire);
      ASSERT_EQ(cell->a, cell->b);
    }
  });
  for (std::uint64_t i = 1; i <= 200; ++i) {
    Cell& spare = cells[i % 2];
    spare.a = i;
    spare.b = i;
    shared.store(&spare, std::memory_order_release);
    const Reclaimer::Ticket ticket = reclaimer.ticket();
    if (i % 4 == 0) reclaimer.advance();
    util::eventually("a grace period has ended", [&] { return reclaimer.passed(ticket); });
  }
  stop = true;
  reader.join();
}

}  // namespace
}  // namespace perdix::detail::epoch
