// A thread that has split a node gives the new node its entry above later, and holds no latch in
// between. In that time others may give it the entry, and split the level above at just that entry.
// Then the node is a first child, and must not get another entry.
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "index/fastfair/test_tree.h"
#include "pm/probe.h"
#include "util/random.h"

namespace perdix::detail::index::fastfair {
namespace {

using Number = std::uint64_t;

/// Calls the given function, once, when a node is about to get its entry for the n-th time.
class Meanwhile final : public pm::Probe {
 public:
  Meanwhile(unsigned n, std::function<void()> meanwhile)
      : left_(n), meanwhile_(std::move(meanwhile)), before_(pm::install_probe(this)) {}
  ~Meanwhile() override { pm::install_probe(before_); }
  Meanwhile(const Meanwhile&) = delete;
  Meanwhile& operator=(const Meanwhile&) = delete;

  void on_read(const void*, std::size_t) override {}
  void on_write(const void*, std::size_t) override {}
  bool on_flush(const void*, std::size_t, const pm::Site&) override { return true; }
  bool on_fence(const pm::Site&) override { return true; }
  void on_step(const char* name) override {
    if (std::string_view(name) != "fastfair: a node is about to get its entry") return;
    if (left_ == 0 || --left_ > 0) return;
    meanwhile_();
  }

 private:
  unsigned left_;
  const std::function<void()> meanwhile_;
  pm::Probe* const before_;
};

TEST(FastFairInstall, AFirstChildGetsNoEntry) {
  constexpr unsigned kFanout = 4;
  constexpr Number kKeys = 400;
  for (unsigned n = 1; n <= 60; ++n) {
    TestTree<Number, Number> tree(kFanout);
    util::Random random(n);
    const auto put_some = [&](unsigned count) {
      for (unsigned i = 0; i < count; ++i) tree->put(random.below(kKeys), i);
    };
    {
      const Meanwhile probe(n, [&] { put_some(100); });
      put_some(200);
    }
    tree.expect_sound();
  }
}

}  // namespace
}  // namespace perdix::detail::index::fastfair
