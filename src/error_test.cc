#include <set>
#include <string>

#include <gtest/gtest.h>

#include <perdix/error.h>

namespace perdix {
namespace {

TEST(Error, CarriesItsCodeAndItsMessage) {
  try {
    throw Error(Errc::in_use, "orders.pool is in use");
  } catch (const std::runtime_error& e) {
    EXPECT_STREQ(e.what(), "orders.pool is in use");
    EXPECT_EQ(dynamic_cast<const Error&>(e).code(), Errc::in_use);
  }
}

TEST(Error, NoMemoryHasAMessageThatIsNotAllocated) {
  const Error error = Error::no_memory();
  const Error copy = error;
  EXPECT_EQ(copy.code(), Errc::no_memory);
  EXPECT_EQ(static_cast<const void*>(copy.what()), static_cast<const void*>(error.what()));
  EXPECT_NE(std::string_view(error.what()).find("no memory"), std::string_view::npos);
  EXPECT_STREQ(Error(Errc::no_memory, "said otherwise").what(), "said otherwise");
}

TEST(Error, EveryCodeHasANameOfItsOwn) {
  std::set<std::string_view> names;
  const int last = static_cast<int>(Errc::no_memory);
  for (int code = 0; code <= last; ++code) names.insert(to_string(static_cast<Errc>(code)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(last) + 1);
  EXPECT_EQ(names.count("unknown"), 0u);
  EXPECT_EQ(to_string(static_cast<Errc>(last + 1)), "unknown");
}

}  // namespace
}  // namespace perdix
