// A test case for every engine, combination of kinds and domain. A suite is a file of these:
//
//   const Contract get_finds_nothing("get_finds_nothing", [](auto& rig) {
//     auto index = rig.open();
//     EXPECT_FALSE(index.contains(rig.key()));
//   });
//
// The body is a generic lambda that takes a Rig; if it is constrained (OrderedRig, BytesKeyRig), it
// runs for the rigs that fit. A case is named
// <engine>_<key kind>_<value kind>_<domain>.<name>.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <source_location>
#include <string>

#include "support/rig.h"

namespace perdix::test {

/// Registers one case with GoogleTest. The body gets a seed of its own; a failure prints how to
/// replay it.
void register_case(const std::string& suite, const std::string& name,
                   const std::source_location& where, std::function<void(std::uint64_t seed)> body);

inline constexpr std::initializer_list<Domain> kEverywhere = {
    Domain::process, Domain::memory_controller, Domain::page_cache};
inline constexpr std::initializer_list<Domain> kInMemory = {Domain::process,
                                                            Domain::memory_controller};
inline constexpr std::initializer_list<Domain> kInProcess = {Domain::process};

template <class Body>
class Contract {
 public:
  Contract(std::string name, Body body, std::initializer_list<Domain> domains = kEverywhere,
           std::source_location where = std::source_location::current())
      : name_(std::move(name)), body_(body), where_(where) {
    for (const Domain domain : domains) {
      for_each_type(Engines{}, [&]<class E>() {
        for_each_kinds([&]<Storable K, Storable V>() { add<Rig<E, K, V>>(domain); });
      });
    }
  }

 private:
  template <class R>
  void add(Domain domain) const {
    if constexpr (std::invocable<const Body&, R&>) {
      const std::string suite = std::string(R::Engine::kName) + "_" +
                                kinds_name<typename R::K, typename R::V>() + "_" +
                                std::string(name_of(domain));
      register_case(suite, name_, where_, [domain, body = body_](std::uint64_t seed) {
        R rig(domain, seed);
        body(rig);
        if (!testing::Test::HasFatalFailure()) rig.finish();
      });
    }
  }

  std::string name_;
  Body body_;
  std::source_location where_;
};

}  // namespace perdix::test
