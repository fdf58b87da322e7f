// A test case for every engine, combination of kinds and domain. A suite is a file of these:
//
//   const Contract get_finds_nothing("get_finds_nothing", [](Fixture& fixture) {
//     AnyIndex index = fixture.open();
//     EXPECT_FALSE(index.contains(fixture.least_key()));
//   });
//
// A case may ask for indexes with order or for kinds, and runs for those that fit. It is named
// <engine>_<key kind>_<value kind>_<domain>.<name>.
#pragma once

#include <initializer_list>
#include <string>

#include "support/fixture.h"

namespace perdix::test {

inline constexpr std::initializer_list<Domain> kEverywhere = {
    Domain::process, Domain::memory_controller, Domain::page_cache};
inline constexpr std::initializer_list<Domain> kInMemory = {Domain::process,
                                                            Domain::memory_controller};
inline constexpr std::initializer_list<Domain> kInProcess = {Domain::process};

/// What a case may ask for.
inline bool ordered(const IndexType& type) { return type.ordered; }
inline bool buffered(const IndexType& type) { return type.buffered(); }
inline bool bytes_keys(const IndexType& type) { return type.key_kind == Kind::bytes; }
inline bool bytes_values(const IndexType& type) { return type.value_kind == Kind::bytes; }
inline bool ordered_bytes_values(const IndexType& type) {
  return ordered(type) && bytes_values(type);
}

/// A place in the sources. Not std::source_location, which not every compiler knows.
struct Place {
  const char* file;
  int line;

  /// As a default argument: where the call is.
  static constexpr Place here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, line};
  }
};

/// Registers itself with GoogleTest. Each case gets a different seed; a failure prints how to
/// replay it.
class Contract {
 public:
  using Body = void (*)(Fixture& fixture);
  using Fits = bool (*)(const IndexType& type);

  Contract(const std::string& name, Body body, std::initializer_list<Domain> domains = kEverywhere,
           Place where = Place::here());

  Contract(const std::string& name, Fits fits, Body body,
           std::initializer_list<Domain> domains = kEverywhere, Place where = Place::here());
};

}  // namespace perdix::test
