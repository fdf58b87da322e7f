#include "pool/as_errors.h"

#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include <gtest/gtest.h>

#include <perdix/error.h>

namespace perdix::detail::pool {
namespace {

template <class Exception>
void expect_translated(const Exception& exception, Errc code, const std::string& text) {
  try {
    as_errors([&] { throw exception; });
    ADD_FAILURE() << "returned";
  } catch (const Error& error) {
    EXPECT_EQ(to_string(error.code()), to_string(code));
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

TEST(AsErrors, TurnsStandardExceptionsIntoErrors) {
  expect_translated(std::bad_alloc(), Errc::no_memory, "no memory");
  expect_translated(std::bad_array_new_length(), Errc::no_memory, "no memory");
  expect_translated(std::length_error("vector::reserve"), Errc::no_memory, "no memory");
  expect_translated(std::system_error(ENOMEM, std::generic_category()), Errc::no_memory,
                    "no memory");
  expect_translated(std::system_error(EAGAIN, std::generic_category(), "a thread"),
                    Errc::no_threads, "a thread");
  expect_translated(std::system_error(EIO, std::generic_category(), "a file"), Errc::io_error,
                    "a file");
  expect_translated(
      std::filesystem::filesystem_error("stat", std::make_error_code(std::errc::permission_denied)),
      Errc::io_error, "stat");
}

TEST(AsErrors, LeavesErrorsAndResultsAlone) {
  expect_translated(Error(Errc::in_use, "orders.pool is in use"), Errc::in_use,
                    "orders.pool is in use");
  EXPECT_EQ(as_errors([] { return 7; }), 7);
  int word = 0;
  EXPECT_EQ(&as_errors([&]() -> int& { return word; }), &word);
}

TEST(AsErrors, PassesOtherExceptionsOn) {
  EXPECT_THROW(as_errors([] { throw 7; }), int);
}

}  // namespace
}  // namespace perdix::detail::pool
