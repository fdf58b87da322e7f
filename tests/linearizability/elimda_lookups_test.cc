// ElimDa's promise that lookups never wait. A writer stops for good at an event, in turn at each
// event of its operations. Lookups of all keys must still return, with the right results. The
// writes fill logs, relocate buckets, split segments and get more logs, so the writer stops while
// it holds any of their locks.
#include <array>
#include <filesystem>
#include <future>
#include <optional>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <perdix/papers/elimda.h>
#include <perdix/pool.h>

#include "index/elimda/test_traits.h"
#include "suspender.h"
#include "util/test_directory.h"
#include "util/test_eventually.h"

namespace perdix::testing {
namespace {

using Number = std::uint64_t;
using Index = ElimDa<Number, Number>;

constexpr Number kStay = 60, kCome = 40;

ElimDaOptions small_options(bool growing) {
  using detail::index::elimda::TestTraits;
  const auto named = growing ? TestTraits::kTraits.growing : TestTraits::kTraits.small;
  ElimDaOptions options = detail::index::options_of(TestTraits::kOptions, "elimda", named());
  options.resume_in_background = false;
  return options;
}

/// Keys below kStay are there all the time, kCome others come, and some of those go.
void write(Index& index) {
  for (Number i = kStay; i < kStay + kCome; ++i) {
    index.insert_ahead(i, i);
    index.insert_ahead(i % kStay, 0);  // a duplicate, without effect
    if (i % 4 == 0 && i > kStay) index.erase(i - 2);
    if (i % 5 == 0) index.update(i, i);
  }
}

/// Whether all that stays is there, and nothing that was never written.
bool read(const Index& index) {
  bool right = true;
  for (Number i = 0; i < kStay; ++i) right &= index.get(i) == std::optional<Number>(i + 1);
  for (Number i = 0; i < kStay; ++i) right &= !index.contains(1000 + i);
  std::vector<Number> keys(kStay);
  for (Number i = 0; i < kStay; ++i) keys[i] = i;
  std::vector<std::optional<Number>> values(kStay);
  index.get_many(keys, values);
  for (Number i = 0; i < kStay; ++i) right &= values[i] == std::optional<Number>(i + 1);
  Number shown = 0;
  index.for_each([&](Number key, Number value) {
    right &= key >= kStay || value == key + 1;
    shown += key < kStay ? 1 : 0;
    return true;
  });
  return right && shown == kStay;
}

class ElimDaLookups : public ::testing::TestWithParam<std::tuple<DomainChoice, bool, bool>> {};

TEST_P(ElimDaLookups, WaitForNoWriter) {
  const auto [domain, cold, growing] = GetParam();
  PoolOptions options;
  options.durability = Durability::process;
  options.domain = domain;
  options.max_size = std::uint64_t{64} << 20;
  const testing_files::TempDirectory folder{testing_files::memory_directory()};
  std::uint64_t suspensions = 0;
  for (std::uint64_t event = 1;; event += 1 + event / 16) {
    SCOPED_TRACE(fmt::format("suspended at event {}", event));
    const std::filesystem::path path = folder.path() / fmt::format("pool-{}", event);
    const Pool pool = Pool::create(path, options);
    std::filesystem::remove(path);  // it stays until it is closed
    std::optional<Index> index(std::in_place, pool, "t", small_options(growing));
    for (Number i = 0; i < kStay; ++i) index->put(i, i + 1);
    if (cold) {
      index.reset();
      index.emplace(pool, "t", small_options(growing));
    }
    Suspender probe;
    probe.count_steps(true);
    detail::pm::Probe* const before = detail::pm::install_probe(&probe);
    bool suspended = false;
    std::thread writer([&] {
      probe.watch(event);
      write(*index);
      suspended = probe.end();
    });
    probe.wait_for_suspension();
    auto reader = std::async(std::launch::async, [&] { return read(*index); });
    EXPECT_TRUE(detail::util::comes_about([&] { return detail::util::is_ready(reader); }))
        << "a lookup waits for the suspended writer";
    probe.release();
    writer.join();
    EXPECT_TRUE(reader.get());
    detail::pm::install_probe(before);
    EXPECT_EQ(index->check().problems, std::vector<std::string>());
    if (HasFailure()) return;
    if (!suspended) break;  // there are no more events
    ++suspensions;
  }
  EXPECT_GE(suspensions, 50u);
}

INSTANTIATE_TEST_SUITE_P(Domains, ElimDaLookups,
                         ::testing::Combine(::testing::Values(DomainChoice::cpu_cache,
                                                              DomainChoice::memory_controller),
                                            ::testing::Bool(), ::testing::Bool()));

}  // namespace
}  // namespace perdix::testing
