// Writers on all stripes, with a thread that ends chains, takes checkpoints and reclaims, and
// readers that look for the chains of before a restart.
#include <atomic>
#include <thread>
#include <vector>

#include "epoch/guard.h"
#include "util/random.h"
#include "util/spin_lock.h"
#include "wal/log.h"
#include "wal/test_log.h"

namespace perdix::detail::wal {
namespace {

constexpr unsigned kWriters = 3;
constexpr std::size_t kBuffers = 64;

/// A write buffer as an index has it: a chain, and what it holds.
struct Buffer {
  util::SpinLock lock;
  Chain chain;
  Owner owner = 0;
  Changes changes;               // guarded by lock
  std::vector<pm::Offset> blob;  // guarded by lock; at most one: the record of the last session's
};

class LogStress : public ::testing::Test {
 protected:
  LogStress() : buffers_(kBuffers) {
    open();
    log_->resumed();
  }

  void open() {
    fixture_.open_log();
    log_ = &fixture_.log();
    for (std::size_t i = 0; i < kBuffers; ++i) {
      Buffer& buffer = buffers_[i];
      buffer.owner = i + 1;
      log_->add(buffer.chain);
    }
  }

  void write(unsigned thread, unsigned operations) {
    util::Random random(thread + 1);
    for (unsigned i = 0; i < operations; ++i) {
      Buffer& buffer = buffers_[random.below(kBuffers)];
      util::Backoff backoff;
      while (!log_->admit()) backoff.pause();
      if (random.one_in(8)) {
        put_blob(buffer, random());
      } else {
        const std::lock_guard guard(buffer.lock);
        if (random.one_in(20)) {
          finish(buffer);
        } else {
          own(buffer);
          const Word key = random();
          log_->append(buffer.chain, Type::put, key, i);
          buffer.changes.emplace_back(Type::put, key, i);
        }
      }
    }
  }

  void put_blob(Buffer& buffer, Word key) {
    const std::lock_guard guard(buffer.lock);
    own(buffer);
    alloc::Session session = fixture_.pool().allocator().session();
    const pm::Offset blob = session.reserve(64);
    for (const pm::Offset old : buffer.blob) session.free(old);
    log_->append(buffer.chain, Type::put, key, blob, session);
    buffer.changes.emplace_back(Type::put, key, blob);
    buffer.blob = {blob};
  }

  /// Under the lock.
  static void own(Buffer& buffer) {
    if (buffer.chain.owner.load() == 0) buffer.chain.assign(buffer.owner);
  }

  /// Under the lock.
  void finish(Buffer& buffer) {
    log_->end(buffer.chain);
    buffer.chain.assign(0);
    buffer.changes.clear();
  }

  /// Before resumed(): the buffer's chain goes on, and is written to.
  void adopt(Buffer& buffer, const Changes& before) {
    ASSERT_TRUE(log_->admit());
    const std::lock_guard guard(buffer.lock);
    const Position head = log_->surviving(buffer.owner);
    ASSERT_EQ(head == 0, before.empty());
    if (head == 0) return;
    log_->adopt(buffer.chain, buffer.owner, head);
    buffer.changes = before;
    log_->append(buffer.chain, Type::erase_key, 1, 2);
    buffer.changes.emplace_back(Type::erase_key, 1, 2);
  }

  void maintain(const std::atomic<bool>& done) {
    while (!done.load()) {
      while (Chain* chain = log_->crowded() ? log_->oldest() : nullptr) {
        const Owner owner = chain->owner.load();
        if (owner == 0) continue;  // ended in between
        Buffer& buffer = buffers_[owner - 1];
        const std::lock_guard guard(buffer.lock);
        finish(buffer);
      }
      log_->checkpoint();
      log_->reclaim();
      std::this_thread::yield();
    }
  }

  template <class Work>
  void run_threads(Work work) {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kWriters; ++i) threads.emplace_back([=] { work(i); });
    for (std::thread& thread : threads) thread.join();
  }

  void expect_all_there() {
    std::vector<pm::Offset> blobs;
    for (Buffer& buffer : buffers_) {
      blobs.insert(blobs.end(), buffer.blob.begin(), buffer.blob.end());
    }
    EXPECT_EQ(fixture_.problems(blobs), Strings{});
    for (Buffer& buffer : buffers_) {
      EXPECT_EQ(fixture_.read_from(buffer.owner, buffer.chain.head.load()), buffer.changes);
    }
  }

  Fixture fixture_;
  std::deque<Buffer> buffers_;
  Log* log_ = nullptr;
};

TEST_F(LogStress, WritersMaintenanceAndReclamation) {
  std::atomic<bool> done{false};
  std::thread maintenance([&] { maintain(done); });
  run_threads([this](unsigned thread) { write(thread, 30'000); });
  done = true;
  maintenance.join();
  expect_all_there();
  EXPECT_GT(log_->appended(), 60'000u);
}

// Else a record could lie behind the tails, and the next one of its chain, in another stripe,
// before them: recovery would not find the chain's end (W4).
TEST_F(LogStress, TheTailsOfACheckpointAreThoseOfOneMoment) {
  for (unsigned round = 0; round < 400; ++round) {
    std::atomic<unsigned> writing{kWriters};
    std::vector<std::thread> threads;
    for (unsigned thread = 0; thread < kWriters; ++thread) {
      threads.emplace_back([&, thread] {
        Buffer& buffer = buffers_[thread];
        const std::lock_guard guard(buffer.lock);
        own(buffer);
        for (unsigned i = 0; i < 100; ++i) {
          log_->go_to(i * 5 % kStripes);
          EXPECT_TRUE(log_->admit());
          log_->append(buffer.chain, Type::put, i, round);
        }
        --writing;
      });
    }
    while (writing != 0) log_->checkpoint();
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(fixture_.problems(), Strings{}) << "round " << round;
    for (unsigned thread = 0; thread < kWriters; ++thread) finish(buffers_[thread]);
    log_->checkpoint();
    log_->reclaim();
    ASSERT_TRUE(log_->admit());
  }
}

TEST_F(LogStress, AfterARestartReadersFollowWhileChainsAreAdoptedAndWrittenTo) {
  run_threads([this](unsigned thread) { write(thread, 2'000); });
  std::vector<Changes> before;
  for (Buffer& buffer : buffers_) before.push_back(buffer.changes);
  // New chains: those of the log before it are gone with it.
  std::deque<Buffer> old;
  old.swap(buffers_);
  buffers_.resize(kBuffers);
  for (std::size_t i = 0; i < kBuffers; ++i) buffers_[i].blob = old[i].blob;
  open();
  std::atomic<bool> done{false};
  std::thread reader([&] {
    util::Random random(99);
    while (!done.load()) {
      const Owner owner = 1 + random.below(kBuffers);
      const epoch::Guard guard;
      const Position head = log_->surviving(owner);
      std::size_t records = 0;
      log_->follow(owner, head, [&](Type, Word, Word, Position) { ++records; });
      EXPECT_TRUE(records == before[owner - 1].size() || head == 0 || !log_->resuming());
    }
  });
  run_threads([&](unsigned thread) {
    for (std::size_t i = thread; i < kBuffers; i += kWriters) adopt(buffers_[i], before[i]);
  });
  log_->resumed();
  std::thread maintenance([&] { maintain(done); });
  run_threads([this](unsigned thread) { write(thread + kWriters, 10'000); });
  done = true;
  reader.join();
  maintenance.join();
  expect_all_there();
}

}  // namespace
}  // namespace perdix::detail::wal
