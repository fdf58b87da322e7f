#include "samples/points/points.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include <perdix/error.h>

#include "alloc/session.h"
#include "index/common/open_or_remove.h"
#include "index/common/retry.h"
#include "pm/access.h"
#include "pool/pool_core.h"

namespace perdix::samples::points {
namespace {

struct Block {
  std::uint64_t count;  // of the points that follow
};
static_assert(sizeof(Block) == 8);

constexpr std::uint64_t kFirstRoom = 4;

/// The points of a block, and room for more. Throws corrupt if the root leads to none.
struct Rows {
  Rows(detail::pool::PoolCore& pool, detail::pm::Offset offset) {
    if (offset == detail::pm::kNull) return;
    if (!pool.allocator().validate_block(offset, sizeof(Block))) throw_corrupt(pool);
    block = pool.at<Block>(offset);
    points = reinterpret_cast<Point*>(block + 1);
    room = (pool.allocator().block_size(offset) - sizeof *block) / sizeof(Point);
    if (detail::pm::load(block->count) > room) throw_corrupt(pool);
  }

  [[noreturn]] static void throw_corrupt(const detail::pool::PoolCore& pool) {
    throw Error(Errc::corrupt, fmt::format("{}: a table of sample points is damaged; run `perdix "
                                           "check` on the pool",
                                           pool.path().string()));
  }

  std::uint64_t count() const { return block == nullptr ? 0 : detail::pm::load(block->count); }
  Point operator[](std::uint64_t i) const {
    return {detail::pm::load(points[i].x), detail::pm::load(points[i].y)};
  }

  Block* block = nullptr;
  Point* points = nullptr;
  std::uint64_t room = 0;
};

}  // namespace

std::unique_ptr<Table> Table::open_or_create(const Pool& pool, std::string_view name) {
  IndexInfo info{std::string(name), std::string(kEngineName), Kind::u64, Kind::u64};
  info.model = DataModel::points;
  return detail::index::open_or_remove(
      *pool.core(), info, [&](std::uint64_t& root) { destroy(*pool.core(), root); },
      [](detail::pool::IndexHandle handle) { return std::make_unique<Table>(std::move(handle)); });
}

void Table::destroy(detail::pool::PoolCore& pool, std::uint64_t& root) {
  if (detail::pm::load(root) == detail::pm::kNull) return;
  detail::alloc::Session session = pool.allocator().session();
  session.free(detail::pm::load(root));
  session.commit(detail::pm::set_word(root, detail::pm::kNull));
}

std::uint64_t Table::add(Point point) {
  const std::lock_guard guard(lock_);
  detail::pool::PoolCore& pool = handle_.pool();
  if (const Rows rows(pool, detail::pm::load(handle_.root())); rows.count() == rows.room) grow();
  const Rows rows(pool, detail::pm::load(handle_.root()));
  const std::uint64_t row = rows.count();
  pool.pm().copy(&rows.points[row], &point, sizeof point);
  pool.pm().flush(&rows.points[row], sizeof point);
  pool.pm().commit(rows.block->count, row + 1);  // fences first: the point is durable before it
  return row;
}

std::vector<Point> Table::rows() const {
  const std::lock_guard guard(lock_);
  const Rows rows(handle_.pool(), detail::pm::load(handle_.root()));
  std::vector<Point> all;
  for (std::uint64_t i = 0; i < rows.count(); ++i) all.push_back(rows[i]);
  return all;
}

IndexStats Table::stats() const {
  const std::lock_guard guard(lock_);
  const Rows rows(handle_.pool(), detail::pm::load(handle_.root()));
  IndexStats stats;
  stats.pairs = rows.count();
  stats.pm_bytes = rows.room * sizeof(Point);
  stats.dram_bytes = sizeof *this;
  return stats;
}

CheckReport Table::check() const {
  const std::lock_guard guard(lock_);
  const Rows rows(handle_.pool(), detail::pm::load(handle_.root()));
  CheckReport report;
  report.pairs = rows.count();
  report.blocks = rows.block == nullptr ? 0 : 1;
  return report;
}

void Table::for_each_block(const detail::pool::BlockVisitor& visit) const {
  if (const detail::pm::Offset block = detail::pm::load(handle_.root()); block != detail::pm::kNull)
    visit(block);
}

/// Moves the points into a block with room for twice as many. The root is the commit.
void Table::grow() {
  detail::pool::PoolCore& pool = handle_.pool();
  const detail::pm::Offset before = detail::pm::load(handle_.root());
  const Rows rows(pool, before);
  const std::uint64_t room = std::max(kFirstRoom, 2 * rows.count());
  detail::alloc::Session session = pool.allocator().session();
  const detail::pm::Offset offset = session.reserve(sizeof(Block) + room * sizeof(Point));
  Block& block = *pool.at<Block>(offset);
  pool.pm().store(block.count, rows.count());
  if (rows.block != nullptr) {
    pool.pm().copy(&block + 1, rows.points, rows.count() * sizeof(Point));
    session.free(before);
  }
  pool.pm().flush(&block, sizeof block + rows.count() * sizeof(Point));  // the commit fences
  session.commit(detail::pm::set_word(handle_.root(), offset));
}

}  // namespace perdix::samples::points
