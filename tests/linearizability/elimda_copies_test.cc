// A relocation of ElimDa makes pairs valid in the PM table before it makes them invalid in the
// backup log. A crash may leave a pair valid in both. The next use of its bucket must clear the
// pair's bit in the log, durably before the call returns. Otherwise a second crash could restore
// the pair after it was erased.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/elimda.h>
#include <perdix/pool.h>

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

IndexOptions options() {
  IndexOptions options = *detail::index::elimda::TestTraits::kTraits.small;
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

}  // namespace
}  // namespace perdix::testing
