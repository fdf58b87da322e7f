// What happens on open: creation, and freeing what an interrupted build or compact left;
// destruction.
#include <fmt/format.h>

#include <perdix/error.h>

#include "index/common/retry.h"
#include "index/elf_table/blocks.h"
#include "index/elf_table/elf_table.h"
#include "index/elf_table/owned.h"
#include "pm/access.h"

namespace perdix::detail::index::elf_table {

Table::Table(pool::IndexHandle handle, const Schema& schema, const elf::Shape& shape)
    : handle_(std::move(handle)), shape_(shape) {
  retry_when_full(pool(), [&] { open(schema, shape); });
}

void Table::open(const Schema& schema, const elf::Shape& shape) {
  if (pm::load(handle_.root()) == pm::kNull) {
    if (schema.empty()) return;
    create_root(pool(), handle_.root(), schema);
  }
  root_ = &checked_root(pool(), pm::load(handle_.root()));
  schema_ = schema_of(pool(), *root_);
  if (!schema.empty() && schema != schema_) {
    throw Error(Errc::wrong_kind, fmt::format("index '{}' has the columns {}, not {}",
                                              handle_.name(), describe(schema_), describe(schema)));
  }
  free_spare(pool(), *root_);
  current_ = std::make_unique<Pinned>(*this, current_of(*root_));
  version().erase_folded();
  limit_.follow(version().rows(), shape.min_delta);
}

void Table::destroy(pool::PoolCore& pool, std::uint64_t& root) { free_all(pool, root); }

}  // namespace perdix::detail::index::elf_table
