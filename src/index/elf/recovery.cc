// What happens on open. A table that was being built when the process ended stays until its word is
// needed. So the time of an opening depends on the size of the table only by one word for each slot
// and one for each segment.
#include <fmt/format.h>

#include <perdix/error.h>

#include "alloc/session.h"
#include "index/elf/elf.h"
#include "index/elf/owned.h"
#include "pool/checked.h"

namespace perdix::detail::index::elf {
namespace {

void delete_segments(Segment* first) {
  while (first != nullptr) {
    const std::unique_ptr<Segment> segment(first);
    first = segment->next.load(std::memory_order_acquire);
  }
}

}  // namespace

Table::Table(pool::IndexHandle handle, unsigned dimensions, const Shape& shape)
    : handle_(std::move(handle)),
      min_delta_(shape.min_delta),
      dead_rows_(pool().pm()),
      current_(pool().reclaimer()) {
  if (pm::load(handle_.root()) == pm::kNull) {
    if (dimensions == 0) return;
    create(dimensions, shape);
  }
  root_ = &checked_root(pool(), pm::load(handle_.root()));
  dimensions_ = root_->dimensions;
  if (dimensions != 0 && dimensions != dimensions_) {
    throw Error(Errc::wrong_kind, fmt::format("index '{}' has {} dimensions, not {}",
                                              handle_.name(), dimensions_, dimensions));
  }
  auto version =
      std::make_unique<Version>(pool(), *root_, pm::load(root_->tables[pm::load(root_->current)]));
  try {
    open_segments(*version);
  } catch (...) {
    delete_segments(version->segments());
    throw;
  }
  limit_.follow(pm::load(version->table().rows), min_delta_);
  current_.open(std::move(version));
  listed_.emplace(pool().open_indexes(), *this);
}

Table::~Table() {
  listed_.reset();
  if (current_.is_open()) delete_segments(version().segments());
}

/// Makes root and first table as one: the root word is the commit.
void Table::create(unsigned dimensions, const Shape& shape) {
  alloc::Session session = pool().allocator().session();
  const pm::Offset root_block = session.reserve(sizeof(Root));
  const pm::Offset table_block = session.reserve(sizeof(TableLayout));
  auto& table = *pool().at<TableLayout>(table_block);
  pool().pm().zero(&table, sizeof table);
  pool().pm().store(table.magic, kTableMagic);
  pool().pm().flush(&table, sizeof table);  // the commit fences
  const Root root = {.magic = kRootMagic,
                     .dimensions = dimensions,
                     .slot_shift = shape.slot_shift,
                     .segment_rows = shape.segment_rows,
                     .zero = 0,
                     .current = 0,
                     .tables = {table_block, pm::kNull},
                     .reserved = {}};
  auto* const to = pool().at<Root>(root_block);
  pool().pm().copy(to, &root, sizeof root);
  pool().pm().flush(to, sizeof root);  // the commit fences
  session.commit(pm::set_word(handle_.root(), root_block));
}

/// Only the last segment may be empty, so TIDs ascend along the chain, and it can't be a ring.
void Table::open_segments(Version& version) {
  std::uint64_t next_tid = version.tids();
  pm::Offset next = pm::load(version.table().segments);
  while (next != pm::kNull) {
    Segment::require_valid(pool(), *root_, next, next_tid);
    auto segment = std::make_unique<Segment>(pool(), *root_, next, next_tid);
    const bool follows_empty = last_segment_ != nullptr && last_segment_->visible() == 0;
    if (follows_empty || segment->end() > kMaxTids) pool::throw_corrupt(pool(), "a segment", next);
    next = pm::load(segment->layout().next);
    next_tid = segment->end();
    Segment* const added = segment.release();
    if (last_segment_ != nullptr) {
      last_segment_->next.store(added, std::memory_order_relaxed);
    } else {
      version.set_segments(added);
    }
    last_segment_ = added;
  }
}

void Table::destroy(pool::PoolCore& pool, std::uint64_t& root) {
  DroppedBlocks dropped(pool.allocator());
  walk(pool, root, dropped);
}

}  // namespace perdix::detail::index::elf
