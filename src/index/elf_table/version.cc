#include "index/elf_table/version.h"

#include <algorithm>

#include <fmt/format.h>

#include "index/elf_table/blocks.h"
#include "pm/access.h"
#include "pool/checked.h"

namespace perdix::detail::index::elf_table {

namespace {

/// Opens or makes a tree. It has a head, so that its root word stays where it is when a compact
/// hands the tree over to another generation.
std::shared_ptr<InsertedRows> open_inserted(pool::PoolCore& pool, std::uint64_t& word) {
  fastfair::root_word(pool, word, true);
  return std::make_shared<InsertedRows>(pool, word);
}

}  // namespace

Version::Version(const pool::IndexHandle& index, const Schema& schema,
                 std::uint64_t& generation_word, const elf::Shape& shape,
                 std::shared_ptr<InsertedRows> inserted)
    : pool_(index.pool()),
      layout_(checked_generation(pool_, pm::load(generation_word), schema.size())),
      tids_(pm::load(layout_.tids)),
      rows_(rows_of(layout_)),
      inserted_(inserted ? std::move(inserted) : open_inserted(pool_, layout_.inserted)),
      elf_(index.part(layout_.elf), static_cast<unsigned>(schema.size()), shape) {
  open_numbers();
  open_columns(schema);
}

void Version::open_numbers() {
  const pm::Offset numbers = numbers_of(layout_);
  const bool sound = rows_ == 0 || numbers != pm::kNull ? rows_ <= tids_ : rows_ == tids_;
  if (!sound) pool::throw_corrupt(pool_, "a generation of an ElfTable", pool_.offset(&layout_));
  if (numbers != pm::kNull)
    numbers_ = checked_array<std::uint32_t>(pool_, numbers, rows_, "numbers of rows");
}

std::optional<Slot> Version::slot_of(Tid tid) const {
  if (tid >= tids_ || rows_ == 0) return std::nullopt;
  if (numbers_ == nullptr) return tid;
  const std::uint32_t* const at = std::lower_bound(
      numbers_, numbers_ + rows_, tid,
      [](const std::uint32_t& number, Tid wanted) { return pm::load(number) < wanted; });
  if (at == numbers_ + rows_ || pm::load(*at) != tid) return std::nullopt;
  return static_cast<Slot>(at - numbers_);
}

void Version::take_over(const Version& other) {
  pool_.pm().store(layout_.inserted, pm::load(other.layout_.inserted));
  pool_.pm().flush(&layout_.inserted, sizeof layout_.inserted);  // the commit of `current` fences
}

/// In batches, whose keys are collected first: a scan holds nothing that an erase may change.
void Version::erase_folded() {
  constexpr std::size_t kBatch = 1024;
  std::vector<std::uint64_t> folded;
  do {
    folded.clear();
    inserted_->scan(
        0,
        [&](std::uint64_t tid, std::string_view) {
          if (tid < tids_) folded.push_back(tid);
          return tid < tids_;
        },
        kBatch);
    for (const std::uint64_t tid : folded) inserted_->erase(tid);
  } while (!folded.empty());
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
        rows_ == 0 ? nullptr
                   : checked_array<std::uint32_t>(pool_, pm::load(layout.codes), rows_, "codes");
    columns_.push_back(
        {Dictionary(pool_, schema[i], layout), codes, static_cast<unsigned>(dimension)});
  }
}

void Version::throw_no_row(Slot slot) const {
  pool::throw_corrupt(pool_, fmt::format("the row {}", slot), 0);
}

std::uint32_t Version::code(unsigned column, Slot slot) const {
  require_slot(slot);
  return pm::load(columns_[column].codes[slot]);
}

std::vector<std::uint32_t> Version::point(Slot slot) const {
  std::vector<std::uint32_t> point;
  for (const unsigned column : columns_of_dimensions_) point.push_back(code(column, slot));
  return point;
}

}  // namespace perdix::detail::index::elf_table
