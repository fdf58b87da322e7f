// A thread that has split a node gives the new node its entry above later, and holds no latch in
// between. In that time others may give it the entry, and split the level above at just that entry.
// Then the node is a first child, and must not get another entry. Until a node has its entry, those
// who look for it from above come to one further left.
#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/error.h>

#include "index/fastfair/test_tree.h"
#include "pm/probe.h"
#include "util/random.h"

namespace perdix::detail::index::fastfair {
namespace {

using Number = std::uint64_t;

class Probe : public pm::Probe {
 public:
  Probe() : before_(pm::install_probe(this)) {}
  ~Probe() override { pm::install_probe(before_); }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  void on_read(const void*, std::size_t) override {}
  void on_write(const void*, std::size_t) override {}
  bool on_flush(const void*, std::size_t, const pm::Site&) override { return true; }
  bool on_fence(const pm::Site&) override { return true; }
  void on_step(const char* name) override {
    if (std::string_view(name) == "fastfair: a node is about to get its entry") on_entry();
  }

 protected:
  virtual void on_entry() {}

 private:
  pm::Probe* const before_;
};

/// Calls the given function, once, when a node is about to get its entry for the n-th time.
class Meanwhile final : public Probe {
 public:
  Meanwhile(unsigned n, std::function<void()> meanwhile)
      : left_(n), meanwhile_(std::move(meanwhile)) {}

 private:
  void on_entry() override {
    if (left_ == 0 || --left_ > 0) return;
    meanwhile_();
  }

  unsigned left_;
  const std::function<void()> meanwhile_;
};

/// No node gets its entry, as if there was no space. Calls the given function, once, before the
/// n-th read.
class WithoutEntries final : public Probe {
 public:
  WithoutEntries(unsigned n, std::function<void()> meanwhile)
      : left_(n), meanwhile_(std::move(meanwhile)) {}

  bool has_called() const { return left_ == 0; }

  void on_read(const void*, std::size_t) override {
    if (left_ == 0 || --left_ > 0) return;
    meanwhile_();
  }

 private:
  void on_entry() override { throw Error(Errc::out_of_space, "no entries in this test"); }

  unsigned left_;
  const std::function<void()> meanwhile_;
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

TEST(FastFairInstall, AScanGoesOnBehindLeavesWithoutAnEntry) {
  constexpr unsigned kFanout = 4;
  constexpr Number kKeys = 40;
  TestTree<Number, Number> tree(kFanout);
  const auto put_all = [&] {
    for (Number key = 0; key < kKeys; ++key) tree->put(key, key);
  };
  {
    const WithoutEntries probe(0, nullptr);
    put_all();
    ASSERT_EQ(tree.height(), 0);
  }
  // Wherever the scan is, all leaves change once. It looks for its own leaf again from the root,
  // which leads to the first one.
  bool called = true;
  for (unsigned n = 1; called; ++n) {
    SCOPED_TRACE(n);
    std::vector<Number> seen;
    const WithoutEntries probe(n, put_all);
    tree->scan(0, [&](Number key, Number) {
      seen.push_back(key);
      return true;
    });
    ASSERT_EQ(seen.size(), kKeys);
    for (Number key = 0; key < kKeys; ++key) ASSERT_EQ(seen[key], key);
    called = probe.has_called();
  }
}

}  // namespace
}  // namespace perdix::detail::index::fastfair
