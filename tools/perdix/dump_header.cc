#include "perdix/dump_header.h"

#include <charconv>

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::tool {
namespace {

constexpr const char* kMark = "#perdix-dump";
constexpr const char* kEndMark = "#perdix-end";
constexpr const char* kVersion = "2";  // 1 had no last line

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

std::string DumpEnd::line() const { return fmt::format("{}\t{}\n", kEndMark, rows); }

std::optional<DumpEnd> DumpEnd::parse(const std::vector<std::string>& fields) {
  if (fields[0] != kEndMark) return std::nullopt;
  DumpEnd end;
  const std::string number = fields.size() == 2 ? fields[1] : "";
  const char* last = number.data() + number.size();
  const auto [rest, failure] = std::from_chars(number.data(), last, end.rows);
  if (failure != std::errc() || rest != last) {
    throw Error(Errc::invalid_argument, "the last line of the dump is damaged");
  }
  return end;
}

}  // namespace perdix::tool
