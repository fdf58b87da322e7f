// Arrow arrays in and out, as another program would make and take them.
#include <cstring>
#include <memory>
#include <optional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <perdix/arrow_abi.h>
#include <perdix/elf_table.h>
#include <perdix/error.h>
#include <perdix/pool.h>

#include "index/elf_table/test_points.h"
#include "util/random.h"
#include "util/test_directory.h"

namespace perdix::detail::index::elf_table {
namespace {

using ::testing::HasSubstr;
using P = ElfPredicate;

void keep(ArrowSchema*) {}
void keep(ArrowArray*) {}

/// A struct array with children whose memory the test has.
class Arrays {
 public:
  Arrays() {
    schema.format = "+s";
    schema.release = keep;
    array.release = keep;
    array.n_buffers = 1;
    array.buffers = no_buffers_;
  }

  void add(const char* name, const char* format, std::vector<const void*> buffers,
           std::int64_t offset = 0) {
    auto& child = children_.emplace_back(std::make_unique<Child>());
    child->buffers = std::move(buffers);
    child->schema.format = format;
    child->schema.name = name;
    child->schema.release = keep;
    child->array.length = rows;
    child->array.offset = offset;
    child->array.n_buffers = static_cast<std::int64_t>(child->buffers.size());
    child->array.buffers = child->buffers.data();
    child->array.release = keep;
    schemas_.push_back(&child->schema);
    arrays_.push_back(&child->array);
    schema.n_children = array.n_children = static_cast<std::int64_t>(children_.size());
    schema.children = schemas_.data();
    array.children = arrays_.data();
    array.length = rows;
  }

  ArrowArray& child(std::size_t i) { return children_[i]->array; }
  ArrowSchema& child_schema(std::size_t i) { return children_[i]->schema; }

  std::int64_t rows = 3;
  ArrowSchema schema{};
  ArrowArray array{};

 private:
  struct Child {
    ArrowSchema schema{};
    ArrowArray array{};
    std::vector<const void*> buffers;
  };

  const void* no_buffers_[1] = {nullptr};
  std::vector<std::unique_ptr<Child>> children_;
  std::vector<ArrowSchema*> schemas_;
  std::vector<ArrowArray*> arrays_;
};

class ArrowTest : public ::testing::Test {
 protected:
  static PoolOptions options() {
    PoolOptions options;
    options.max_size = std::uint64_t{256} << 20;
    return options;
  }

  void fill(Arrays& arrays) {
    arrays.add("s", "u", {nullptr, ends_, bytes_});
    arrays.add("n", "i", {nullptr, numbers_});
  }

  std::string refusal(const Arrays& arrays, Errc code = Errc::invalid_argument) {
    try {
      table_.build(arrays.schema, arrays.array);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      return error.what();
    }
    ADD_FAILURE() << "no error";
    return "";
  }

  const std::int32_t numbers_[4] = {-1, 7, 3, 9};
  const std::int32_t ends_[5] = {0, 2, 2, 5, 6};
  const char bytes_[7] = "abx\0yz";

  testing_files::TempDirectory directory_{testing_files::memory_directory()};
  Pool pool_ = Pool::create(directory_.file("pool"), options());
  ElfTable table_{pool_, "t", {{"n", ElfType::int32}, {"s", ElfType::string}}};
};

TEST_F(ArrowTest, TakesColumnsByName) {
  Arrays arrays;
  fill(arrays);
  arrays.add("other", "l", {nullptr, numbers_});
  EXPECT_TRUE(table_.build(arrays.schema, arrays.array));
  EXPECT_EQ(table_.row(0), (ElfTable::Row{-1, "ab"}));
  EXPECT_EQ(table_.row(1), (ElfTable::Row{7, ""}));
  EXPECT_EQ(table_.row(2), (ElfTable::Row{3, std::string("x\0y", 3)}));
  EXPECT_EQ(table_.count(), 3U);
}

TEST_F(ArrowTest, MindsOffsets) {
  Arrays arrays;
  arrays.rows = 2;
  arrays.add("s", "u", {nullptr, ends_, bytes_}, 1);
  arrays.add("n", "i", {nullptr, numbers_}, 1);
  EXPECT_TRUE(table_.build(arrays.schema, arrays.array));
  EXPECT_EQ(table_.row(1), (ElfTable::Row{3, std::string("x\0y", 3)}));
  arrays.array.offset = 1;  // of the struct
  arrays.array.length = 1;
  EXPECT_TRUE(table_.build(arrays.schema, arrays.array));
  EXPECT_EQ(table_.row(0), (ElfTable::Row{3, std::string("x\0y", 3)}));
  EXPECT_EQ(table_.count(), 1U);
}

TEST_F(ArrowTest, RefusesNullsAndDamage) {
  const std::uint8_t validity = 0b101;
  Arrays nulls;
  nulls.add("s", "u", {nullptr, ends_, bytes_});
  nulls.add("n", "i", {&validity, numbers_});
  nulls.child(1).null_count = -1;
  EXPECT_THAT(refusal(nulls), HasSubstr("row 1 of column 'n' is null"));
  nulls.child(1).null_count = 0;
  EXPECT_TRUE(table_.build(nulls.schema, nulls.array)) << "nothing is null";

  const std::int32_t descending[4] = {0, 3, 2, 5};
  Arrays damaged;
  damaged.add("n", "i", {nullptr, numbers_});
  damaged.add("s", "u", {nullptr, descending, bytes_});
  EXPECT_THAT(refusal(damaged), HasSubstr("offsets that descend"));
  damaged.child(0).length = 2;
  EXPECT_THAT(refusal(damaged), HasSubstr("2 rows"));
  EXPECT_EQ(table_.count(), 3U);
}

TEST_F(ArrowTest, RefusesOtherShapes) {
  Arrays missing;
  missing.add("n", "i", {nullptr, numbers_});
  EXPECT_THAT(refusal(missing), HasSubstr("no child 's'"));
  Arrays typed;
  typed.add("n", "l", {nullptr, numbers_});
  typed.add("s", "u", {nullptr, ends_, bytes_});
  EXPECT_THAT(refusal(typed), HasSubstr("column 'n' is of type int32"));
  Arrays encoded;
  fill(encoded);
  ArrowSchema dictionary{};
  encoded.child_schema(0).dictionary = &dictionary;
  EXPECT_THAT(refusal(encoded, Errc::unsupported), HasSubstr("with a dictionary"));
  Arrays list;
  fill(list);
  list.schema.format = "+l";
  EXPECT_THAT(refusal(list), HasSubstr("a struct (+s) is needed"));
  Arrays released;
  fill(released);
  released.array.release = nullptr;
  EXPECT_THAT(refusal(released), HasSubstr("released"));
}

TEST_F(ArrowTest, TellsTheColumnsOfASchema) {
  Arrays arrays;
  fill(arrays);
  const std::vector<ElfColumn> wanted = {{"s", ElfType::string}, {"n", ElfType::int32}};
  EXPECT_EQ(ElfTable::columns_of(arrays.schema), wanted);
  arrays.add("half", "e", {nullptr, numbers_});
  EXPECT_THROW(ElfTable::columns_of(arrays.schema), Error);
}

TEST_F(ArrowTest, RowsOfAllTypesComeBack) {
  util::Random random(3);
  TypedColumns columns(kAllTypes);
  std::vector<ElfTable::Row> rows;
  for (int i = 0; i < 100; ++i) columns.add(rows.emplace_back(random_row(random, kAllTypes)));
  ElfTable from(pool_, "from", kAllTypes);
  from.build(columns.data());
  rows.push_back(random_row(random, kAllTypes));
  from.insert(rows.back());

  ArrowSchema schema{};
  ArrowArray array{};
  from.to_arrow({}, schema, array, false);
  EXPECT_EQ(array.length, 101);
  EXPECT_STREQ(schema.children[4]->format, "z");
  EXPECT_EQ(ElfTable::columns_of(schema), kAllTypes);
  ElfTable to(pool_, "to", kAllTypes);
  EXPECT_TRUE(to.build(schema, array));
  schema.release(&schema);
  array.release(&array);
  EXPECT_EQ(schema.release, nullptr);
  EXPECT_EQ(array.release, nullptr);

  std::vector<ElfTable::Row> found;
  to.rows({}, [&](std::uint32_t, std::span<const ElfValue> row) {
    found.emplace_back(row.begin(), row.end());
    return true;
  });
  std::sort(found.begin(), found.end());
  std::sort(rows.begin(), rows.end());
  EXPECT_EQ(found, rows);
}

TEST_F(ArrowTest, AChildCanBeMovedOut) {
  table_.insert({5, "text"});
  ArrowSchema schema{};
  ArrowArray array{};
  table_.to_arrow({}, schema, array);
  EXPECT_STREQ(schema.children[1]->format, "u");
  ArrowArray child = *array.children[0];
  array.children[0]->release = nullptr;
  array.release(&array);
  schema.release(&schema);
  EXPECT_EQ(static_cast<const std::int32_t*>(child.buffers[1])[0], 5);
  child.release(&child);
}

TEST_F(ArrowTest, NoRowsGiveAnEmptyArray) {
  ArrowSchema schema{};
  ArrowArray array{};
  const std::vector<P> none = {P::equal("n", 1)};
  table_.to_arrow(none, schema, array);
  EXPECT_EQ(array.length, 0);
  EXPECT_EQ(array.n_children, 2);
  EXPECT_TRUE(table_.build(schema, array));
  array.release(&array);
  schema.release(&schema);
}

}  // namespace
}  // namespace perdix::detail::index::elf_table
