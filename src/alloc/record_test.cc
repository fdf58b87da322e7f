#include "alloc/record.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace perdix::detail::alloc {
namespace {

class RecordTest : public ::testing::Test {
 protected:
  Record full_record() const {
    Record record;
    record.commit_word = 0x1234'5678'9ab8;
    record.mask = 0xffff;
    record.expected = 0x42;
    for (std::uint16_t i = 0; i < kMaxBlocks; ++i) {
      record.reserved.push({0x10000U + i * 16U, i});
      record.freed.push({0x20000U + i * 16U, static_cast<std::uint16_t>(100 + i)});
    }
    record.redo = {0x3000, 7};
    record.undo = {0x3008, 8};
    return record;
  }

  pm::Persister pm_{pm::Domain::cpu_cache};
  alignas(64) RecordWords words_{};
};

TEST_F(RecordTest, FindsNoneInZeros) { EXPECT_FALSE(read_record(words_)); }

TEST_F(RecordTest, ReadsWhatWasWritten) {
  const Record written = full_record();
  write_record(pm_, words_, written);
  const std::optional<Record> read = read_record(words_);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->commit_word, written.commit_word);
  EXPECT_EQ(read->mask, written.mask);
  EXPECT_EQ(read->expected, written.expected);
  ASSERT_EQ(read->reserved.size(), kMaxBlocks);
  ASSERT_EQ(read->freed.size(), kMaxBlocks);
  for (unsigned i = 0; i < kMaxBlocks; ++i) {
    EXPECT_EQ(read->reserved[i].pack(), written.reserved[i].pack());
    EXPECT_EQ(read->freed[i].pack(), written.freed[i].pack());
  }
  EXPECT_EQ(read->redo.word, written.redo.word);
  EXPECT_EQ(read->redo.value, written.redo.value);
  EXPECT_EQ(read->undo.word, written.undo.word);
  EXPECT_EQ(read->undo.value, written.undo.value);
}

TEST_F(RecordTest, IsGoneOnceCleared) {
  write_record(pm_, words_, full_record());
  clear_record(pm_, words_);
  EXPECT_FALSE(read_record(words_));
}

TEST_F(RecordTest, EveryDamagedBitIsNoticed) {
  write_record(pm_, words_, full_record());
  for (std::uint64_t& word : words_) {
    for (unsigned bit = 0; bit < 64; ++bit) {
      word ^= std::uint64_t{1} << bit;
      EXPECT_FALSE(read_record(words_));
      word ^= std::uint64_t{1} << bit;
    }
  }
  EXPECT_TRUE(read_record(words_));
}

TEST_F(RecordTest, UpToFourBlocksFitTheFirstLine) {
  Record record;
  record.commit_word = 8;
  for (unsigned i = 0; i < 2; ++i) {
    record.reserved.push({0x10000, 0});
    record.freed.push({0x20000, 0});
  }
  write_record(pm_, words_, record);
  EXPECT_TRUE(
      std::all_of(words_.begin() + 8, words_.end(), [](std::uint64_t w) { return w == 0; }));
}

}  // namespace
}  // namespace perdix::detail::alloc
