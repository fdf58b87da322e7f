#include "perdix/elf_rows.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include <fmt/format.h>

#include <perdix/error.h>

#include "perdix/elf_values.h"
#include "perdix/notation.h"

namespace perdix::tool {

ElfRows::ElfRows(const std::vector<ElfColumn>& columns)
    : columns_(columns), fields_(columns.size()), width_(columns.size()), row_(columns.size()) {
  std::iota(fields_.begin(), fields_.end(), std::size_t{0});
  for (const ElfColumn& column : columns) {
    switch (column.type) {
      case ElfType::int32: values_.emplace_back(std::vector<std::int32_t>()); break;
      case ElfType::int64: values_.emplace_back(std::vector<std::int64_t>()); break;
      case ElfType::float64: values_.emplace_back(std::vector<double>()); break;
      case ElfType::date: values_.emplace_back(std::vector<ElfDate>()); break;
      case ElfType::string: values_.emplace_back(std::vector<std::string>()); break;
    }
  }
}

void ElfRows::take_names(const Row& row) {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const auto found = std::find(row.fields.begin(), row.fields.end(), columns_[i].name);
    if (found == row.fields.end()) {
      throw Error(Errc::invalid_argument,
                  fmt::format("the first row names no column '{}'", escape(columns_[i].name)));
    }
    if (std::find(found + 1, row.fields.end(), columns_[i].name) != row.fields.end()) {
      throw Error(Errc::invalid_argument,
                  fmt::format("the first row names two columns '{}'", escape(columns_[i].name)));
    }
    fields_[i] = static_cast<std::size_t>(found - row.fields.begin());
  }
  width_ = row.fields.size();
}

void ElfRows::add(const Row& row) {
  if (row.fields.size() != width_) {
    throw Error(Errc::invalid_argument, fmt::format("the row has {} columns, and {} are wanted",
                                                    row.fields.size(), width_));
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    try {
      row_[i] = parse_value(row.fields[fields_[i]], columns_[i].type);
    } catch (const Error& error) {
      throw Error(error.code(),
                  fmt::format("column '{}': {}", escape(columns_[i].name), error.what()));
    }
  }
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const auto append = [&](auto& values) {
      using Value = typename std::decay_t<decltype(values)>::value_type;
      values.push_back(std::get<Value>(std::move(row_[i])));
    };
    std::visit(append, values_[i]);
  }
  ++rows_;
}

std::vector<ElfColumnData> ElfRows::data() const {
  std::vector<ElfColumnData> data;
  for (const Values& values : values_)
    std::visit([&](const auto& typed) { data.emplace_back(std::span(typed)); }, values);
  return data;
}

}  // namespace perdix::tool
