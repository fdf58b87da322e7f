// Where the strings of a pair lie, and whether they do.
#include "index/common/codec.h"

#include <string>

#include <gtest/gtest.h>

#include "index/common/value_codec.h"
#include "pool/test_pool.h"
#include "util/test_directory.h"

namespace perdix::detail::index {
namespace {

class CodecTest : public testing::Test {
 protected:
  /// Writes a pair, whose key becomes the root of the index.
  PairWords write(const std::string& key, const std::string& value) {
    alloc::Session session = pool_->allocator().session();
    const PairWords words = write_pair(session, keys_, values_, key, 7, NewValue(value));
    session.commit(pm::set_word(handle_.root(), words.key | words.value));
    return words;
  }

  bool sound(Word key, Word value) const { return sound_pair(keys_, values_, key, value); }
  std::uint32_t& length(Word word) { return *pool_->at<std::uint32_t>(blob_offset(word)); }

  /// The longest value that shares a block with a key of 24 bytes.
  static std::size_t longest() { return kMaxPairBlock - 2 * sizeof(std::uint32_t) - 24; }

  testing_files::TempDirectory directory_;
  std::shared_ptr<pool::PoolCore> pool_ =
      pool::PoolCore::create(directory_.file("codec.pool"), pool::small_options());
  pool::IndexHandle handle_ = pool_->open_index("t", "sptree", Kind::bytes, Kind::bytes);
  const Codec<std::string> keys_{*pool_};
  const ValueCodec values_{*pool_, Kind::bytes};
  const std::string key_ = std::string(24, 'k');
};

TEST_F(CodecTest, AShortPairSharesABlock) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{100}, longest()}) {
    for (const std::size_t key_size : {21, 22, 23, 24}) {
      const std::string key(key_size, 'k'), value(size, 'v');
      const PairWords words = write(key, value);
      EXPECT_EQ(keys_.blobs(words.key), 1u);
      EXPECT_EQ(values_.blobs(words.value), 0u) << size;
      EXPECT_EQ(values_.footprint(words.value), 0);
      EXPECT_EQ(keys_.view(words.key), key);
      EXPECT_EQ(word_tag(words.key), 7);
      EXPECT_EQ(values_.view(words.value), value);
      EXPECT_TRUE(sound(words.key, words.value));
    }
  }
}

TEST_F(CodecTest, ALongPairHasTwoBlocks) {
  const PairWords words = write(key_, std::string(longest() + 1, 'v'));
  EXPECT_EQ(values_.blobs(words.value), 1u);
  EXPECT_EQ(values_.view(words.value).size(), longest() + 1);
  EXPECT_TRUE(sound(words.key, words.value));
}

TEST_F(CodecTest, AnEmptyStringHasNoBlock) {
  const PairWords no_key = write("", "value");
  EXPECT_EQ(no_key.key, 0u);
  EXPECT_EQ(values_.blobs(no_key.value), 1u);
  EXPECT_TRUE(sound(no_key.key, no_key.value));
  const PairWords no_value = write("key", "");
  EXPECT_EQ(no_value.value, 0u);
  EXPECT_EQ(keys_.blobs(no_value.key), 1u);
  EXPECT_TRUE(sound(no_value.key, no_value.value));
}

TEST_F(CodecTest, FreesTheBlockOfAPairWithItsKey) {
  const PairWords words = write(key_, "value");
  ASSERT_EQ(pool::allocated_blocks(*pool_).size(), 1u);
  alloc::Session session = pool_->allocator().session();
  Codec<std::string>::free(session, words.key);
  values_.free(session, words.value);
  session.commit(pm::set_word(handle_.root(), 0));
  EXPECT_TRUE(pool::allocated_blocks(*pool_).empty());
}

TEST_F(CodecTest, AValueIsSoundInTheBlockOfItsOwnKeyOnly) {
  const PairWords words = write(key_, "value"), other = write(key_, "other");
  EXPECT_FALSE(sound(other.key, words.value));
  EXPECT_FALSE(sound(words.key, words.value + 4));
  EXPECT_FALSE(sound(0, words.value));
  EXPECT_FALSE(sound(words.key, words.value + (Word{1} << 48))) << "a tag that there is not";
}

TEST_F(CodecTest, AValueThatLeavesItsBlockIsNotSound) {
  const PairWords words = write(key_, "value");
  length(words.value) = kMaxPairBlock;
  EXPECT_FALSE(sound(words.key, words.value));
  length(words.value) = 5;
  EXPECT_TRUE(sound(words.key, words.value));
  length(words.key) = kMaxPairBlock;
  EXPECT_FALSE(sound(words.key, words.value));
}

}  // namespace
}  // namespace perdix::detail::index
