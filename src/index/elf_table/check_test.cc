// check() notices what does not fit: each test changes a word of a table's blocks.
#include <cstring>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <perdix/elf_table.h>
#include <perdix/error.h>
#include <perdix/pool.h>

#include "index/elf_table/blocks.h"
#include "index/elf_table/elf_table.h"
#include "pool/pool_core.h"
#include "util/test_directory.h"

namespace perdix::detail::index::elf_table {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class CheckTest : public ::testing::Test {
 protected:
  CheckTest() {
    const std::vector<std::int64_t> numbers = {30, 10, 20, 10};
    const std::vector<std::string> words = {"b", "a", "b", "ccc"};
    const std::vector<std::int32_t> plain = {1, 2, 3, 4};
    table_.emplace(pool_, "t",
                   std::vector<ElfColumn>{
                       {"l", ElfType::int64}, {"s", ElfType::string}, {"i", ElfType::int32}});
    table_->build({std::span<const std::int64_t>(numbers), std::span<const std::string>(words),
                   std::span<const std::int32_t>(plain)});
    table_->insert({std::int64_t{40}, "d", 5});
  }

  static PoolOptions options() {
    PoolOptions options;
    options.max_size = std::uint64_t{64} << 20;
    return options;
  }

  GenerationLayout& generation() {
    pool::PoolCore& core = *pool_.core();
    table_.reset();
    IndexInfo info{"t", std::string(kEngineName), Kind::u64, Kind::u64};
    info.model = DataModel::points;
    const pool::IndexHandle handle = core.open_index(info);
    root_ = &checked_root(core, handle.root());
    return checked_generation(core, root_->generations[current_of(*root_)], root_->columns);
  }

  template <class T>
  T* array(std::uint64_t block) {
    return pool_.core()->at<T>(block);
  }

  std::vector<std::string> problems() {
    table_.emplace(pool_, "t");
    return table_->check().problems;
  }

  testing_files::TempDirectory directory_{testing_files::memory_directory()};
  Pool pool_ = Pool::create(directory_.file("pool"), options());
  std::optional<ElfTable> table_;
  Root* root_ = nullptr;
};

TEST_F(CheckTest, ASoundTableHasNoProblems) { EXPECT_THAT(problems(), IsEmpty()); }

TEST_F(CheckTest, WordsOfADictionaryAscend) {
  auto* const keys = array<std::uint64_t>(columns_of(generation())[0].keys);
  std::swap(keys[0], keys[1]);
  EXPECT_THAT(problems(), Contains(HasSubstr("words 0 and 1 of column 'l'")));
}

TEST_F(CheckTest, StringsAscendToo) {
  array<char>(columns_of(generation())[1].bytes)[0] = 'z';
  EXPECT_THAT(problems(), Contains(HasSubstr("words 0 and 1 of column 's'")));
}

TEST_F(CheckTest, TheElfHasTheRowsOfTheColumns) {
  auto* const codes = array<std::uint32_t>(columns_of(generation())[2].codes);
  codes[3] ^= 1;
  EXPECT_THAT(problems(), Contains(HasSubstr("the Elf has row 3 with other values")));
}

TEST_F(CheckTest, DimensionsAreThoseOfTheElf) {
  ColumnLayout* const columns = columns_of(generation());
  std::swap(columns[0].dimension, columns[1].dimension);
  EXPECT_FALSE(problems().empty());
}

TEST_F(CheckTest, CodesAreInTheDictionary) {
  ColumnLayout& column = columns_of(generation())[0];
  --column.words;
  EXPECT_THAT(problems(), Contains(HasSubstr("is in no dictionary")));
}

TEST_F(CheckTest, NumbersOfRowsAscend) {
  table_->erase(1);
  EXPECT_TRUE(table_->compact());
  auto* const numbers = array<std::uint32_t>(generation().numbers);
  std::swap(numbers[1], numbers[2]);
  EXPECT_THAT(problems(), Contains(HasSubstr("slot 2 has the row number 2")));
}

TEST_F(CheckTest, BlocksAreLargeEnough) {
  GenerationLayout& layout = generation();
  ColumnLayout* const columns = columns_of(layout);
  std::swap(columns[0].codes, columns[0].keys);
  layout.tids = layout.rows = 100;
  EXPECT_THAT(problems(), Contains(StartsWith("a block of codes at")));
}

TEST_F(CheckTest, AForeignBlockIsNoTable) {
  generation();
  root_->magic = 0;
  try {
    problems();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::corrupt);
  }
}

TEST_F(CheckTest, ColumnsAreReadable) {
  generation();
  reinterpret_cast<char*>(root_ + 1)[0] = 9;  // the type of the first column
  EXPECT_THROW(problems(), Error);
}

// As a release wrote it in which slots were TIDs.
TEST_F(CheckTest, AGenerationOfTheFirstFormatOpens) {
  GenerationLayout& layout = generation();
  ASSERT_EQ(layout.numbers, pm::kNull);
  ColumnLayout* const columns = columns_of(layout);
  layout.magic = kFirstGenerationMagic;
  std::memmove(columns_of(layout), columns, root_->columns * sizeof *columns);
  EXPECT_THAT(problems(), IsEmpty());
  EXPECT_EQ(table_->count({ElfPredicate::equal("s", "b")}), 2U);
  EXPECT_EQ(table_->row(3), (ElfTable::Row{std::int64_t{10}, "ccc", 4}));
  EXPECT_TRUE(table_->erase(2));
  EXPECT_EQ(table_->insert({std::int64_t{50}, "e", 6}), 5U);
  EXPECT_THAT(problems(), IsEmpty());
  EXPECT_TRUE(table_->compact());
  EXPECT_EQ(generation().magic, kGenerationMagic);
  EXPECT_THAT(problems(), IsEmpty());
  EXPECT_EQ(table_->row(2), std::nullopt);
  EXPECT_EQ(table_->row(5), (ElfTable::Row{std::int64_t{50}, "e", 6}));
  table_.reset();
  EXPECT_THAT(pool_.check().problems, IsEmpty());
}

TEST_F(CheckTest, AnOpeningErasesWhatACompactHasFoldedIn) {
  EXPECT_TRUE(table_->compact());
  InsertedRows(*pool_.core(), generation().inserted).put(4, "folded");
  EXPECT_THAT(problems(), IsEmpty());
  EXPECT_EQ(InsertedRows(*pool_.core(), generation().inserted).get(4), std::nullopt);
  EXPECT_THAT(problems(), IsEmpty());
  EXPECT_EQ(table_->insert({std::int64_t{50}, "e", 6}), 5U);
}

TEST_F(CheckTest, AnOpeningFreesWhatABuildHasLeft) {
  generation();
  pool::PoolCore& core = *pool_.core();
  const std::uint64_t before = pool_.info().allocated;
  GenerationLayout& spare =
      add_generation(core, root_->generations[1 - current_of(*root_)], root_->columns);
  const std::string contents(100, 'x');
  add_block(core, columns_of(spare)[1].codes, std::as_bytes(std::span(contents)));
  EXPECT_GT(pool_.info().allocated, before);
  EXPECT_THAT(problems(), IsEmpty());
  EXPECT_EQ(pool_.info().allocated, before);
  table_.reset();
  EXPECT_THAT(pool_.check().problems, IsEmpty());
}

}  // namespace
}  // namespace perdix::detail::index::elf_table
