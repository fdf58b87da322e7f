#include "index/elf/elf.h"

#include <algorithm>
#include <bit>
#include <new>

#include <fmt/format.h>

#include <perdix/error.h>

#include "alloc/session.h"
#include "index/common/retry.h"
#include "index/elf/caches/explain.h"
#include "index/elf/counter.h"
#include "index/elf/find.h"
#include "index/elf/stream.h"
#include "index/elf/walk.h"
#include "pool/as_errors.h"

namespace perdix::detail::index::elf {

/// Calls visit(tid) for each row of the box that is there and lies in the lists, until it returns
/// false. Returns whether it never did.
template <class Visit>
bool Table::each_listed(const Version& version, const Box& box, const Visit& visit) const {
  auto listed = [&](const Row& row) {
    return version.is_dead(row.tid, dead_rows_) || visit(row.tid);
  };
  return with_source(version, [&](const Lists& lists, auto& source) {
    return Walk(lists, source, box, listed).run();
  });
}

/// Like each_listed(), for the rows of the box that were inserted since the lists were built.
template <class Visit>
bool Table::each_inserted(const Version& version, const Box& box, const Visit& visit) const {
  for (Segment* s = version.segments(); s != nullptr; s = s->next.load(std::memory_order_acquire)) {
    for (std::uint32_t i = 0, rows = s->visible(); i < rows; ++i) {
      if (!box.admits_all(s->row(i), 0) || dead_rows_.is_dead(s->dead(), i)) continue;
      if (!visit(static_cast<Tid>(s->first() + i))) return false;
    }
  }
  return true;
}

std::optional<Tid> Table::exact(Point point) const {
  const epoch::Guard guard;
  const Version& version = this->version();
  std::optional<Tid> found;
  const auto listed = [&](Tid tid) {
    if (!version.is_dead(tid, dead_rows_)) found = tid;
    return !found;
  };
  with_source(version, [&](const Lists& lists, auto& source) {
    Find(lists, source, point.data(), listed).run();
  });
  for (Segment* s = version.segments(); s != nullptr && !found;
       s = s->next.load(std::memory_order_acquire)) {
    s->find(point, [&](std::uint32_t i) {
      if (!dead_rows_.is_dead(s->dead(), i)) found = static_cast<Tid>(s->first() + i);
      return found.has_value();
    });
  }
  return found;
}

bool Table::has_listed(Tid tid) const {
  const epoch::Guard guard;
  const Version& version = this->version();
  return tid < version.tids() && !version.is_missing(tid, dead_rows_);
}

void Table::collect(const Box& box, std::vector<Tid>& tids) const {
  const epoch::Guard guard;
  const Version& version = this->version();
  const auto add = [&](Tid tid) {
    tids.push_back(tid);
    return true;
  };
  each_listed(version, box, add);
  each_inserted(version, box, add);
}

std::uint64_t Table::count(const Box& box) const {
  if (box.has_all()) return size();
  const epoch::Guard guard;
  const Version& version = this->version();
  std::uint64_t rows = with_source(version, [&](const Lists& lists, auto& source) {
    return RowCounter(lists, source, box).run();
  });
  if (rows > 0 && version.erased()) rows -= count_erased(version, box, rows);
  each_inserted(version, box, [&](Tid) {
    ++rows;
    return true;
  });
  return rows;
}

/// How many of the `rows` rows that the lists have in a box were erased.
std::uint64_t Table::count_erased(const Version& version, const Box& box,
                                  std::uint64_t rows) const {
  // A row of a walk costs about what some points cost.
  constexpr std::uint64_t kPointsPerRow = 4;
  ErasedPoints& erased = version.erased_points();
  const ErasedPoints::Points* points = erased.current();
  if (points == nullptr && erased.walk_pays(rows, pm::load(version.table().rows)))
    points = collect_erased(version);
  if (points != nullptr && points->size() / kPointsPerRow <= rows) return points->count(box);
  std::uint64_t count = 0;
  each_erased(version, box, [&](const Row&) { ++count; });
  return count;
}

/// Null, too, for want of memory: a count needs none.
const ErasedPoints::Points* Table::collect_erased(const Version& version) const {
  try {
    return version.erased_points().renew(
        pool().reclaimer(), dimensions_, [&](ErasedPoints::Points& points) {
          each_erased(version, box(), [&](const Row& row) { points.add(row.values.data()); });
        });
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

/// Calls visit(row) for each row of the box that lies in the lists and was erased.
template <class Visit>
void Table::each_erased(const Version& version, const Box& box, const Visit& visit) const {
  auto listed = [&](const Row& row) {
    if (version.is_dead(row.tid, dead_rows_)) visit(row);
    return true;
  };
  with_source(version, [&](const Lists& lists, auto& source) {
    return Walk(lists, source, box, listed).run();
  });
}

void Table::show(const Box& box, const TidVisitor& visit) const {
  const auto require_usable = [&] { pool().require_usable(); };
  Stream stream = pool::as_errors(pool(), [&] { return Stream(current_, dead_rows_, box); });
  for (;;) {
    const std::span<const Tid> tids = pool::as_errors(pool(), [&] { return stream.next(); });
    pool::as_errors(require_usable);  // before it shows what it has read
    if (tids.empty()) return;
    for (const Tid tid : tids) {
      if (!visit(tid)) return;
      pool::as_errors(require_usable);  // in a child that the visitor forked
    }
  }
}

std::vector<ElfStep> Table::explain(const Box& box) const {
  std::vector<ElfStep> steps(dimensions_);
  const epoch::Guard guard;
  const Version& version = this->version();
  elf::explain(version.lists(), version.cache(), pm::load(version.table().rows), box, steps);
  return steps;
}

Tid Table::insert(Point point) {
  bool many = false;
  const Tid tid = retry_when_full(pool(), [&] {
    const std::lock_guard lock(writers_);
    Segment& segment = segment_with_room();
    const std::uint64_t added = segment.end();
    segment.append(point);
    if (size_) ++*size_;
    many = limit_.is_passed_by(segment.end() - version().tids());
    return static_cast<Tid>(added);
  });
  if (many) limit_.compact(writers_, [this] { compact(nullptr); });
  return tid;
}

Segment& Table::segment_with_room() {
  const std::uint64_t next = last_segment_ != nullptr ? last_segment_->end() : version().tids();
  if (next >= kMaxTids) {
    throw Error(Errc::too_large,
                fmt::format("index '{}' has given all {} row numbers; build it anew",
                            handle_.name(), kMaxTids));
  }
  if (last_segment_ == nullptr || last_segment_->full()) add_segment();
  return *last_segment_;
}

void Table::add_segment() {
  const std::uint64_t first = last_segment_ != nullptr ? last_segment_->end() : version().tids();
  std::uint64_t& link =
      last_segment_ != nullptr ? last_segment_->layout().next : version().table().segments;
  alloc::Session session = pool().allocator().session();
  const pm::Offset block = session.reserve(Segment::bytes_for(*root_));
  Segment::format(pool(), *root_, block, first);
  auto segment = std::make_unique<Segment>(pool(), *root_, block, first);
  session.commit(pm::set_word(link, block));
  Segment* const added = segment.release();
  if (last_segment_ != nullptr) {
    last_segment_->next.store(added, std::memory_order_release);
  } else {
    version().set_segments(added);
  }
  last_segment_ = added;
}

bool Table::erase(Tid tid) {
  const std::lock_guard lock(writers_);
  Version& version = this->version();
  erased_meanwhile_.prepare();
  const bool erased =
      tid < version.tids() ? erase_listed(version, tid) : erase_inserted(version, tid);
  if (!erased) return false;
  erased_meanwhile_.note(tid);
  if (size_) --*size_;
  return true;
}

bool Table::erase_listed(Version& version, Tid tid) {
  if (version.is_missing(tid, dead_rows_)) return false;
  if (!version.erased()) {
    // Durable before the bit, whose commit fences first: with a bit set and this still 0, the row
    // would come back after a crash, and go again with the next erase.
    std::uint64_t& erased = version.table().erased;
    pool().pm().store(erased, 1);
    pool().pm().flush(&erased, sizeof erased);
    version.set_erased();
  }
  version.erased_points().erase([&] { dead_rows_.set(version.dead(), tid); });
  return true;
}

bool Table::erase_inserted(Version& version, Tid tid) {
  Segment* segment = version.segments();
  while (segment != nullptr && tid >= segment->end())
    segment = segment->next.load(std::memory_order_acquire);
  if (segment == nullptr || tid < segment->first()) return false;
  const std::uint64_t i = tid - segment->first();
  if (dead_rows_.is_dead(segment->dead(), i)) return false;
  dead_rows_.set(segment->dead(), i);
  return true;
}

std::uint64_t Table::size() const {
  const std::lock_guard lock(writers_);
  if (!size_) size_ = count_rows();
  return *size_;
}

/// Reads the bits of all rows that may be gone.
std::uint64_t Table::count_rows() const {
  const auto living = [](const std::uint64_t* dead, std::uint64_t rows) {
    std::uint64_t left = rows;
    for (std::uint64_t row = 0; row < rows; row += 64) {
      const std::uint64_t within =
          rows - row < 64 ? (std::uint64_t{1} << (rows - row)) - 1 : ~std::uint64_t{0};
      left -= static_cast<std::uint64_t>(std::popcount(pm::load(dead[row / 64]) & within));
    }
    return left;
  };
  const Version& version = this->version();
  std::uint64_t rows =
      version.erased() ? living(version.dead(), version.tids()) : pm::load(version.table().rows);
  for (Segment* s = version.segments(); s != nullptr; s = s->next.load(std::memory_order_acquire))
    rows += living(s->dead(), s->visible());
  return rows;
}

}  // namespace perdix::detail::index::elf
