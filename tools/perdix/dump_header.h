// The first line of a dump, which says what the index was: "#perdix-dump", format version, engine,
// kind of keys, kind of values, separated by tabs. A key that begins with "#" is written with its
// "#" escaped, so no row looks like it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <perdix/types.h>

namespace perdix::tool {

struct DumpHeader {
  std::string engine;
  Kind keys = Kind::bytes;
  Kind values = Kind::bytes;

  std::string line() const;

  /// Nothing if the fields are not those of such a line. Throws perdix::Error if they are those of
  /// a later version.
  static std::optional<DumpHeader> parse(const std::vector<std::string>& fields);
};

}  // namespace perdix::tool
