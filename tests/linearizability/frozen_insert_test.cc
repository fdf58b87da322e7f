// One schedule of NbTree that random seeds hardly ever draw; the model found it. The replacement of
// a leaf freezes an insert that is about to yield to another insert of the same key. That other key
// is then erased, so the frozen insert succeeds after all. If the erase is not durable yet, a crash
// must not restore the other pair in its place.
#include <array>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include <perdix/papers/nbtree.h>
#include <perdix/pool.h>

#include "pm/probe.h"
#include "pool/claim_image.h"
#include "util/test_directory.h"

namespace perdix::testing {
namespace {

using Index = NbTree<std::uint64_t, std::uint64_t>;
using Word = std::uint64_t;

struct Event {
  enum { store, flush } what;
  std::uintptr_t address;
  std::size_t size;

  bool covers(std::uintptr_t word) const {
    return address / 64 <= word / 64 && word / 64 <= (address + size - 1) / 64;
  }
};

/// Whether a thread stops before the event.
using Condition = std::function<bool(const Event&)>;

/// Stops threads, and knows whether a word is durable.
class Director final : public detail::pm::Probe {
 public:
  static constexpr unsigned kThreads = 4;

  void enter(unsigned number, Condition condition) {
    const std::lock_guard lock(mutex_);
    for (Thread& thread : threads_) {
      if (thread.id == std::this_thread::get_id()) thread.id = {};  // of one that has ended
    }
    threads_[number] = {std::this_thread::get_id(), std::move(condition), false, {}};
  }

  /// The event that it has stopped before.
  Event await_stop(unsigned number) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return threads_[number].stopped; });
    return threads_[number].last;
  }

  void release(unsigned number, Condition condition) {
    const std::lock_guard lock(mutex_);
    threads_[number].condition = std::move(condition);
    threads_[number].stopped = false;
    changed_.notify_all();
  }

  /// From its next store on, asks when that is durable.
  void follow(std::uintptr_t word) {
    const std::lock_guard lock(mutex_);
    word_ = word;
    durable_ = true;
    flushed_ = {};
  }
  bool durable() {
    const std::lock_guard lock(mutex_);
    return durable_;
  }

  /// Of the word at an address in the pool.
  std::uint64_t offset(std::uintptr_t address) const { return address - base_; }

  void on_map(const void* base, std::size_t) override {
    base_ = reinterpret_cast<std::uintptr_t>(base);
  }
  void on_read(const void*, std::size_t) override {}
  void before_write(const void* p, std::size_t n) override {
    std::unique_lock lock(mutex_);
    pass(lock, {Event::store, reinterpret_cast<std::uintptr_t>(p), n});
  }
  void on_write(const void* p, std::size_t) override {
    const std::lock_guard lock(mutex_);
    if (reinterpret_cast<std::uintptr_t>(p) != word_) return;
    durable_ = false;
    flushed_ = {};
  }
  bool on_flush(const void* p, std::size_t n, const detail::pm::Site&) override {
    std::unique_lock lock(mutex_);
    const Event event{Event::flush, reinterpret_cast<std::uintptr_t>(p), n};
    const unsigned self = pass(lock, event);
    if (self < kThreads && event.covers(word_)) flushed_[self] = true;
    return true;
  }
  bool on_fence(const detail::pm::Site&) override {
    const std::lock_guard lock(mutex_);
    const unsigned self = number();
    if (self < kThreads && flushed_[self]) durable_ = true;
    return true;
  }

 private:
  struct Thread {
    std::thread::id id;
    Condition condition;
    bool stopped = false;
    Event last{};
  };

  unsigned number() const {
    unsigned i = 0;
    while (i < kThreads && threads_[i].id != std::this_thread::get_id()) ++i;
    return i;
  }

  unsigned pass(std::unique_lock<std::mutex>& lock, const Event& event) {
    const unsigned self = number();
    if (self == kThreads) return self;
    Thread& thread = threads_[self];
    if (thread.condition == nullptr || !thread.condition(event)) return self;
    thread.stopped = true;
    thread.last = event;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !thread.stopped; });
    return self;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::array<Thread, kThreads> threads_;
  std::array<bool, kThreads> flushed_{};
  std::uintptr_t base_ = 0;
  std::uintptr_t word_ = 0;
  bool durable_ = true;
};

/// Executes one operation in a separate thread, up to the step that the test allows.
class Actor {
 public:
  Actor(Director& director, unsigned number, Condition stop, std::function<bool()> act)
      : director_(director),
        number_(number),
        result_(std::async(std::launch::async, [&director, number, stop, act] {
          director.enter(number, stop);
          return act();
        })) {}

  Event wait() { return director_.await_stop(number_); }
  void go_on(Condition stop = nullptr) { director_.release(number_, std::move(stop)); }
  bool result() { return result_.get(); }

 private:
  Director& director_;
  unsigned number_;
  std::future<bool> result_;
};

Condition any(decltype(Event::what) what) {
  return [what](const Event& event) { return event.what == what; };
}
/// The first flush behind a store.
Condition persist() {
  return [stored = false](const Event& event) mutable {
    stored = stored || event.what == Event::store;
    return stored && event.what == Event::flush;
  };
}
Condition store_to(std::uintptr_t word) {
  return [word](const Event& event) { return event.what == Event::store && event.address == word; };
}

/// What links a new block: the first word that is stored after the entry has been frozen and the
/// block been copied.
Condition link_after_freezing(std::uintptr_t frozen) {
  return [frozen, steps = 0](const Event& event) mutable {
    if (event.what != Event::store) return false;
    if (steps == 0 && event.address == frozen) steps = 1;
    if (steps == 1 && event.size >= 512) steps = 2;
    return steps == 2 && event.size == sizeof(Word);
  };
}

PoolOptions options() {
  PoolOptions options;
  options.durability = Durability::process;
  options.domain = DomainChoice::memory_controller;
  options.max_size = std::uint64_t{64} << 20;
  return options;
}

TEST(FrozenInsert, SucceedsAnEntryThatNoCrashBringsBack) {
  constexpr std::uint64_t kLoaded = 45;  // the first leaf has 47 entries
  constexpr std::uint64_t kKey = 455;
  const testing_files::TempDirectory folder{testing_files::memory_directory()};
  const std::filesystem::path left = folder.path() / "left";
  Director director;
  detail::pm::Probe* const before = detail::pm::install_probe(&director);
  {
    Pool pool = Pool::create(folder.path() / "pool", options());
    Index index(pool, "t");
    for (std::uint64_t i = 1; i <= kLoaded; ++i) index.put(10 * i, i);

    Actor first(director, 0, any(Event::store), [&] { return index.insert(kKey, 1); });
    const std::uintptr_t entry = first.wait().address - sizeof(Word);  // the value comes first
    Actor second(director, 1, any(Event::flush), [&] { return index.insert(kKey, 2); });
    const std::uintptr_t entry_behind = second.wait().address;
    ASSERT_EQ(entry_behind, entry + 2 * sizeof(Word));
    first.go_on();
    ASSERT_TRUE(first.result());
    // It has seen that entry, and is about to give way.
    second.go_on(store_to(entry_behind));
    second.wait();

    const Word live = *reinterpret_cast<const Word*>(entry);
    director.follow(entry);
    // What it looks at first may not be durable, so it persists that.
    Actor eraser(director, 2, persist(), [&] { return index.erase(kKey); });
    eraser.wait();
    ASSERT_NE(*reinterpret_cast<const Word*>(entry), live);
    Actor replacer(director, 3, link_after_freezing(entry_behind),
                   [&] { return index.insert(5, 3); });
    replacer.wait();
    second.go_on();
    EXPECT_TRUE(second.result());

    std::filesystem::copy_file(folder.path() / "pool", left);
    if (!director.durable()) {
      std::fstream file(left, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(director.offset(entry)));
      file.write(reinterpret_cast<const char*>(&live), sizeof live);
      ASSERT_TRUE(file.flush());
    }
    eraser.go_on();
    EXPECT_TRUE(eraser.result());
    replacer.go_on();
    EXPECT_TRUE(replacer.result());
    EXPECT_EQ(index.get(kKey), 2);
  }
  detail::pm::install_probe(before);

  detail::pool::claim_image(left);
  Pool pool = Pool::open(left, options());
  Index index(pool, "t");
  EXPECT_EQ(index.get(kKey), 2) << "its insert had returned";
  for (const std::string& problem : index.check().problems) ADD_FAILURE() << problem;
}

}  // namespace
}  // namespace perdix::testing
