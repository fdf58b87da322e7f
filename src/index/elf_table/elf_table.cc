#include "index/elf_table/elf_table.h"

#include <algorithm>

#include <fmt/format.h>

#include <perdix/error.h>

#include "index/elf_table/record.h"
#include "pm/access.h"

namespace perdix::detail::index::elf_table {

ElfTable::Tid Table::insert(std::span<const ElfValue> row) {
  if (row.size() != schema_.size()) {
    throw Error(Errc::invalid_argument, fmt::format("a row of this ElfTable has {} values, not {}",
                                                    schema_.size(), row.size()));
  }
  std::string record;
  for (std::size_t i = 0; i < row.size(); ++i)
    append_key(record, schema_[i].type, key_of(schema_[i], row[i]));
  Tid tid = 0;
  bool many = false;
  {
    const std::lock_guard lock(writers_);
    if (end_tid() >= Elf::kMaxRows) {
      throw Error(Errc::too_large, fmt::format("index '{}' has given all {} row numbers; build it "
                                               "anew",
                                               handle_.name(), Elf::kMaxRows));
    }
    tid = static_cast<Tid>(end_tid());
    version().inserted().put(tid, record);
    ++*next_tid_;
    if (inserted_rows_) ++*inserted_rows_;
    many = limit_.is_passed_by(*next_tid_ - version().tids());
  }
  // A query may still show rows of before the last compact: also in_use.
  if (many) limit_.compact(writers_, [this] { compact(nullptr); });
  return tid;
}

/// The TID of the next row. The caller holds writers_.
std::uint64_t Table::end_tid() {
  if (!next_tid_) {
    const auto last = version().inserted().find_floor(~std::uint64_t{0});
    next_tid_ = std::max(last ? last->first + 1 : 0, version().tids());
  }
  return *next_tid_;
}

bool Table::erase(Tid tid) {
  const std::lock_guard lock(writers_);
  erased_meanwhile_.prepare();
  const bool erased = tid < version().tids() ? erase_listed(tid) : erase_inserted(tid);
  if (erased) erased_meanwhile_.note(tid);
  return erased;
}

bool Table::erase_listed(Tid tid) {
  const std::optional<Slot> slot = version().slot_of(tid);
  return slot && version().elf().erase(*slot);
}

/// Leaves an empty record: the TID must not be used again.
bool Table::erase_inserted(Tid tid) {
  const std::optional<std::string> record = version().inserted().get(tid);
  if (!record || record->empty()) return false;
  version().inserted().put(tid, {});
  if (inserted_rows_) --*inserted_rows_;
  return true;
}

std::uint64_t Table::size() const {
  const std::lock_guard lock(writers_);
  return version().elf().size() + inserted_rows();
}

/// The caller holds writers_.
std::uint64_t Table::inserted_rows() const {
  if (inserted_rows_) return *inserted_rows_;
  std::uint64_t rows = 0;
  version().inserted().scan(version().tids(), [&](std::uint64_t, std::string_view record) {
    rows += record.empty() ? 0 : 1;
    return true;
  });
  inserted_rows_ = rows;
  return rows;
}

void Table::cache(const CachePolicy& policy) {
  const std::lock_guard lock(caching_);
  Pin(*this).elf().cache(policy);
  policy_ = policy;
}

void Table::wait_for_cache() const { Pin(*this).elf().wait_for_cache(); }

std::optional<ElfTable::Row> Table::row(Tid tid) const {
  const Pin version(*this);
  if (tid < version->tids()) {
    const std::optional<Slot> slot = version->slot_of(tid);
    if (!slot || !version->elf().has_listed(*slot)) return std::nullopt;
    return row_at(*version, schema_, *slot);
  }
  const std::optional<std::string> record = version->inserted().get(tid);
  if (!record || record->empty()) return std::nullopt;
  std::vector<Key> keys(schema_.size());
  if (!read_record(schema_, *record, keys)) {
    throw Error(Errc::corrupt,
                fmt::format("index '{}': the inserted row {} is damaged", handle_.name(), tid));
  }
  return row_of(schema_, keys);
}

ElfValue value_at(const Version& version, const Schema& schema, unsigned column, Slot slot) {
  return value_of(schema[column].type, version.dictionary(column).key(version.code(column, slot)));
}

ElfTable::Row row_at(const Version& version, const Schema& schema, Slot slot) {
  ElfTable::Row row;
  row.reserve(schema.size());
  for (unsigned i = 0; i < schema.size(); ++i) row.push_back(value_at(version, schema, i, slot));
  return row;
}

ElfTable::Row row_of(const Schema& schema, std::span<const Key> keys) {
  ElfTable::Row row;
  row.reserve(schema.size());
  for (std::size_t i = 0; i < schema.size(); ++i) row.push_back(value_of(schema[i].type, keys[i]));
  return row;
}

}  // namespace perdix::detail::index::elf_table
