#include "index/elf_table/version.h"

#include <algorithm>

#include <fmt/format.h>

#include "index/elf_table/blocks.h"
#include "pm/access.h"
#include "pool/checked.h"

namespace perdix::detail::index::elf_table {

Version::Version(const pool::IndexHandle& index, const Schema& schema,
                 std::uint64_t& generation_word, const elf::Shape& shape)
    : pool_(index.pool()),
      layout_(checked_generation(pool_, pm::load(generation_word), schema.size())),
      tids_(pm::load(layout_.tids)),
      inserted_(pool_, layout_.inserted),
      elf_(index.part(layout_.elf), static_cast<unsigned>(schema.size()), shape) {
  open_columns(schema);
}

void Version::open_columns(const Schema& schema) {
  constexpr unsigned kNone = ~0U;
  columns_of_dimensions_.assign(schema.size(), kNone);
  for (unsigned i = 0; i < schema.size(); ++i) {
    const ColumnLayout& layout = columns_of(layout_)[i];
    const std::uint64_t dimension = pm::load(layout.dimension);
    if (dimension >= schema.size() || columns_of_dimensions_[dimension] != kNone)
      pool::throw_corrupt(pool_, "a dimension of an ElfTable", pool_.offset(&layout));
    columns_of_dimensions_[dimension] = i;
    const std::uint32_t* codes =
        tids_ == 0 ? nullptr
                   : checked_array<std::uint32_t>(pool_, pm::load(layout.codes), tids_, "codes");
    columns_.push_back(
        {Dictionary(pool_, schema[i], layout), codes, static_cast<unsigned>(dimension)});
  }
}

std::uint32_t Version::code(unsigned column, Tid tid) const {
  if (tid >= tids_) pool::throw_corrupt(pool_, fmt::format("the row {}", tid), 0);
  return pm::load(columns_[column].codes[tid]);
}

std::vector<std::uint32_t> Version::point(Tid tid) const {
  std::vector<std::uint32_t> point;
  for (const unsigned column : columns_of_dimensions_) point.push_back(code(column, tid));
  return point;
}

}  // namespace perdix::detail::index::elf_table
