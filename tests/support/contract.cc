#include "support/contract.h"

#include <errno.h>

#include <algorithm>
#include <exception>
#include <iostream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "util/test_name.h"

namespace perdix::test {
namespace {

/// One contract for one type of index in one domain.
struct Subject {
  std::string full_name;
  const IndexType& type;
  Domain domain;
  Contract::Body body;

  void run() const {
    Fixture fixture(type, domain, seed() ^ mix(full_name));
    body(fixture);
    if (!testing::Test::HasFatalFailure()) fixture.finish();
  }
};

class Case : public testing::Test {
 public:
  explicit Case(Subject subject) : subject_(std::move(subject)) {}

  void TestBody() override {
    try {
      subject_.run();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "an unexpected exception: " << error.what();
    }
    if (HasFailure()) {
      std::cout << fmt::format("replay: {} {} --gtest_filter={}\n", replay_environment(),
                               program_invocation_name, subject_.full_name);
    }
  }

 private:
  Subject subject_;
};

void add_case(const IndexType& type, Domain domain, const std::string& name, Contract::Body body,
              Place where) {
  const std::string suite =
      detail::util::test_name(fmt::format("{}_{}_{}", type.name, type.kinds(), name_of(domain)));
  const Subject subject = {suite + "." + name, type, domain, body};
  testing::RegisterTest(suite.c_str(), name.c_str(), nullptr, nullptr, where.file, where.line,
                        [subject]() -> testing::Test* {
                          return new Case(subject);  // GoogleTest deletes it
                        });
}

bool any(const IndexType&) { return true; }

}  // namespace

Contract::Contract(const std::string& name, Body body, std::initializer_list<Domain> domains,
                   Place where)
    : Contract(name, any, body, domains, where) {}

Contract::Contract(const std::string& name, Fits fits, Body body,
                   std::initializer_list<Domain> domains, Place where) {
  for (const Domain domain : domains) {
    for (const IndexType& type : index_types()) {
      if (fits(type)) add_case(type, domain, name, body, where);
    }
  }
}

}  // namespace perdix::test
