// The catalogue beyond what a server's tests reach: the numbers of spaces at the end of their
// range.
#include "catalogue.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "bytes.h"
#include "refusal.h"
#include "util/test_directory.h"

namespace perdix::valkey {

/// Of Refusal, which is for servers, the catalogue needs this alone.
void Refusal::drop_reserve(const Pool&) {}

namespace {

using Spaces = std::vector<std::uint32_t>;
using Shown = std::vector<std::pair<int, std::string>>;

constexpr std::uint32_t kLast = std::numeric_limits<std::uint32_t>::max();

class CatalogueOfSpaces : public ::testing::Test {
 protected:
  /// What a server has left whose databases have these spaces.
  void store_spaces(std::uint32_t next, const Spaces& spaces) {
    std::string stored;
    append_number(stored, next);
    for (const std::uint32_t space : spaces) append_number(stored, space);
    const auto meta =
        Index::open_or_create(pool_, {"perdix:meta", "sptree", Kind::bytes, Kind::bytes});
    meta->put("spaces", stored);
  }

  static void put(Catalogue& catalogue, int database, const std::string& name) {
    KeyChange change;
    catalogue.key_in(database, name, change.key);
    change.record = "record";
    catalogue.apply({change});
  }

  static Shown shown(const Catalogue& catalogue) {
    Shown keys;
    catalogue.for_each([&](int database, std::string_view name, std::string_view) {
      keys.emplace_back(database, name);
    });
    return keys;
  }

  testing_files::TempDirectory directory_;
  Pool pool_ = Pool::create(directory_.file("pool").string());
};

TEST_F(CatalogueOfSpaces, BeginAgainBehindTheLastNumber) {
  store_spaces(kLast, {7, 1});
  Catalogue catalogue(pool_);
  put(catalogue, 1, "stays");
  for (int round = 0; round < 4; ++round) {  // the spaces are the last, 0, and 2: not 1
    catalogue.flush(0);
    put(catalogue, 0, "name" + std::to_string(round));
    Shown keys = shown(catalogue);
    std::sort(keys.begin(), keys.end());
    EXPECT_EQ(keys, (Shown{{0, "name" + std::to_string(round)}, {1, "stays"}}));
  }
  EXPECT_EQ(catalogue.take_left_spaces(), (Spaces{7, kLast, 0, 2}));
}

TEST_F(CatalogueOfSpaces, EraseTheLast) {
  store_spaces(kLast, {7});
  Catalogue catalogue(pool_);
  catalogue.flush(0);
  put(catalogue, 0, "in the last space");
  EXPECT_EQ(catalogue.abandoned(), Spaces());
  catalogue.flush(0);
  put(catalogue, 0, "stays");
  EXPECT_EQ(catalogue.abandoned(), (Spaces{kLast}));
  catalogue.erase_space(kLast);
  EXPECT_EQ(catalogue.abandoned(), Spaces());
  EXPECT_EQ(shown(catalogue), (Shown{{0, "stays"}}));
}

}  // namespace
}  // namespace perdix::valkey
