#include "index/elf/segment.h"

#include <algorithm>
#include <bit>
#include <string_view>

#include "index/common/hash_seed.h"
#include "index/elf/dead_rows.h"
#include "pool/checked.h"

namespace perdix::detail::index::elf {
namespace {

std::uint64_t dead_words(const Root& root) { return DeadRows::words_for(root.segment_rows); }

}  // namespace

Segment::Segment(pool::PoolCore& pool, const Root& root, pm::Offset offset, std::uint64_t first)
    : pool_(pool),
      offset_(offset),
      first_(first),
      dimensions_(root.dimensions),
      capacity_(root.segment_rows),
      places_(std::bit_ceil(2 * root.segment_rows)),
      layout_(pool.at<SegmentLayout>(offset)),
      dead_(reinterpret_cast<std::uint64_t*>(layout_ + 1)),
      rows_(reinterpret_cast<std::uint32_t*>(dead_ + dead_words(root))),
      visible_(static_cast<std::uint32_t>(pm::load(layout_->count))) {}

void Segment::require_valid(pool::PoolCore& pool, const Root& root, pm::Offset offset,
                            std::uint64_t first) {
  pool::checked<SegmentLayout>(pool, offset, "a segment", [&](const SegmentLayout& layout) {
    return pm::load(layout.magic) == kSegmentMagic && pm::load(layout.first) == first &&
           pm::load(layout.count) <= root.segment_rows &&
           pool.allocator().validate_block(offset, bytes_for(root));
  });
}

std::uint64_t Segment::bytes_for(const Root& root) {
  return sizeof(SegmentLayout) + dead_words(root) * sizeof(std::uint64_t) +
         std::uint64_t{root.segment_rows} * root.dimensions * sizeof(std::uint32_t);
}

void Segment::format(pool::PoolCore& pool, const Root& root, pm::Offset offset,
                     std::uint64_t first) {
  auto& layout = *pool.at<SegmentLayout>(offset);
  const std::uint64_t head = sizeof layout + dead_words(root) * sizeof(std::uint64_t);
  pool.pm().zero(&layout, head);
  pool.pm().store(layout.magic, kSegmentMagic);
  pool.pm().store(layout.first, first);
  pool.pm().flush(&layout, head);  // the commit that links it fences
}

void Segment::append(std::span<const std::uint32_t> point) {
  prepare();
  const std::uint32_t i = visible();
  std::uint32_t* const to = rows_ + std::size_t{i} * dimensions_;
  pool_.pm().copy(to, point.data(), point.size_bytes());
  pool_.pm().flush(to, point.size_bytes());  // before it counts: the commit fences
  pool_.pm().commit(layout_->count, i + 1);  // the insert's commit
  enter(i);
  visible_.store(i + 1, std::memory_order_release);
}

void Segment::prepare() {
  if (ready_.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(preparing_);
  if (ready_.load(std::memory_order_relaxed)) return;
  table_ = std::make_unique<std::atomic<std::uint16_t>[]>(places_);
  hash_.emplace(draw_hash_seed());
  for (std::uint32_t i = 0; i < visible(); ++i) enter(i);
  ready_.store(true, std::memory_order_release);
}

void Segment::enter(std::uint32_t i) {
  std::uint32_t place = place_of(rows_ + std::size_t{i} * dimensions_);
  while (table_[place].load(std::memory_order_relaxed) != 0) place = (place + 1) & (places_ - 1);
  table_[place].store(static_cast<std::uint16_t>(i + 1), std::memory_order_release);
}

std::uint32_t Segment::place_of(const std::uint32_t* values) const {
  const std::string_view bytes(reinterpret_cast<const char*>(values), dimensions_ * sizeof *values);
  return static_cast<std::uint32_t>((*hash_)(bytes)) & (places_ - 1);
}

}  // namespace perdix::detail::index::elf
