// Conflicts that are brought about one by one, and must be counted one by one: an update is held at
// the moment when it is about to change its entry, and another one is made there.
#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>
#include <thread>
#include <utility>

#include <gtest/gtest.h>

#include "nbtree_forms/test_form.h"
#include "pm/probe.h"
#include "util/test_eventually.h"

namespace perdix::nbtree_forms {
namespace {

namespace pm = detail::pm;
namespace util = detail::util;

/// Calls disturb(), once, when an entry is about to be exchanged.
class Disturber final : public pm::Probe {
 public:
  explicit Disturber(std::function<void()> disturb)
      : disturb_(std::move(disturb)), before_(pm::install_probe(this)) {}
  ~Disturber() override { pm::install_probe(before_); }
  Disturber(const Disturber&) = delete;
  Disturber& operator=(const Disturber&) = delete;

  void on_read(const void*, std::size_t) override {}
  void on_write(const void*, std::size_t) override {}
  bool on_flush(const void*, std::size_t, const pm::Site&) override { return true; }
  bool on_fence(const pm::Site&) override { return true; }
  void on_step(const char* name) override {
    if (std::string_view(name) == "nbtree: exchange an entry" && !done_.exchange(true)) disturb_();
  }

 private:
  const std::function<void()> disturb_;
  std::atomic<bool> done_{false};
  pm::Probe* const before_;
};

TEST(NbTreeConflict, CountsAnUpdateOvertakenByAnother) {
  TestForm<Counted> tree;
  tree->put(1, 1);
  {
    const Disturber probe([&] { tree->update(1, 2); });
    EXPECT_TRUE(tree->update(1, 3));
  }
  EXPECT_EQ(tree->conflicts(), 1u);
  EXPECT_EQ(tree->get(1), 3u);
}

TEST(NbTreeConflict, CountsAnUpdateWhoseKeyIsErased) {
  TestForm<Counted> tree;
  tree->put(1, 1);
  {
    const Disturber probe([&] { tree->erase(1); });
    EXPECT_FALSE(tree->update(1, 3));
  }
  EXPECT_EQ(tree->conflicts(), 1u);  // it begins again
}

TEST(NbTreeConflict, IgnoresUpdatesOfOtherKeys) {
  TestForm<Counted> tree;
  tree->put(1, 1);
  tree->put(2, 1);
  {
    const Disturber probe([&] { tree->update(2, 2); });
    EXPECT_TRUE(tree->update(1, 3));
  }
  EXPECT_EQ(tree->conflicts(), 0u);
}

/// While an update holds its leaf, operate() on it begins in another thread.
template <class Form, class Operate>
void expect_one_conflict(const Operate& operate) {
  TestForm<Form> tree;
  tree->put(1, 1);
  tree->put(2, 1);
  std::jthread other;
  {
    const Disturber probe([&] {
      other = std::jthread([&] { operate(*tree); });
      util::eventually("the other thread has met the leaf's lock",
                       [&] { return tree->conflicts() > 0; });
    });
    EXPECT_TRUE(tree->update(1, 3));
    other.join();
  }
  EXPECT_EQ(tree->conflicts(), 1u);
}

TEST(NbTreeConflict, CountsAnUpdateThatWaitsForTheLeaf) {
  expect_one_conflict<WriteLocks>([](auto& tree) { EXPECT_TRUE(tree.update(2, 2)); });
}

TEST(NbTreeConflict, CountsALookupThatWaitsForTheLeaf) {
  expect_one_conflict<AllLocks>([](auto& tree) { EXPECT_EQ(tree.get(2), 1u); });
}

TEST(NbTreeConflict, IgnoresLookupsBesideAWriteLock) {
  TestForm<WriteLocks> tree;
  tree->put(1, 1);
  {
    const Disturber probe([&] { EXPECT_EQ(tree->get(1), 1u); });
    EXPECT_TRUE(tree->update(1, 3));
  }
  EXPECT_EQ(tree->conflicts(), 0u);
}

}  // namespace
}  // namespace perdix::nbtree_forms
