// Visitors that are slow or never return, beside threads that need the memory that is freed.
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "concurrency/thread_group.h"

namespace perdix::test {
namespace {

constexpr std::uint64_t kSmallPool = 16 << 20;

PoolOptions small_pool(const Fixture& fixture) {
  PoolOptions options = fixture.options();
  options.max_size = kSmallPool;
  return options;
}

/// A thread that stands still in a visitor as long as this object lives.
class StoppedVisitor {
 public:
  explicit StoppedVisitor(const AnyIndex& index)
      : thread_([&index, this] {
          index.visit_all([this](DatumView, DatumView) {
            stopped_.count_down();
            go_on_.wait();
            return false;
          });
        }) {
    stopped_.wait();
  }
  ~StoppedVisitor() {
    go_on_.count_down();
    thread_.join();
  }

 private:
  std::latch stopped_{1};
  std::latch go_on_{1};
  std::thread thread_;
};

/// Replaces one value so often that the pool would be full several times if nothing that was
/// replaced could be used again. Each of these writes can wait for its space and must get it.
void replace_often(AnyIndex& index, const Datum& key) {
  constexpr std::size_t kBytes = 20'000;
  for (std::uint64_t i = 0; i < 4 * kSmallPool / kBytes; ++i) {
    const auto error = error_of([&] { index.put(key, bytes_of(i, kBytes)); });
    ASSERT_EQ(error, std::nullopt) << "the " << i << "th value of one key";
  }
}

const Contract stopped(
    "a_visitor_that_stands_still_stops_no_reclamation", bytes_values,
    [](Fixture& fixture) {
      fixture.replace_pool(small_pool(fixture));
      const auto path = fixture.path().parent_path() / "another";
      {
        Pool another = Pool::create(path, small_pool(fixture));
        AnyIndex index = fixture.open();
        AnyIndex neighbour = fixture.open("neighbour");
        AnyIndex in_another = fixture.type().open(another, "index");
        const auto keys = fixture.keys_of(100, KeyStyle::dense);
        for (const Datum& key : keys) index.put(key, fixture.small_value());
        {
          const StoppedVisitor visitor(index);
          for (AnyIndex* target : {&index, &neighbour, &in_another})
            replace_often(*target, keys[20]);
          EXPECT_LE(fixture.pool().info().allocated, kSmallPool);
        }
        EXPECT_EQ(index.size(), keys.size());
      }
      std::filesystem::remove(path);
    },
    kInMemory);

// Scans with visitors that write, in a pool that is full, by several threads: each waits for the
// others' reads, and none for a visitor. It takes a minute of each engine, so only one kind of keys
// has it: what fills the pool, and is replaced, are the values.
const Contract writing(
    "visitors_write_in_a_full_pool_under_threads",
    [](const IndexType& type) { return bytes_values(type) && !bytes_keys(type); },
    [](Fixture& fixture) {
      constexpr unsigned kThreads = 3;
      constexpr std::size_t kKeys = 300;
      fixture.replace_pool(small_pool(fixture));
      auto index = fixture.open();
      const auto keys = fixture.keys_of(kKeys, KeyStyle::dense);
      const std::uint64_t seed = fixture.rng()();
      std::atomic<std::size_t> refused{0};
      Verdict verdict;
      ThreadGroup group;
      group.add(kThreads, [&](unsigned thread) {
        Rng rng(seed + thread);
        for (std::size_t round = 0; round < 2 + fixture.count(4) && verdict.ok(); ++round) {
          for (std::size_t i = thread; i < keys.size(); i += kThreads) {
            const auto value = bytes_of(i, 20'000 + rng.below(100'000));
            refused += error_of([&] { index.put(keys[i], value); }).has_value();
          }
          std::optional<Datum> last;
          index.visit_all([&](DatumView key, DatumView) {
            const std::size_t at = position(keys, key);
            verdict.expect(!index.ordered() || !last || *last < key.copy(),
                           [] { return "keys do not ascend"; });
            last = key.copy();
            if (at % kThreads != thread) return true;
            const auto value = bytes_of(at, 20'000 + rng.below(100'000));
            const auto error = error_of([&] {
              if (rng.once_in(3))
                index.erase(keys[at]);
              else
                index.put(keys[at], value);
            });
            refused += error.has_value();
            verdict.expect(!error || *error == Errc::out_of_space,
                           [&] { return "failed with " + std::string(to_string(*error)); });
            return verdict.ok();
          });
        }
      });
      group.run(verdict);
      EXPECT_GT(refused.load(), 0U) << "the pool was never full";
      EXPECT_TRUE(index.check().ok()) << problems_of(index.check());
    },
    kInProcess);

}  // namespace
}  // namespace perdix::test
