#include "index/elf_table/schema.h"

#include <algorithm>

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix {

std::string_view to_string(ElfType type) noexcept {
  switch (type) {
    case ElfType::int32: return "int32";
    case ElfType::int64: return "int64";
    case ElfType::float64: return "double";
    case ElfType::date: return "date";
    case ElfType::string: return "string";
  }
  return "unknown";
}

}  // namespace perdix

namespace perdix::detail::index::elf_table {
namespace {

bool is_type(ElfType type) { return type >= ElfType::int32 && type <= ElfType::string; }

void require_column(const ElfColumn& column) {
  if (!is_type(column.type)) {
    throw Error(Errc::invalid_argument,
                fmt::format("column '{}' has no type of an ElfTable", column.name));
  }
  if (column.name.empty() || column.name.size() > ElfTable::kMaxColumnName) {
    throw Error(Errc::invalid_argument,
                fmt::format("a column has a name of 1 to {} bytes, not of {}",
                            ElfTable::kMaxColumnName, column.name.size()));
  }
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::any_of(column.name.begin(), column.name.end(), is_control))
    throw Error(Errc::invalid_argument, "the name of a column has control characters");
}

std::string names_of(const Schema& schema) {
  std::string names;
  for (const ElfColumn& column : schema)
    names += fmt::format("{}{}", names.empty() ? "" : ", ", column.name);
  return names;
}

}  // namespace

void require_schema(const Schema& schema) {
  if (schema.empty() || schema.size() > ElfTable::kMaxColumns) {
    throw Error(Errc::invalid_argument, fmt::format("an ElfTable has 1 to {} columns, not {}",
                                                    ElfTable::kMaxColumns, schema.size()));
  }
  for (auto column = schema.begin(); column != schema.end(); ++column) {
    require_column(*column);
    const auto same = [&](const ElfColumn& other) { return other.name == column->name; };
    if (std::any_of(schema.begin(), column, same))
      throw Error(Errc::invalid_argument, fmt::format("two columns are called '{}'", column->name));
  }
}

std::string encode_schema(const Schema& schema) {
  std::string bytes;
  for (const ElfColumn& column : schema) {
    bytes += static_cast<char>(column.type);
    bytes += static_cast<char>(column.name.size());
    bytes += column.name;
  }
  return bytes;
}

std::optional<Schema> decode_schema(std::string_view bytes) {
  Schema schema;
  while (bytes.size() >= 2) {
    const auto type = static_cast<ElfType>(bytes[0]);
    const auto length = static_cast<unsigned char>(bytes[1]);
    bytes.remove_prefix(2);
    if (!is_type(type) || length > bytes.size()) return std::nullopt;
    schema.push_back({std::string(bytes.substr(0, length)), type});
    bytes.remove_prefix(length);
  }
  if (!bytes.empty()) return std::nullopt;
  try {
    require_schema(schema);
  } catch (const Error&) {
    return std::nullopt;
  }
  return schema;
}

unsigned column_number(const Schema& schema, std::string_view name) {
  const auto found = std::find_if(schema.begin(), schema.end(),
                                  [&](const ElfColumn& column) { return column.name == name; });
  if (found != schema.end()) return static_cast<unsigned>(found - schema.begin());
  throw Error(Errc::invalid_argument,
              fmt::format("there is no column '{}'; the columns are {}", name, names_of(schema)));
}

std::string describe(const Schema& schema) {
  std::string text;
  for (const ElfColumn& column : schema)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", column.name, to_string(column.type));
  return text;
}

}  // namespace perdix::detail::index::elf_table
