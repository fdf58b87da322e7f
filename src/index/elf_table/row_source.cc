#include "index/elf_table/row_source.h"

#include <fmt/format.h>

#include <perdix/error.h>

#include "index/elf_table/record.h"
#include "pool/checked.h"

namespace perdix::detail::index::elf_table {
namespace {

std::size_t rows_of(const ElfColumnData& column) {
  return std::visit([](const auto& values) { return values.size(); }, column);
}

/// The type whose values a column has: the last two alternatives are strings both.
ElfType type_of(const ElfColumnData& column) {
  return static_cast<ElfType>(std::min<std::size_t>(column.index() + 1, 5));
}

}  // namespace

ColumnSource::ColumnSource(const Schema& schema, std::span<const ElfColumnData> columns)
    : schema_(schema), columns_(columns) {
  if (columns.size() != schema.size()) {
    throw Error(Errc::invalid_argument,
                fmt::format("this ElfTable has {} columns, and is to be built of {}", schema.size(),
                            columns.size()));
  }
  rows_ = rows_of(columns[0]);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (type_of(columns[i]) != schema[i].type) {
      throw Error(
          Errc::invalid_argument,
          fmt::format("column '{}' is of type {}, and its values of type {}", schema[i].name,
                      to_string(schema[i].type), to_string(type_of(columns[i]))));
    }
    if (rows_of(columns[i]) != rows_) {
      throw Error(Errc::invalid_argument,
                  fmt::format("column '{}' has {} rows and column '{}' {}; all need as many",
                              schema[0].name, rows_, schema[i].name, rows_of(columns[i])));
    }
  }
  if (rows_ > Elf::kMaxRows)
    throw Error(Errc::too_large, fmt::format("an ElfTable has at most {} rows", Elf::kMaxRows));
}

void ColumnSource::encode(unsigned column, ColumnEncoder& encoder, const Tick& tick) const {
  std::uint64_t row = 0;
  const auto add = [&](const auto& values) {
    for (const auto& value : values) {
      encoder.add(key_of(value));
      if (++row % kRowsPerTick == 0) tick(row);
    }
  };
  try {
    std::visit(add, columns_[column]);
  } catch (const Error& error) {
    throw Error(error.code(),
                fmt::format("column '{}', row {}: {}", schema_[column].name, row, error.what()));
  }
}

TableSource::TableSource(const Schema& schema, const Version& version, std::uint64_t end)
    : schema_(schema), version_(version), end_(end) {
  read_listed();
  read_inserted();
}

void TableSource::read_listed() {
  for (Slot slot = 0; slot < version_.rows(); ++slot) {
    if (!version_.elf().has_listed(slot)) continue;
    listed_.push_back(slot);
    numbers_.push_back(version_.tid_of(slot));
  }
}

/// Each TID has a record, though it may be empty.
void TableSource::read_inserted() {
  std::vector<Key> keys(schema_.size());
  std::uint64_t next = version_.tids();
  version_.inserted().scan(next, [&](std::uint64_t tid, std::string_view record) {
    if (tid >= end_) return false;
    const bool sound = tid == next && (record.empty() || read_record(schema_, record, keys));
    if (!sound) {
      throw Error(Errc::corrupt, fmt::format("{}: the inserted row {} is damaged",
                                             version_.elf().pool().path().string(), tid));
    }
    ++next;
    if (record.empty()) return true;
    numbers_.push_back(static_cast<std::uint32_t>(tid));
    inserted_.emplace_back(record);
    return true;
  });
}

void TableSource::encode(unsigned column, ColumnEncoder& encoder, const Tick& tick) const {
  const Dictionary& dictionary = version_.dictionary(column);
  std::uint64_t rows = 0;
  const auto add = [&](const Key& key) {
    encoder.add(key);
    if (++rows % kRowsPerTick == 0) tick(rows);
  };
  for (const Slot slot : listed_) add(dictionary.key(version_.code(column, slot)));
  for (const std::string& record : inserted_) add(inserted_key(record, column));
}

/// The record was read before, so it is sound.
Key TableSource::inserted_key(const std::string& record, unsigned column) const {
  RecordReader reader(record);
  Key key;
  for (unsigned i = 0; i <= column; ++i) reader.next(schema_[i].type, key);
  return key;
}

}  // namespace perdix::detail::index::elf_table
