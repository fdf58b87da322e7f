// How the heap discovers what lies in PM, and makes the DRAM objects for it.
#include <bit>
#include <cassert>
#include <limits>
#include <new>

#include <fmt/format.h>

#include <perdix/error.h>

#include "alloc/heap.h"
#include "alloc/inspector.h"
#include "pm/access.h"

namespace perdix::detail::alloc {
namespace {

[[noreturn]] void throw_corrupt(const char* what, Offset offset) {
  throw Error(Errc::corrupt,
              fmt::format("{} at offset {:#x} of the pool is damaged; restore the pool from a copy",
                          what, offset));
}

}  // namespace

/// Reads up to `budget` spans of a class that existed at open(), and lists those with free blocks.
void Heap::discover_spans(unsigned size_class, unsigned budget) {
  std::uint64_t& cursor = span_cursor_[size_class];
  while (cursor > 0 && budget > 0) {
    const std::uint64_t chunk = (cursor - 1) / kSpansPerChunk;
    ChunkWord word;
    if (!chunks_.tile(chunk, word) || word.kind != ChunkKind::spans) {
      cursor = chunk * kSpansPerChunk;
      continue;
    }
    SpanMap& map = learn_chunk(chunk);
    const auto index = static_cast<unsigned>(--cursor % kSpansPerChunk);
    const bool known = map.spans[index].load(std::memory_order_relaxed) != nullptr;
    if (known || pm::load(view_.chunk(chunk).spans[index]) != entry_of(size_class)) continue;
    learn_span(map, index, size_class);
    --budget;
  }
}

/// Reads every span that existed at open(). Before a pool counts as full: spans without taken
/// blocks are of use to all sizes, but only known ones are harvested. Once they are known this
/// costs nothing.
void Heap::discover_all_spans() {
  for (unsigned size_class = 0; size_class < kClasses; ++size_class)
    discover_spans(size_class, std::numeric_limits<unsigned>::max());
}

/// Reads one more chunk that existed at open(). False if all are known.
bool Heap::discover_chunks() {
  while (chunk_cursor_ > 0) {
    ChunkWord word;
    const std::uint64_t chunk = --chunk_cursor_;
    const bool known = maps_[chunk].load(std::memory_order_relaxed) != nullptr;
    if (known || !chunks_.tile(chunk, word) || word.kind != ChunkKind::spans) continue;
    learn_chunk(chunk);
    return true;
  }
  return false;
}

/// Reads a chunk's span table, if that has not happened. Cost: nine lines.
SpanMap& Heap::learn_chunk(std::uint64_t chunk) {
  if (SpanMap* map = maps_[chunk].load(std::memory_order_relaxed)) return *map;
  ChunkWord word;
  chunks_.tile(chunk, word);
  SpanMap& map = new_map(chunk, word.node % nodes_.size());
  const ChunkLayout& layout = view_.chunk(chunk);
  for (unsigned i = first_span(chunk); i < kSpansPerChunk;) {
    const SpanEntry entry = pm::load(layout.spans[i]);
    unsigned spans = 1;
    if (entry == kFreeSpan) {
      map.free.add(i, 1);
    } else if (entry & kRunFlag) {
      spans = entry & ~kRunFlag & 0xffffU;
      if (spans == 0 || spans > kSpansPerChunk - i)
        throw_corrupt("the span table", chunk_header_offset(chunk));
      map.run[i] = static_cast<std::uint8_t>(spans);
    } else if (!is_class_entry(entry)) {
      throw_corrupt("the span table", chunk_header_offset(chunk));
    }
    i += spans;
  }
  maps_[chunk].store(&map, std::memory_order_release);
  runs_of(map).add(map);
  return map;
}

/// Reads a span's bitmap and lists the span if it has free blocks. Cost: one to nine lines.
Span& Heap::learn_span(SpanMap& map, unsigned index, unsigned size_class) {
  const Offset offset = span_offset(map.chunk, index);
  const SpanLayout& layout = view_.span(offset);
  const SizeClass& geometry = kSizeClasses[size_class];
  if (pm::load(layout.word) != span_word(size_class)) throw_corrupt("the span", offset);
  Span& span = new_span(map, index, size_class);
  std::int32_t available = 0;
  for (std::uint32_t i = 0; i < geometry.words; ++i) {
    // Bits past the last block don't count, whatever they are.
    const std::uint64_t taken = pm::load(layout.bitmap[i]) | tail_bits(geometry, i);
    span.taken()[i].store(taken, std::memory_order_relaxed);
    available += 64 - std::popcount(taken);
  }
  span.available.store(available, std::memory_order_relaxed);
  if (available > 0) list(span);
  map.spans[index].store(&span, std::memory_order_release);
  return span;
}

Span& Heap::learn_span_at(Offset offset) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t chunk = chunk_of(offset);
  const unsigned index = span_index(offset);
  ChunkWord word;
  if (!chunks_.tile(chunk, word) || word.kind != ChunkKind::spans || index < first_span(chunk)) {
    throw_corrupt("a reference to a block", offset);
  }
  SpanMap& map = learn_chunk(chunk);
  if (Span* span = map.spans[index].load(std::memory_order_relaxed)) return *span;
  const SpanEntry entry = pm::load(view_.chunk(chunk).spans[index]);
  if (!is_class_entry(entry)) throw_corrupt("a reference to a block", offset);
  return learn_span(map, index, entry - 1U);
}

std::uint16_t Heap::run_at(Offset offset) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t chunk = chunk_of(offset);
  const unsigned index = span_index(offset);
  ChunkWord word;
  if (!chunks_.tile(chunk, word) || word.kind != ChunkKind::spans)
    throw_corrupt("a reference to an object", offset);
  const std::uint8_t spans = learn_chunk(chunk).run[index];
  // A run that is reserved or waits for its readers is known, but not allocated.
  if (spans == 0 || pm::load(view_.chunk(chunk).spans[index]) != (kRunFlag | spans)) {
    throw_corrupt("a reference to an object", offset);
  }
  return spans;
}

std::uint16_t Heap::chunks_at(Offset offset) const {
  ChunkWord word;
  if (!chunks_.tile(chunk_of(offset), word) || word.kind != ChunkKind::large ||
      word.count > kMaxChunks) {
    throw_corrupt("a reference to an object", offset);
  }
  return static_cast<std::uint16_t>(word.count);
}

void Heap::check(CheckReport& report) const {
  const std::lock_guard lock(mutex_);
  for (std::uint64_t chunk = 0; chunk < chunks_.count(); ++chunk) {
    const SpanMap* map = maps_[chunk].load(std::memory_order_relaxed);
    if (map == nullptr) continue;
    for (unsigned i = first_span(chunk); i < kSpansPerChunk; ++i) check_span(*map, i, report);
  }
}

void Heap::check_span(const SpanMap& map, unsigned index, CheckReport& report) const {
  const Offset offset = span_offset(map.chunk, index);
  const SpanEntry entry = pm::load(view_.chunk(map.chunk).spans[index]);
  if (entry != kFreeSpan && map.free.contains(index)) {
    add_problem(report, fmt::format("the span at {:#x} is taken for free, but has entry {:#x}",
                                    offset, entry));
  }
  Span* span = map.spans[index].load(std::memory_order_relaxed);
  if (span == nullptr) return;
  if (entry != entry_of(span->size_class)) {
    add_problem(report, fmt::format("the span at {:#x} has entry {:#x}, not its class {}", offset,
                                    entry, span->size_class));
    return;
  }
  int available = 0;
  for (std::uint32_t i = 0; i < span->geometry().words; ++i) {
    const std::uint64_t taken = span->taken()[i].load(std::memory_order_relaxed);
    available += 64 - std::popcount(taken);
    if (pm::load(view_.span(offset).bitmap[i]) & ~taken) {
      add_problem(report, fmt::format("the span at {:#x} would give out allocated blocks", offset));
    }
  }
  if (available != span->available.load(std::memory_order_relaxed)) {
    add_problem(report, fmt::format("the span at {:#x} miscounts its free blocks", offset));
  }
}

SpanMap& Heap::new_map(std::uint64_t chunk, unsigned node) {
  SpanMap* map = unused_maps_;
  if (map != nullptr) {
    unused_maps_ = map->next;
    map->free.clear();
    map->run.fill(0);
  } else {
    map = new (arena_.allocate(sizeof(SpanMap))) SpanMap;
  }
  map->chunk = chunk;
  map->node = static_cast<std::uint16_t>(node);
  map->bucket = 0;
  return *map;
}

Span& Heap::new_span(SpanMap& map, unsigned index, unsigned size_class) {
  const std::uint32_t words = kSizeClasses[size_class].words;
  Span* span = unused_spans_[words];
  if (span != nullptr) {
    unused_spans_[words] = span->next;
  } else {
    using Word = std::atomic<std::uint64_t>;
    span = new (arena_.allocate(sizeof(Span) + words * sizeof(Word))) Span;
    for (std::uint32_t i = 0; i < words; ++i) new (span->taken() + i) Word{0};
  }
  span->offset = span_offset(map.chunk, index);
  span->size_class = static_cast<std::uint16_t>(size_class);
  span->node = map.node;
  span->place.store(Span::Place::full, std::memory_order_relaxed);
  return *span;
}

void Heap::forget_span(Span& span) noexcept {
  span.next = unused_spans_[span.geometry().words];
  unused_spans_[span.geometry().words] = &span;
}

}  // namespace perdix::detail::alloc
