// A budget of DRAM for write buffers is a bound in resident bytes, the bookkeeping of buffers
// included, and buffers for some of the leaves do not cost more merges than they save.
//
// What an index takes with a budget is compared with what it takes without one. The rest it needs
// anyway: latches, the layers above the leaves, the tables of the allocator.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <perdix/cceh.h>
#include <perdix/papers/fastfair.h>
#include <perdix/papers/skiplist.h>
#include <perdix/pool.h>
#include <perdix/sptree.h>

#include "index/common/test_options.h"
#include "pm/probe.h"
#include "util/random.h"
#include "util/test_directory.h"

namespace perdix {
namespace {

using Number = std::uint64_t;
using testing_files::TempDirectory;

constexpr Number kKeys = 120'000;

/// What a budget may be exceeded by: what an index with buffers needs however small the budget is
/// (the log's marks, the locks of ranges, the heads of lists), and what the system rounds up.
constexpr Number kFixed = 64 << 10;
constexpr Number with_slack(Number budget) { return budget + kFixed + budget / 20; }

/// Bytes of memory of this process that is mapped from no file.
std::optional<Number> resident() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    Number kib = 0;
    if (word == "RssAnon:" && status >> kib) return kib << 10;
  }
  return std::nullopt;
}

/// Calls in a process of its own, which has no memory left from others; returns the result.
template <class Call>
Number in_child(Call call) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) std::abort();
  const pid_t child = ::fork();
  if (child == 0) {
    const Number result = call();
    ::_exit(::write(ends[1], &result, sizeof result) == sizeof result ? 0 : 1);
  }
  Number result = 0;
  const bool complete = ::read(ends[0], &result, sizeof result) == sizeof result;
  int status = 0;
  ::waitpid(child, &status, 0);
  for (const int end : ends) ::close(end);
  EXPECT_TRUE(complete && status == 0);
  return result;
}

template <class Index>
void fill(Index& index) {
  detail::util::Random random(7);
  for (Number i = 0; i < kKeys; ++i) index.put(random(), i);
}

/// Memory that an index of kKeys random keys takes.
template <class Index>
Number taken(const detail::index::BufferOptions& options) {
  return in_child([&] {
    const TempDirectory folder{testing_files::memory_directory()};
    Pool pool = Pool::create(folder.path() / "pool");
    const Number before = *resident();
    Index index(pool, "i", options);
    fill(index);
    return *resident() - before;
  });
}

template <class I, Technique technique>
struct Case {
  using Index = I;
  /// Without the thread that brings an index back after a restart, whose stack counts as memory.
  static detail::index::BufferOptions options(Number budget) {
    return {.dram_budget = budget, .technique = technique, .resume_in_background = false};
  }
  /// What buffers for all leaves take.
  static Number full() {
    const auto dram = [](Number budget) {
      return in_child([&] {
        const TempDirectory folder{testing_files::memory_directory()};
        Pool pool = Pool::create(folder.path() / "pool");
        Index index(pool, "i", options(budget));
        fill(index);
        return index.stats().dram_bytes;
      });
    };
    return dram(kUnlimited) - dram(0);
  }
};

template <class C>
class BudgetTest : public testing::Test {};

template <template <class, class> class Index, Technique technique>
using CaseOf = Case<Index<Number, Number>, technique>;

using Cases = testing::Types<CaseOf<Cceh, Technique::b>, CaseOf<Cceh, Technique::boc>,
                             CaseOf<FastFair, Technique::b>, CaseOf<FastFair, Technique::boc>,
                             CaseOf<SkipList, Technique::b>, CaseOf<SkipList, Technique::boc>,
                             CaseOf<SpTree, Technique::none>>;
TYPED_TEST_SUITE(BudgetTest, Cases);

TYPED_TEST(BudgetTest, IsABoundInResidentBytes) {
  if (!resident()) GTEST_SKIP() << "memory cannot be measured here";
  using Index = typename TypeParam::Index;
  const Number full = TypeParam::full();
  // Where memory lies, and so how many pages it touches, is chance: the least of a few counts.
  const auto more_with = [&](Number budget) {
    Number least = ~Number{0};
    for (int attempt = 0; attempt < 5 && least > with_slack(budget); ++attempt) {
      const Number none = taken<Index>(TypeParam::options(0));
      const Number all = taken<Index>(TypeParam::options(budget));
      least = std::min(least, all - std::min(all, none));
    }
    return least;
  };
  const auto expect_bounded = [&](Number budget) {
    const Number more = more_with(budget);
    fmt::print("budget {}: {} more than without\n", budget, more);
    EXPECT_LE(more, with_slack(budget));
  };
  for (const Number tiny : {Number{1}, Number{600}, Number{9216}, Number{64} << 10})
    expect_bounded(tiny);
  for (const Number percent : {10, 25, 50, 75}) expect_bounded(full * percent / 100);
}

/// How often buffers were merged.
class CountsMerges final : public detail::pm::Probe {
 public:
  void on_read(const void* /*p*/, std::size_t /*n*/) override {}
  void on_write(const void* /*p*/, std::size_t /*n*/) override {}
  bool on_flush(const void* /*p*/, std::size_t /*n*/, const detail::pm::Site& /*site*/) override {
    return true;
  }
  bool on_fence(const detail::pm::Site& /*site*/) override { return true; }
  void on_step(const char* name) override {
    if (std::string_view(name).ends_with("a merge ends a chain")) ++merges_;
  }
  Number merges() const { return merges_; }

 private:
  std::atomic<Number> merges_{0};
};

/// Pairs that were put for each merge of a buffer.
template <class Index>
Number puts_for_a_merge(const detail::index::BufferOptions& options) {
  return in_child([&] {
    const TempDirectory folder{testing_files::memory_directory()};
    CountsMerges counted;
    Pool pool = Pool::create(folder.path() / "pool");
    Index index(pool, "i", options);
    detail::pm::Probe* const before = detail::pm::install_probe(&counted);
    fill(index);
    detail::pm::install_probe(before);
    return kKeys / std::max<Number>(counted.merges(), 1);
  });
}

TYPED_TEST(BudgetTest, BuysBuffersThatFillBeforeTheyAreMerged) {
  using Index = typename TypeParam::Index;
  const Number full = TypeParam::full();
  const Number all = puts_for_a_merge<Index>(TypeParam::options(kUnlimited));
  for (const Number percent : {10, 25, 50, 75}) {
    const Number some = puts_for_a_merge<Index>(TypeParam::options(full * percent / 100));
    fmt::print("{} %: a merge for {} puts, of {} with all buffers\n", percent, some, all);
    EXPECT_GE(5 * some, all);
  }
}

}  // namespace
}  // namespace perdix
