#include "pool/index_table.h"

#include <algorithm>
#include <new>

#include <fmt/format.h>

#include <perdix/error.h>

namespace perdix::detail::pool {

IndexTable::Slot IndexTable::slot_of(std::string_view name) const {
  if (const auto slot = directory_.find(name)) return *slot;
  throw Error(Errc::not_found, fmt::format("pool '{}' has no index '{}'", pool_name_, name));
}

std::vector<IndexInfo> IndexTable::live() const {
  std::vector<IndexInfo> result;
  for (const Slot slot : directory_.live()) result.push_back(directory_.info(slot));
  std::sort(result.begin(), result.end(),
            [](const IndexInfo& a, const IndexInfo& b) { return a.name < b.name; });
  return result;
}

std::vector<IndexTable::Slot> IndexTable::dropping() const {
  std::vector<Slot> slots = directory_.dropping();
  std::erase_if(slots, [&](Slot slot) { return handles_[slot] != 0; });
  return slots;
}

std::vector<UnfinishedDrop> IndexTable::unfinished_drops() const {
  std::vector<UnfinishedDrop> drops;
  for (const Slot slot : dropping()) {
    const auto why = why_postponed_.find(slot);
    drops.push_back({directory_.info(slot),
                     why != why_postponed_.end() ? why->second : "the process had no memory"});
  }
  return drops;
}

void IndexTable::require_may_open(Slot slot, const IndexInfo& wanted) const {
  directory_.require_same(slot, wanted);
  require_closed(slot);
}

void IndexTable::require_closed(Slot slot) const {
  if (handles_[slot] == 0) return;
  throw Error(
      Errc::in_use,
      fmt::format("index '{}' of pool '{}' is open; close it first (an index is open at most "
                  "once)",
                  directory_.info(slot).name, pool_name_));
}

void IndexTable::require_all_closed() const {
  for (Slot slot = 0; slot < handles_.size(); ++slot) require_closed(slot);
}

void IndexTable::finish_drop(Slot slot) {
  directory_.finish_drop(slot);
  why_postponed_.erase(slot);
  remove_handle(slot);
}

void IndexTable::postpone_drop(Slot slot, std::string_view why) noexcept {
  try {
    why_postponed_.insert_or_assign(slot, std::string(why));
  } catch (const std::bad_alloc&) {
    // Then it is listed without a reason.
  }
}

}  // namespace perdix::detail::pool
