// What is durable before what, where a crash that shows it is rare. Only in the instrumented build.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "index/tips/plugins.h"
#include "index/tips/test_tips.h"
#include "pm/probe.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {
namespace {

/// Knows which lines one thread has stored to and not made durable, and looks at each store.
class Lines final : public pm::Probe {
 public:
  using Look = std::function<void(const void* stored)>;

  explicit Lines(Look look) : look_(std::move(look)), previous_(pm::install_probe(this)) {}
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;
  ~Lines() override { pm::install_probe(previous_); }

  /// All bytes of [p, p + n) that were stored are durable.
  bool are_durable(const void* p, std::size_t n) const {
    const auto at = states_.lower_bound(first_line(p));
    return at == states_.end() || at->first >= reinterpret_cast<std::uintptr_t>(p) + n;
  }

  void on_read(const void*, std::size_t) override {}
  void on_write(const void* p, std::size_t n) override {
    look_(p);
    for_each_line(p, n, [&](std::uintptr_t line) { states_[line] = State::stored; });
  }
  bool on_flush(const void* p, std::size_t n, const pm::Site&) override {
    for_each_line(p, n, [&](std::uintptr_t line) {
      if (const auto at = states_.find(line); at != states_.end()) at->second = State::flushed;
    });
    return true;
  }
  bool on_fence(const pm::Site&) override {
    std::erase_if(states_, [](const auto& line) { return line.second == State::flushed; });
    return true;
  }

 private:
  enum class State { stored, flushed };

  static std::uintptr_t first_line(const void* p) {
    return reinterpret_cast<std::uintptr_t>(p) / pm::kLineSize * pm::kLineSize;
  }
  template <class Use>
  static void for_each_line(const void* p, std::size_t n, const Use& use) {
    for (std::uintptr_t at = first_line(p); at < reinterpret_cast<std::uintptr_t>(p) + n;
         at += pm::kLineSize)
      use(at);
  }

  Look look_;
  std::map<std::uintptr_t, State> states_;  // of those that are not durable
  pm::Probe* previous_;
};

class TipsOrder : public TipsTest {
 protected:
  static PoolOptions options() {
    PoolOptions options;
    options.max_size = std::uint64_t{64} << 20;
    options.domain = DomainChoice::memory_controller;
    return options;
  }

  static void put(Core& core, U64 key, const std::string& value) {
    core.write(Operation::put, std::string(Raw<U64>(key).bytes()), value, nullptr, nullptr);
  }

  static constexpr Kinds kKinds{Kind::u64, Kind::bytes};

  Pool pool_ = Pool::create(path_, options());
  pool::IndexHandle handle_ = pool_.core()->open_index("t", "tips:btree", Kind::u64, Kind::bytes);
  const Plugin& plugin_ = *look_up_plugin("btree", Kind::u64);
};

// The memory of a new index may hold anything: what others have left there.
TEST_F(TipsOrder, ANewIndexIsDurableBeforeItsRoot) {
  pool::PoolCore& pool = *pool_.core();
  unsigned looks = 0;
  const Lines* lines = nullptr;
  const Lines probe([&](const void* stored) {
    if (stored != &handle_.root() || handle_.root() == pm::kNull) return;
    ++looks;
    const Header& header = *pool.at<Header>(handle_.root());
    EXPECT_TRUE(lines->are_durable(&header, sizeof header));
    EXPECT_TRUE(lines->are_durable(&header + 1, plugin_.object_bytes));
    EXPECT_TRUE(lines->are_durable(pool.at<LogBlock>(header.undo), sizeof(LogBlock)));
    EXPECT_TRUE(lines->are_durable(pool.at<LogBlock>(header.memory), kMemoryBytes));
  });
  lines = &probe;
  const Core core(pool, handle_.root(), plugin_, kKinds, Settings{});
  EXPECT_EQ(looks, 1U);
}

// Until the next epoch recovery goes through a reclamation again; from then on it does not.
TEST_F(TipsOrder, AReclamationIsDurableBeforeTheNextEpoch) {
  pool::PoolCore& pool = *pool_.core();
  Core core(pool, handle_.root(), plugin_, kKinds, Settings{});
  const Header& header = *pool.at<Header>(handle_.root());
  unsigned epochs = 0, payloads = 0;
  const Lines* lines = nullptr;
  const Lines probe([&](const void* stored) {
    if (stored == &header.epoch) {
      ++epochs;
      EXPECT_TRUE(lines->are_durable(&header.rings, sizeof header.rings));
      EXPECT_TRUE(lines->are_durable(pool.at<LogBlock>(header.memory), kMemoryBytes));
    }
    for (const RingPlace& place : header.rings) {
      if (place.block == pm::kNull) continue;
      const auto* const bytes = pool.at<std::byte>(place.block);
      const auto offset = static_cast<const std::byte*>(stored) - bytes;
      const bool is_payload = offset >= 0 && static_cast<U64>(offset) < header.ring_bytes &&
                              offset % pm::kLineSize == offsetof(Record, payload);
      if (!is_payload) continue;
      ++payloads;
      EXPECT_TRUE(lines->are_durable(&header.reclaimed, sizeof header.reclaimed));
    }
  });
  lines = &probe;
  // Nothing replays them by itself while a probe watches.
  for (U64 key = 0; key < 100; ++key) put(core, key, std::string(key < 50 ? 10 : 40'000, 'v'));
  EXPECT_TRUE(core.reclaim_space());
  EXPECT_GE(epochs, 1U);
  EXPECT_GE(payloads, 50U);
}

}  // namespace
}  // namespace perdix::detail::index::tips
