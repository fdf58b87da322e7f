#include "support/contract.h"

#include <errno.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <exception>
#include <iostream>

namespace perdix::test {
namespace {

class Case : public testing::Test {
 public:
  Case(std::string full_name, std::function<void(std::uint64_t)> body)
      : full_name_(std::move(full_name)), body_(std::move(body)) {}

  void TestBody() override {
    try {
      body_(seed() ^ mix(full_name_));
    } catch (const std::exception& error) {
      ADD_FAILURE() << "an unexpected exception: " << error.what();
    }
    if (HasFailure()) {
      std::cout << fmt::format("replay: {} {} --gtest_filter={}\n", replay_environment(),
                               program_invocation_name, full_name_);
    }
  }

 private:
  std::string full_name_;
  std::function<void(std::uint64_t)> body_;
};

// GoogleTest's filters give ':' and '-' a meaning.
std::string plain(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ':' || c == '-' || c == '.'; }, '_');
  return name;
}

}  // namespace

void register_case(const std::string& suite, const std::string& name,
                   const std::source_location& where,
                   std::function<void(std::uint64_t seed)> body) {
  const std::string suite_name = plain(suite);
  const std::string full_name = suite_name + "." + name;
  testing::RegisterTest(suite_name.c_str(), name.c_str(), nullptr, nullptr, where.file_name(),
                        static_cast<int>(where.line()),
                        [full_name, body = std::move(body)]() -> testing::Test* {
                          return new Case(full_name, body);  // GoogleTest deletes it
                        });
}

}  // namespace perdix::test
