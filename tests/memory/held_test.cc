// What is kept of the memory that an index takes: once all is back after a restart, no more than if
// there had been none. And what a cursor keeps.
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <perdix/perdix.h>

#include "engine_list.h"
#include "epoch/reclaimer.h"
#include "memory/failing_memory.h"
#include "pm/test_files.h"
#include "pool/pool_core.h"

namespace perdix::test {
namespace {

using testing_files::TempDirectory;

/// Engines that have write buffers.
std::vector<std::string> buffered_engines() {
  std::vector<std::string> engines;
  const auto add = [&](const detail::index::EngineTraits& traits) {
    if (traits.buffered) engines.emplace_back(traits.engine);
  };
  std::apply([&]<class... Traits>(const Traits&...) { (add(Traits::kTraits), ...); }, EngineList());
  return engines;
}

class Held : public ::testing::TestWithParam<std::string> {
 protected:
  void open() {
    pool_.emplace(Pool::open_or_create(path_));
    IndexOptions options = detail::index::find_traits(GetParam(), EngineList())->buffered();
    options.named["dram_budget"] = "unlimited";
    options.resume_in_background = false;
    index_ = Index::open_or_create(*pool_, {"index", GetParam(), Kind::u64, Kind::u64}, options);
  }

  /// Closes both. Returns what the index alone held: the pool keeps what it has once needed.
  std::int64_t close() {
    const std::int64_t of_both = held();
    index_.reset();
    const std::int64_t of_index = of_both - held();
    pool_.reset();
    return of_index;
  }

 private:
  /// Without what only waits for the end of a grace period.
  std::int64_t held() const {
    pool_->core()->background().drain();
    pool_->core()->reclaimer().drain();
    return held_bytes();
  }

  TempDirectory directory_;
  std::string path_ = directory_.file("pool").string();
  std::optional<Pool> pool_;

 protected:
  std::unique_ptr<Index> index_;
};

INSTANTIATE_TEST_SUITE_P(All, Held, testing::ValuesIn(buffered_engines()),
                         [](const auto& info) { return info.param; });

// The chains that a restart finds are listed and noted until they are adopted.
TEST_P(Held, IsAsLargeAsBeforeARestart) {
  constexpr std::int64_t kSlack = 1024;
  constexpr std::uint64_t kKeys = 40000;
  open();
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    const auto key = encode_u64(i * 0x9e3779b97f4a7c15ull);
    const std::string_view bytes(key.data(), key.size());
    index_->put(bytes, bytes);
  }
  const std::int64_t usual = close();
  open();
  EXPECT_TRUE(index_->check().ok());  // has all of it come back
  EXPECT_LE(close(), usual + kSlack);
}

// The last pair of a read may be large; the next read need not have as many pairs.
TEST(HeldByACursor, IsNoLargeValueThatItHasLeft) {
  constexpr std::int64_t kSlack = 64 << 10;
  const TempDirectory directory;
  Pool pool = Pool::create(directory.file("pool"));
  SpTree<std::string, std::string> index(pool, "index");
  for (int i = 100; i < 400; ++i) index.put(std::to_string(i), "small");
  index.put("200", std::string(8 << 20, 'x'));
  auto cursor = index.cursor();
  for (const bool last : {true, false}) {
    const std::int64_t before = held_bytes();
    cursor.seek("100");
    while (cursor.key() < (last ? "201" : "200")) cursor.next();
    cursor.seek("300");
    cursor.next();
    EXPECT_LE(held_bytes(), before + kSlack);
  }
}

}  // namespace
}  // namespace perdix::test
