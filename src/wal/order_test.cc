// In which order the log does what no crash of a single thread shows. Only in the instrumented
// build.
#include <functional>
#include <utility>

#include <gtest/gtest.h>

#include "pm/probe.h"
#include "wal/test_log.h"

namespace perdix::detail::wal {
namespace {

/// Calls a function once, when what has been flushed is about to be fenced.
class BeforeAFence final : public pm::Probe {
 public:
  explicit BeforeAFence(std::function<void()> call)
      : call_(std::move(call)), previous_(pm::install_probe(this)) {}
  BeforeAFence(const BeforeAFence&) = delete;
  BeforeAFence& operator=(const BeforeAFence&) = delete;
  ~BeforeAFence() override { pm::install_probe(previous_); }

  void on_read(const void*, std::size_t) override {}
  void on_write(const void*, std::size_t) override {}
  bool on_flush(const void*, std::size_t, const pm::Site&) override { return true; }
  bool on_fence(const pm::Site&) override {
    if (const auto call = std::exchange(call_, nullptr)) call();
    return true;
  }

 private:
  std::function<void()> call_;
  pm::Probe* previous_;
};

TEST(LogOrder, AChainHoldsItsRecordsBackUntilItsEndIsDurable) {
  for (const bool at_home : {true, false}) {
    SCOPED_TRACE(at_home ? "the END is in the stripe that the chain began in" : "elsewhere");
    constexpr unsigned kHome = 0;
    Fixture fixture;
    fixture.put_at(kHome, 1, 1, 1);
    for (Word i = 0; i < 8 * kSegmentSize / sizeof(Record); ++i) fixture.put_at(kHome, 2, i, i);
    fixture.end(2);
    fixture.log().checkpoint();
    fixture.log().reclaim();
    const std::uint64_t before = fixture.log().bytes_used();

    fixture.log().go_to(at_home ? kHome : kHome + 1);
    std::uint64_t meanwhile = 0;
    {
      const BeforeAFence probe([&] {
        fixture.log().reclaim();
        meanwhile = fixture.log().bytes_used();
      });
      fixture.end(1);
    }
    EXPECT_GE(meanwhile, before);
    fixture.log().reclaim();
    EXPECT_LT(fixture.log().bytes_used() + kSegmentSize, before) << "else nothing was held back";
    EXPECT_EQ(fixture.problems(), Strings{});
  }
}

}  // namespace
}  // namespace perdix::detail::wal
