// The calls that engines over words inherit, on an engine that has some pairs of strings.
#include "index/common/word_engine.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "alloc/session.h"
#include "index/common/typed.h"
#include "pool/test_pool.h"
#include "util/test_directory.h"

namespace perdix::detail::index {
namespace {

/// The last pairs are all that it can find.
class LastWords : public OrderedWordEngine<LastWords, std::string> {
 public:
  explicit LastWords(pool::PoolCore& pool) : pool_(pool) {}

  void add(std::string_view key, std::string_view value) {
    alloc::Session session = pool_.allocator().session();
    words_.push_back({keys_.write(session, key), values_.write(session, NewValue(value))});
    session.log();
    session.finish();
  }

  void find_last(Key, bool, LastPairs& last) const {
    for (auto at = words_.rbegin(); at != words_.rend() && !last.full(); ++at)
      last.add(at->first, at->second);
  }
  std::optional<Word> find_word(Key) const { return std::nullopt; }
  void find_words(std::span<const Key>, std::span<std::optional<Word>>) const {}
  const Codec<std::string>& keys() const { return keys_; }
  const ValueCodec& values() const { return values_; }

  pool::PoolCore& pool() const final { return pool_; }
  const IndexInfo& info() const final { return info_; }
  bool write(Key, NewValue, Mode, const NewValue*) final { return false; }
  bool erase(Key, const NewValue*) final { return false; }
  std::uint64_t size() const final { return words_.size(); }
  void scan(Key, std::size_t, const PairSink<std::string>&) const final {}
  IndexStats stats() const final { return {}; }
  CheckReport check() const final { return {}; }
  void for_each_block(const pool::BlockVisitor&) const final {}
  bool reclaim_space() noexcept final { return false; }

 private:
  pool::PoolCore& pool_;
  const Codec<std::string> keys_{pool_};
  const ValueCodec values_{pool_, Kind::bytes};
  const IndexInfo info_;
  std::vector<std::pair<Word, Word>> words_;
};

class WordEngineTest : public testing::Test {
 protected:
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  Pairs down(std::size_t limit, std::size_t wanted = kNoLimit) const {
    Pairs pairs;
    engine_.scan_down("z", false, limit, [&](std::string_view key, NewValue value) {
      pairs.emplace_back(key, value.bytes());
      return pairs.size() < wanted;
    });
    return pairs;
  }

  const testing_files::TempDirectory directory_{testing_files::memory_directory()};
  const std::filesystem::path path_ = directory_.file("test.pool");
  const std::shared_ptr<pool::PoolCore> core_ =
      pool::PoolCore::create(path_, pool::small_options());
  LastWords engine_{*core_};
};

TEST_F(WordEngineTest, ShowsTheLastPairsDescending) {
  for (const char* key : {"a", "b", "c"}) engine_.add(key, std::string(1000, *key));
  EXPECT_EQ(down(0), Pairs());
  EXPECT_EQ(down(2), (Pairs{{"c", std::string(1000, 'c')}, {"b", std::string(1000, 'b')}}));
  EXPECT_EQ(down(kNoLimit).size(), 3U);
  EXPECT_EQ(down(kNoLimit, 1).size(), 1U);
  EXPECT_EQ(typed<std::string>(engine_).find_floor("z")->first, "c");
}

TEST_F(WordEngineTest, ShowsStringsInPlace) {
  engine_.add("key", "value");
  engine_.scan_down("z", false, 1, [&](std::string_view key, NewValue value) {
    for (const std::string_view bytes : {key, value.bytes()})
      EXPECT_TRUE(core_->contains(core_->offset(bytes.data()), bytes.size()));
    return true;
  });
}

TEST_F(WordEngineTest, RefusesKeysThatAreNotInOrder) {
  for (const char* key : {"b", "b", "c"}) engine_.add(key, "");
  EXPECT_EQ(down(2).size(), 2U);
  try {
    down(3);
    ADD_FAILURE() << "shown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::corrupt);
  }
}

static_assert(TakesPairs<Taken (*)(const CopiedPairs<std::string>&), std::string>);
static_assert(!TakesPairs<PairSink<std::string>&, std::string>);

}  // namespace
}  // namespace perdix::detail::index
