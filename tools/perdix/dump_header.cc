#include "perdix/dump_header.h"

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::tool {
namespace {

constexpr const char* kMark = "#perdix-dump";
constexpr const char* kVersion = "1";

Kind parse_kind(const std::string& word) {
  for (const Kind kind : {Kind::u64, Kind::bytes}) {
    if (word == to_string(kind)) return kind;
  }
  throw Error(Errc::invalid_argument,
              fmt::format("the first line of the dump names an unknown kind '{}'", word));
}

}  // namespace

std::string DumpHeader::line() const {
  return fmt::format("{}\t{}\t{}\t{}\t{}\n", kMark, kVersion, engine, to_string(keys),
                     to_string(values));
}

std::optional<DumpHeader> DumpHeader::parse(const std::vector<std::string>& fields) {
  if (fields[0] != kMark) return std::nullopt;
  if (fields.size() != 5 || fields[1] != kVersion) {
    throw Error(
        Errc::newer_format,
        fmt::format("the dump has another format version than {}; load it with the version of "
                    "perdix that wrote it, or a later one",
                    kVersion));
  }
  return DumpHeader{fields[2], parse_kind(fields[3]), parse_kind(fields[4])};
}

}  // namespace perdix::tool
