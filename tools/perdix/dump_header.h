// The first and the last line of a dump. The first one says what the index was: "#perdix-dump",
// format version, engine, kind of keys, kind of values, separated by tabs. The last one is
// "#perdix-end" and the number of rows: a dump without it was cut off. A key that begins with "#"
// is written with its "#" escaped, so no row looks like either.
#pragma once

#include <cstdint>
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

struct DumpEnd {
  std::uint64_t rows = 0;

  std::string line() const;

  /// Nothing if the fields are not those of such a line. Throws perdix::Error invalid_argument if
  /// the number of rows is missing or is no number.
  static std::optional<DumpEnd> parse(const std::vector<std::string>& fields);
};

}  // namespace perdix::tool
