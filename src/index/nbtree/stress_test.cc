// Many threads in few leaves, so that splits, joins and everything else meet.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <thread>
#include <vector>

#include "index/nbtree/test_tree.h"
#include "util/random.h"

namespace perdix::index::nbtree {
namespace {

constexpr unsigned kThreads = 4;
constexpr std::uint64_t kKeys = 300;  // of each thread
constexpr unsigned kSteps = 30000;

std::uint64_t as_key(std::uint64_t number, std::uint64_t) { return number; }
std::string as_key(std::uint64_t number, std::string_view) {
  return std::to_string(number % 7) + "prefix" + std::to_string(number);
}

/// Each thread has keys of its own, interleaved with the others', and knows what it has written.
template <class K>
class Crew {
 public:
  Crew() : models_(kThreads) {}

  void run() {
    {
      std::vector<std::jthread> threads;
      for (unsigned t = 0; t < kThreads; ++t) threads.emplace_back([this, t] { write(t); });
      threads.emplace_back([this] { read(); });
      for (unsigned t = 0; t < kThreads; ++t) threads[t].join();
      done_ = true;
    }
    std::map<K, std::uint64_t> expected;
    for (const auto& model : models_) expected.insert(model.begin(), model.end());
    std::map<K, std::uint64_t> found;
    tree_->scan({}, [&](auto key, auto value) { return found.emplace(key, value).second; });
    EXPECT_EQ(found, expected);
    EXPECT_EQ(tree_->size(), expected.size());
    tree_.expect_sound_pool();
  }

 private:
  K key_of(unsigned thread, std::uint64_t i) const { return as_key(i * kThreads + thread, K{}); }

  /// Grows and shrinks in turn.
  void write(unsigned thread) {
    util::Random random(thread + 1);
    auto& model = models_[thread];
    for (unsigned step = 0; step < kSteps; ++step) {
      const K key = key_of(thread, random.below(kKeys));
      const bool grow = step / 2000 % 2 == 0;
      const auto known = model.find(key);
      ASSERT_EQ(tree_->get(key), known == model.end() ? std::optional<std::uint64_t>{}
                                                      : std::optional(known->second));
      if (random.below(8) == 0 ? !grow : grow) {
        tree_->put(key, step);
        model[key] = step;
      } else {
        ASSERT_EQ(tree_->erase(key), model.erase(key) > 0);
      }
    }
  }

  void read() {
    util::Random random(99);
    while (!done_) {
      const K from = key_of(0, random.below(kKeys));
      std::optional<K> last;
      tree_->scan(from, [&](auto key, auto) {
        EXPECT_TRUE(!(K(key) < from) && (!last || *last < K(key))) << "keys ascend";
        last = K(key);
        return true;
      });
      tree_->size();
    }
  }

  TestTree<K, std::uint64_t> tree_;
  std::vector<std::map<K, std::uint64_t>> models_;
  std::atomic<bool> done_{false};
};

/// All threads insert the same keys and erase them again: each insert that returns true has one
/// erase.
TEST(NbTreeStress, OneOfSeveralInsertsWins) {
  constexpr std::uint64_t kRounds = 20000, kShared = 8;
  TestTree<std::uint64_t, std::uint64_t> tree;
  std::array<std::atomic<std::int64_t>, kShared> there{};
  {
    std::vector<std::jthread> threads;
    for (unsigned t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        util::Random random(t + 1);
        for (std::uint64_t i = 0; i < kRounds; ++i) {
          const std::uint64_t key = random.below(kShared);
          if (random.one_in(2)) {
            if (tree->insert(key, i)) there[key].fetch_add(1);
          } else {
            if (tree->erase(key)) there[key].fetch_sub(1);
          }
        }
      });
    }
  }
  for (std::uint64_t key = 0; key < kShared; ++key)
    EXPECT_EQ(there[key].load(), tree->contains(key) ? 1 : 0) << key;
  tree.expect_sound_pool();
}

TEST(NbTreeStress, Numbers) { Crew<std::uint64_t>().run(); }
TEST(NbTreeStress, Strings) { Crew<std::string>().run(); }

}  // namespace
}  // namespace perdix::index::nbtree
