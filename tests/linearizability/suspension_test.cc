// NbTree's promise that no thread waits for a suspended one. One thread stops for good at an event
// of an operation, in turn at each event. The other threads must finish their operations in the
// same leaves. Then the first thread continues, and the result must be as if it had been slow.
//
// There is an event before and after each store to PM, and before each flush and fence. So the
// thread is suspended in all phases of a structure modification, within the allocator's sessions,
// and while it holds its slot in the ledger.
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <perdix/papers/nbtree.h>
#include <perdix/pool.h>

#include "pm/probe.h"
#include "suspender.h"
#include "util/test_directory.h"
#include "util/test_eventually.h"

namespace perdix::testing {
namespace {

using Number = std::uint64_t;

template <class T>
T datum(Number number) {
  if constexpr (std::is_same_v<T, Number>)
    return number;
  else
    return number == 0 ? "" : fmt::format("{:04}", number) + std::string(number % 40, '.');
}

/// An index with a few leaves of which the first one is full, or two that can be joined.
template <class K, class V>
class Scene {
 public:
  using Index = NbTree<K, V>;
  using Model = std::map<K, V>;

  explicit Scene(const std::filesystem::path& path)
      : pool_(Pool::create(path, options())), index_(std::in_place, pool_, "t") {}

  void put(Number key, Number value) {
    index_->put(datum<K>(key), datum<V>(value));
    model[datum<K>(key)] = datum<V>(value);
  }
  void erase(Number key) {
    EXPECT_EQ(index_->erase(datum<K>(key)), model.erase(datum<K>(key)) > 0);
  }
  Index& index() { return *index_; }

  /// As after a restart: every leaf is cold until it is needed.
  void reopen() {
    index_.reset();
    NbTreeOptions options;
    options.resume_in_background = false;
    index_.emplace(pool_, "t", options);
  }

  void expect_right() {
    Model found;
    index_->scan({}, [&](auto key, auto value) { return found.emplace(key, value).second; });
    EXPECT_EQ(found, model);
    for (const std::string& problem : index_->check().problems) ADD_FAILURE() << problem;
    index_.reset();
    for (const std::string& problem : pool_.check().problems) ADD_FAILURE() << problem;
  }

  Model model;

 private:
  static PoolOptions options() {
    PoolOptions options;
    options.durability = Durability::process;
    options.domain = DomainChoice::memory_controller;
    options.max_size = std::uint64_t{64} << 20;
    return options;
  }

  Pool pool_;
  std::optional<Index> index_;
};

constexpr Number kFull = 47;  // of the first leaf, which is a small one

/// What the thread does that is suspended, and what there is before.
struct Act {
  const char* name;
  void (*prepare)(const std::function<void(Number)>& put, const std::function<void(Number)>& erase);
  enum { insert, update, erase, lookup } what;
  Number key;
  bool cold = false;  // the index was just opened
};

/// For the names of the tests.
void PrintTo(const Act& act, std::ostream* out) { *out << act.name; }

void fill(const std::function<void(Number)>& put, Number count) {
  for (Number i = 1; i <= count; ++i) put(10 * i);
}

const Act kActs[] = {
    {"insert", [](auto& put, auto&) { fill(put, 20); }, Act::insert, 55},
    {"an insert that expands", [](auto& put, auto&) { fill(put, kFull); }, Act::insert, 55},
    {"an insert that splits", [](auto& put, auto&) { fill(put, 63); }, Act::insert, 55},
    {"update", [](auto& put, auto&) { fill(put, 20); }, Act::update, 50},
    {"erase", [](auto& put, auto&) { fill(put, 20); }, Act::erase, 50},
    {"an erase that joins",
     [](auto& put, auto& erase) {
       fill(put, 64);  // in two leaves
       for (Number i = 4; i <= 31; ++i) erase(10 * i);
       for (Number i = 42; i <= 63; ++i) erase(10 * i);
     },
     Act::erase, 640},
    {"a lookup in a cold leaf", [](auto& put, auto&) { fill(put, 150); }, Act::lookup, 550, true},
    {"an insert into a cold leaf", [](auto& put, auto&) { fill(put, 63); }, Act::insert, 55, true},
    {"an erase that joins cold leaves",
     [](auto& put, auto& erase) {
       fill(put, 64);
       for (Number i = 4; i <= 31; ++i) erase(10 * i);
       for (Number i = 42; i <= 63; ++i) erase(10 * i);
     },
     Act::erase, 640, true},
};

/// What the other threads do: they change all leaves, cause splits and joins, and use the same key.
template <class K, class V>
void go_on(Scene<K, V>& scene, const Act& act) {
  const K key = datum<K>(act.key);
  const auto seen = scene.index().get(key);
  for (Number i = 1; i <= 150; ++i) {
    if (10 * i == act.key) continue;
    scene.put(10 * i, i);
    if (i % 3 == 0) scene.erase(10 * i);
    if (i % 5 == 0) scene.put(10 * i + 1, i);
  }
  for (Number i = 40; i <= 100; ++i) {
    if (10 * i != act.key && scene.model.contains(datum<K>(10 * i))) scene.erase(10 * i);
  }
  scene.index().scan({}, [](auto, auto) { return true; });
  const auto again = scene.index().get(key);
  // A value that was seen stays, because no other thread has changed this key.
  if (act.what == Act::insert && seen) {
    EXPECT_TRUE(again);
  }
  if (act.what == Act::erase && !seen) {
    EXPECT_FALSE(again);
  }
}

template <class K, class V>
void run(const Act& act) {
  testing_files::TempDirectory folder{testing_files::memory_directory()};
  std::uint64_t suspensions = 0;
  for (std::uint64_t event = 1;; ++event) {
    SCOPED_TRACE(fmt::format("{}, suspended at event {}", act.name, event));
    const std::filesystem::path path = folder.path() / fmt::format("pool-{}", event);
    Scene<K, V> scene(path);
    std::filesystem::remove(path);  // it stays until it is closed
    act.prepare([&](Number key) { scene.put(key, key); }, [&](Number key) { scene.erase(key); });
    if (act.cold) scene.reopen();
    const K key = datum<K>(act.key);
    const V value = datum<V>(7);
    Suspender probe;
    probe.count_reads(act.what == Act::lookup);  // which stores nothing
    detail::pm::Probe* before = detail::pm::install_probe(&probe);
    bool done = false, suspended = false;
    std::thread victim([&] {
      probe.watch(event);
      if (act.what == Act::insert) done = scene.index().insert(key, value);
      if (act.what == Act::update) done = scene.index().update(key, value);
      if (act.what == Act::erase) done = scene.index().erase(key);
      if (act.what == Act::lookup) done = scene.index().get(key).has_value();
      suspended = probe.end();
    });
    probe.wait_for_suspension();
    auto others = std::async(std::launch::async, [&] { go_on(scene, act); });
    EXPECT_TRUE(detail::util::comes_about([&] { return detail::util::is_ready(others); }))
        << "others wait for the suspended thread";
    probe.release();
    victim.join();
    others.get();
    detail::pm::install_probe(before);
    EXPECT_TRUE(done);
    if (act.what == Act::erase)
      scene.model.erase(key);
    else if (act.what != Act::lookup)
      scene.model[key] = value;
    scene.expect_right();
    if (::testing::Test::HasFailure()) return;
    if (!suspended) break;  // there are no more events
    ++suspensions;
  }
  EXPECT_GE(suspensions, 4u);
  ::testing::Test::RecordProperty("suspensions", std::to_string(suspensions));
  fmt::print("{}: {} events, and no thread waited\n", act.name, suspensions);
}

class SuspensionTest : public ::testing::TestWithParam<Act> {};

TEST_P(SuspensionTest, OfNumbersStopsNoOtherThread) { run<Number, Number>(GetParam()); }
TEST_P(SuspensionTest, OfStringsStopsNoOtherThread) { run<std::string, std::string>(GetParam()); }

INSTANTIATE_TEST_SUITE_P(NbTree, SuspensionTest, ::testing::ValuesIn(kActs));

}  // namespace
}  // namespace perdix::testing
