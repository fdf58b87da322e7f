// A relocation of ElimDa makes pairs valid in the PM table before it makes them invalid in the
// backup log. A crash may leave a pair valid in both. The next use of its bucket must clear the
// pair's bit in the log, durably before the call returns. Otherwise a second crash could restore
// the pair after it was erased.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <future>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/papers/elimda.h>
#include <perdix/pool.h>

#include "index/elimda/shape.h"
#include "index/elimda/test_traits.h"
#include "pm/probe.h"
#include "util/test_directory.h"

namespace perdix::testing {
namespace {

using Number = std::uint64_t;
using Index = ElimDa<Number, Number>;

/// Installed while it lives.
class QuietProbe : public detail::pm::Probe {
 public:
  QuietProbe() : before_(detail::pm::install_probe(this)) {}
  ~QuietProbe() override { detail::pm::install_probe(before_); }
  QuietProbe(const QuietProbe&) = delete;
  QuietProbe& operator=(const QuietProbe&) = delete;

  void on_read(const void*, std::size_t) override {}
  void on_write(const void*, std::size_t) override {}
  bool on_flush(const void*, std::size_t, const detail::pm::Site&) override { return true; }
  bool on_fence(const detail::pm::Site&) override { return true; }

 private:
  detail::pm::Probe* const before_;
};

/// Keeps the pool's file as it is when pairs are in both places for the first time.
class Photographer final : public QuietProbe {
 public:
  Photographer(std::filesystem::path pool, std::filesystem::path picture)
      : pool_(std::move(pool)), picture_(std::move(picture)) {}

  void on_step(const char* name) override {
    constexpr std::string_view kInBoth = "elimda: pairs are in the PM table and the backup log";
    if (name == kInBoth && !done()) std::filesystem::copy_file(pool_, picture_);
  }
  bool done() const { return std::filesystem::exists(picture_); }

 private:
  const std::filesystem::path pool_, picture_;
};

/// Follows the words that lose the bits of copies.
class Watcher final : public QuietProbe {
 public:
  unsigned dropped() const { return dropped_; }
  bool all_are_durable() const { return stored_.empty() && flushed_.empty(); }

  void on_step(const char* name) override {
    constexpr std::string_view kDropped = "elimda: a copy is dropped from the backup log";
    if (name != kDropped) return;
    ++dropped_;
    next_is_of_copy_ = true;
  }
  void on_write(const void* p, std::size_t) override {
    if (next_is_of_copy_) stored_.insert(static_cast<const std::byte*>(p));
    next_is_of_copy_ = false;
  }
  bool on_flush(const void* p, std::size_t n, const detail::pm::Site&) override {
    const auto* const begin = static_cast<const std::byte*>(p);
    const auto first = stored_.lower_bound(begin), last = stored_.lower_bound(begin + n);
    flushed_.insert(first, last);
    stored_.erase(first, last);
    return true;
  }
  bool on_fence(const detail::pm::Site&) override {
    flushed_.clear();
    return true;
  }

 private:
  unsigned dropped_ = 0;
  bool next_is_of_copy_ = false;
  std::set<const std::byte*> stored_, flushed_;
};

/// Knows the lines that were written and not flushed since, when pairs are in both places.
class UnflushedLines final : public QuietProbe {
 public:
  unsigned relocations() const { return relocations_; }
  std::size_t unflushed() const { return unflushed_; }

  void on_step(const char* name) override {
    constexpr std::string_view kInBoth = "elimda: pairs are in the PM table and the backup log";
    if (name != kInBoth) return;
    ++relocations_;
    unflushed_ += lines_.size();
  }
  void on_write(const void* p, std::size_t n) override {
    for (std::uintptr_t line = line_of(p, 0); line <= line_of(p, n - 1); ++line)
      lines_.insert(line);
  }
  bool on_flush(const void* p, std::size_t n, const detail::pm::Site&) override {
    for (std::uintptr_t line = line_of(p, 0); line <= line_of(p, n - 1); ++line) lines_.erase(line);
    return true;
  }

 private:
  static std::uintptr_t line_of(const void* p, std::size_t n) {
    return (reinterpret_cast<std::uintptr_t>(p) + n) / 64;
  }

  unsigned relocations_ = 0;
  std::size_t unflushed_ = 0;
  std::set<std::uintptr_t> lines_;
};

using detail::index::elimda::TestTraits;

ElimDaOptions options(detail::index::NamedOptions named = TestTraits::kTraits.small) {
  ElimDaOptions options = detail::index::options_of(TestTraits::kOptions, "elimda", named());
  options.resume_in_background = false;
  return options;
}

TEST(ElimDaCopies, AreDroppedDurably) {
  PoolOptions pool_options;
  pool_options.durability = Durability::process;
  pool_options.domain = DomainChoice::memory_controller;
  pool_options.max_size = std::uint64_t{64} << 20;
  const testing_files::TempDirectory folder{testing_files::memory_directory()};
  const auto path = folder.path() / "pool", picture = folder.path() / "picture";
  Number count = 0;
  {
    Photographer probe(path, picture);
    const Pool pool = Pool::create(path, pool_options);
    Index index(pool, "t", options());
    for (; !probe.done(); ++count) index.put(count, count + 1);
  }
  Watcher probe;
  const Pool pool = Pool::open(picture, pool_options);
  Index index(pool, "t", options());
  // The last put had not returned when the picture was taken.
  for (Number key = 0; key + 1 < count; ++key) {
    EXPECT_EQ(index.get(key), std::optional<Number>(key + 1));
    EXPECT_TRUE(probe.all_are_durable()) << key;
  }
  EXPECT_GT(probe.dropped(), 0U);
  EXPECT_EQ(index.check().problems, std::vector<std::string>());
}

/// Holds a thread that makes a segment warm before it reads the second bucket. Lets it go when
/// another thread has relocated that bucket's pairs and is about to make durable that their bits in
/// the backup log go, and waits until it has ended.
class LateResumer final : public QuietProbe {
 public:
  void hold(std::thread::id thread) { held_ = thread; }
  void await_hold() { holding_.get_future().wait(); }
  void end_of_thread() { ended_.set_value(); }
  bool was_released() const { return was_released_; }
  unsigned dropped() const { return dropped_; }

  void on_step(const char* name) override {
    const std::string_view step(name);
    if (is_held()) {
      if (step == "elimda: a bucket becomes warm") ++made_;
      if (step == "elimda: a copy is dropped from the backup log") ++dropped_;
    } else if (step == "elimda: pairs are in the PM table and the backup log") {
      in_both_ = true;
    }
  }
  void on_read(const void*, std::size_t) override {
    if (!is_held() || made_ != 1 || std::exchange(was_held_, true)) return;
    holding_.set_value();
    release_.get_future().wait();
  }
  bool on_flush(const void*, std::size_t, const detail::pm::Site&) override {
    release();
    return true;
  }
  bool on_commit(std::span<const detail::pm::Change>, const detail::pm::Site&) override {
    release();
    return true;
  }

 private:
  bool is_held() const { return std::this_thread::get_id() == held_; }
  void release() {
    if (is_held() || !std::exchange(in_both_, false)) return;
    was_released_ = true;
    release_.set_value();
    ended_.get_future().wait();
  }

  std::thread::id held_;
  unsigned made_ = 0, dropped_ = 0;  // by the held thread
  bool was_held_ = false;
  bool in_both_ = false, was_released_ = false;  // of the other thread
  std::promise<void> holding_, release_, ended_;
};

/// Numbers of the second bucket of one segment, whatever its depth, in an index that was made while
/// a probe watched.
std::vector<Number> numbers_of_one_bucket(std::size_t count) {
  const detail::index::elimda::Hasher hash_of(detail::pm::kWatchedHashSeed);
  std::vector<Number> numbers;
  for (Number number = 0; numbers.size() < count; ++number) {
    const auto hash = hash_of(number);
    if (hash.prefix(8) == 0 && hash.bucket(2) == 1) numbers.push_back(number);
  }
  return numbers;
}

// A thread that is late in making a segment warm finds pairs in the PM table that were relocated
// since, and their bits still set. Either this thread or the one that relocates clears a bit, and
// that one alone takes the pair from the unit's count. Otherwise the unit is used again while pairs
// in it count.
TEST(ElimDaCopies, AreForgottenOnceBesideARelocation) {
  for (const auto domain : {DomainChoice::memory_controller, DomainChoice::page_cache}) {
    PoolOptions pool_options;
    pool_options.durability = Durability::power;
    pool_options.domain = domain;
    pool_options.max_size = std::uint64_t{64} << 20;
    const testing_files::TempDirectory folder{testing_files::memory_directory()};
    const auto path = folder.path() / "pool";
    const std::vector<Number> numbers = numbers_of_one_bucket(16);
    {
      const Pool pool = Pool::create(path, pool_options);
      const QuietProbe probe;  // so that the index has the seed for which the numbers were chosen
      Index index(pool, "t", options());
      for (int i = 0; i < 4; ++i) index.put(numbers[i], i);
    }
    const Pool pool = Pool::open(path, pool_options);
    Index index(pool, "t", options());
    LateResumer probe;
    std::promise<void> begin;
    std::thread late([&, began = begin.get_future()]() mutable {
      began.wait();
      EXPECT_EQ(index.get(numbers[0]), std::optional<Number>(0));
      probe.end_of_thread();
    });
    probe.hold(late.get_id());
    begin.set_value();
    probe.await_hold();
    Number count = 4;
    for (; count < numbers.size() && !probe.was_released(); ++count)
      index.put(numbers[count], count);
    ASSERT_TRUE(probe.was_released()) << "no pair was relocated";
    late.join();
    EXPECT_EQ(probe.dropped(), 4U);
    EXPECT_EQ(index.check().problems, std::vector<std::string>());
    for (Number i = 0; i < count; ++i) EXPECT_EQ(index.get(numbers[i]), std::optional<Number>(i));
  }
}

// An opening in which pairs come straight moves the pairs of the logs to D-buckets, and those that
// find one full to any slots of the P-bucket: not in units, which are written past the caches.
TEST(ElimDaCopies, AreFlushedWhereLogsAreDrainedAndUnitsDoNotMatter) {
  PoolOptions pool_options;
  pool_options.durability = Durability::process;
  pool_options.max_size = std::uint64_t{64} << 20;
  const testing_files::TempDirectory folder{testing_files::memory_directory()};
  unsigned relocations = 0;
  for (Number count = 40; count < 80; ++count) {
    const auto path = folder.path() / std::to_string(count);
    {
      const Pool pool = Pool::create(path, pool_options);
      Index index(pool, "t", options());
      for (Number i = 0; i < count; ++i) index.insert_ahead(i, i);
    }
    PoolOptions volatile_caches = pool_options;
    volatile_caches.domain = DomainChoice::memory_controller;
    const Pool pool = Pool::open(path, volatile_caches);
    UnflushedLines probe;
    const Index index(pool, "t", options(TestTraits::kTraits.straight));
    relocations += probe.relocations();
    ASSERT_EQ(probe.unflushed(), 0u);
    for (Number i = 0; i < count; ++i) ASSERT_EQ(index.get(i), std::optional<Number>(i));
  }
  EXPECT_GT(relocations, 0u);
}

}  // namespace
}  // namespace perdix::testing
