#include "index/elimda/dram_table.h"

#include <new>

#include "index/elimda/pm_table.h"
#include "pm/probe.h"

namespace perdix::detail::index::elimda {

Segment* Segment::make(util::Arena& arena, unsigned buckets, pm::Offset offset, unsigned depth,
                       std::uint64_t prefix) {
  void* memory = arena.allocate(bytes_for(buckets));
  auto* segment = ::new (memory) Segment(buckets, offset, depth, prefix);
  for (unsigned i = 0; i < buckets; ++i) ::new (&segment->slot(i)) Slot;
  return segment;
}

void Segment::release(util::Arena& arena) noexcept {
  for (unsigned i = 0; i < buckets_ && !gave_buckets; ++i) {
    if (Bucket* bucket = slot(i).bucket()) bucket->release(arena);
  }
  arena.release(this, bytes_for(buckets_));
}

/// calloc: zero bytes are entries of segments that are not known, and untouched pages cost nothing.
DramTable::Directory::Directory(unsigned bits)
    : depth(bits),
      entries(static_cast<std::atomic<Segment*>*>(
          std::calloc(std::size_t{1} << bits, sizeof(std::atomic<Segment*>)))) {
  if (entries == nullptr) throw std::bad_alloc();
}

void DramTable::start() {
  directory_.store(new Directory(table_.directory().depth));
  guess_.store(table_.guess_segments());
}

/// A segment that is not known does not change in PM, and only one thread makes its DRAM side.
[[gnu::noinline, gnu::cold]] Segment& DramTable::know_segment(KeyHash hash) const {
  const std::lock_guard lock(structure_);
  if (Segment* segment = known_segment(hash)) return *segment;
  const Reference leader = table_.leader_of(hash);
  Segment& segment =
      *Segment::make(arena_, buckets_, leader.offset, leader.depth, hash.prefix(leader.depth));
  link(segment);
  count_segments(1);
  pm::on_step("elimda: a segment is known");
  return segment;
}

DramTable::~DramTable() {
  Directory* directory = directory_.load();
  if (directory == nullptr) return;
  Segment* last = nullptr;
  for (std::size_t i = 0; i < std::size_t{1} << directory->depth; ++i) {
    Segment* segment = directory->entries[i].load();
    if (segment != nullptr && segment != last) segment->release(arena_);
    last = segment;
  }
  delete directory;
}

void DramTable::double_directory() {
  Directory* old = directory_.load(std::memory_order_relaxed);
  auto larger = std::make_unique<Directory>(old->depth + 1);
  for (std::size_t i = 0; i < std::size_t{1} << larger->depth; ++i) {
    larger->entries[i].store(old->entries[i / 2].load(std::memory_order_relaxed),
                             std::memory_order_relaxed);
  }
  directory_.store(larger.release(), std::memory_order_release);
  reclaimer_.retire(old);
}

void DramTable::link(Segment& segment) const {
  const Directory& directory = *directory_.load(std::memory_order_relaxed);
  const unsigned further = directory.depth - segment.depth;
  const std::size_t first = static_cast<std::size_t>(segment.prefix) << further;
  for (std::size_t i = 0; i < std::size_t{1} << further; ++i)
    directory.entries[first + i].store(&segment, std::memory_order_release);
}

void DramTable::retire(Segment& segment) noexcept {
  reclaimer_.retire(
      &segment,
      [](void* object, void* arena) {
        static_cast<Segment*>(object)->release(*static_cast<util::Arena*>(arena));
      },
      &arena_);
}

void DramTable::replace(const Locked& locked, Bucket& made) noexcept {
  pm::on_step("elimda: a bucket is replaced");
  locked.segment->slot(locked.at).set_bucket(&made);
  reclaimer_.retire(
      locked.bucket,
      [](void* object, void* arena) {
        static_cast<Bucket*>(object)->release(*static_cast<util::Arena*>(arena));
      },
      &arena_);
}

}  // namespace perdix::detail::index::elimda
