#include "alloc/inspector.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "alloc/marks.h"
#include "alloc/size_class.h"
#include "pm/access.h"

namespace perdix::detail::alloc {

FoundBlock Inspector::find(Offset offset) const noexcept {
  const std::uint64_t chunk = chunk_of(offset);
  ChunkWord word;
  if (offset > kOffsetMask || !chunks_.tile(chunk, word)) return {};
  if (word.kind == ChunkKind::large && is_large(offset))
    return {word.count * kChunkSize - kLargeHeader};
  const unsigned index = span_index(offset);
  if (word.kind != ChunkKind::spans || index < first_span(chunk)) return {};

  const SpanEntry entry = pm::load(view_.chunk(chunk).spans[index]);
  if (is_run(offset)) {
    const std::uint64_t spans = entry & ~kRunFlag & 0xffffU;
    const bool fits = (entry & kRunFlag) && spans > 0 && index + spans <= kSpansPerChunk;
    return {fits ? spans * kSpanSize : 0};
  }
  if (!is_class_entry(entry)) return {};
  const SizeClass& geometry = kSizeClasses[entry - 1U];
  if (!is_block(geometry, position_in_span(offset))) return {};
  return {geometry.size, true, span_offset(chunk, index),
          block_index(geometry, position_in_span(offset))};
}

Offset Inspector::small_block_at(Offset offset) const noexcept {
  const std::uint64_t chunk = chunk_of(offset);
  const unsigned index = span_index(offset);
  ChunkWord word;
  if (offset > kOffsetMask || !chunks_.tile(chunk, word) || word.kind != ChunkKind::spans ||
      index < first_span(chunk))
    return pm::kNull;
  const SpanEntry entry = pm::load(view_.chunk(chunk).spans[index]);
  if (!is_class_entry(entry)) return pm::kNull;
  const SizeClass& geometry = kSizeClasses[entry - 1U];
  const std::uint64_t position = position_in_span(offset);
  if (position < geometry.data) return pm::kNull;
  const std::uint32_t block = block_index(geometry, position);
  if (block >= geometry.blocks) return pm::kNull;
  return span_offset(chunk, index) + geometry.data + std::uint64_t{block} * geometry.size;
}

bool Inspector::marked(const FoundBlock& block) const noexcept {
  if (block.size == 0) return false;
  return !block.small ||
         pm::load(view_.span(block.span).bitmap[block.index / 64]) >> (block.index % 64) & 1;
}

/// Blocks that are free although their bit is set, sorted.
std::vector<Offset> Inspector::ring_blocks() const {
  std::vector<Offset> blocks;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (const std::uint64_t& slot : view_.lane(lane).ring) {
      if (const Offset block = pm::load(slot); block != pm::kNull) blocks.push_back(block);
    }
  }
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

void Inspector::for_each_allocated(const std::function<void(Offset, std::uint64_t)>& fn) const {
  for_each_allocated(ring_blocks(), fn);
}

/// Calls whole(offset, bytes) for each large object and run, and span(offset, size class) for each
/// span of small blocks.
template <class Whole, class Span>
void Inspector::for_each_part(Whole whole, Span span) const {
  ChunkWord word;
  for (std::uint64_t chunk = 0; chunk < chunks_.count(); ++chunk) {
    if (!chunks_.tile(chunk, word)) continue;
    if (word.kind == ChunkKind::large)
      whole(chunk * kChunkSize + kLargeHeader, word.count * kChunkSize - kLargeHeader);
    if (word.kind != ChunkKind::spans) continue;
    for (unsigned i = first_span(chunk); i < kSpansPerChunk; ++i) {
      const Offset offset = span_offset(chunk, i);
      const SpanEntry entry = pm::load(view_.chunk(chunk).spans[i]);
      if (is_class_entry(entry)) {
        span(offset, entry - 1U);
      } else if (const std::uint64_t size = find(offset).size; size > 0) {
        whole(offset, size);
      }
    }
  }
}

void Inspector::for_each_allocated(const std::vector<Offset>& in_ring,
                                   const std::function<void(Offset, std::uint64_t)>& fn) const {
  const auto show = [&](Offset block, std::uint64_t size) {
    if (!std::binary_search(in_ring.begin(), in_ring.end(), block)) fn(block, size);
  };
  for_each_part(
      fn, [&](Offset span, unsigned size_class) { for_each_in_span(span, size_class, show); });
}

/// Blocks of a span whose bits are set.
std::uint64_t Inspector::count_marked(Offset span, unsigned size_class) const {
  const SizeClass& geometry = kSizeClasses[size_class];
  std::uint64_t count = 0;
  for (std::uint32_t word = 0; word < geometry.words; ++word) {
    const std::uint64_t bits = pm::load(view_.span(span).bitmap[word]);
    count += static_cast<unsigned>(std::popcount(bits & ~tail_bits(geometry, word)));
  }
  return count;
}

std::uint64_t Inspector::bytes_allocated() const {
  std::uint64_t bytes = 0;
  for_each_part([&](Offset, std::uint64_t size) { bytes += size; },
                [&](Offset span, unsigned size_class) {
                  bytes += count_marked(span, size_class) * kSizeClasses[size_class].size;
                });
  std::vector<Offset> in_ring = ring_blocks();
  in_ring.erase(std::unique(in_ring.begin(), in_ring.end()), in_ring.end());
  for (const Offset block : in_ring) {
    const FoundBlock found = find(block);
    if (found.small && marked(found)) bytes -= std::min(bytes, found.size);
  }
  return bytes;
}

void Inspector::for_each_in_span(Offset span, unsigned size_class,
                                 const std::function<void(Offset, std::uint64_t)>& fn) const {
  const SizeClass& geometry = kSizeClasses[size_class];
  for (std::uint32_t word = 0; word < geometry.words; ++word) {
    std::uint64_t bits = pm::load(view_.span(span).bitmap[word]) & ~tail_bits(geometry, word);
    for (; bits != 0; bits &= bits - 1) {
      const std::uint64_t index = word * 64 + static_cast<unsigned>(std::countr_zero(bits));
      fn(span + geometry.data + index * geometry.size, geometry.size);
    }
  }
}

std::uint64_t Inspector::bytes_in_spans() const {
  std::uint64_t bytes = 0;
  ChunkWord word;
  for (std::uint64_t chunk = 0; chunk < chunks_.count(); ++chunk) {
    if (!chunks_.tile(chunk, word)) continue;
    if (word.kind == ChunkKind::large) bytes += word.count * kChunkSize;
    if (word.kind != ChunkKind::spans) continue;
    for (unsigned i = first_span(chunk); i < kSpansPerChunk; ++i) {
      const SpanEntry entry = pm::load(view_.chunk(chunk).spans[i]);
      bytes += is_class_entry(entry) ? kSpanSize : find(span_offset(chunk, i)).size;
    }
  }
  return bytes;
}

// --- Check ---------------------------------------------------------------------------------------

void add_problem(CheckReport& report, std::string sentence) {
  constexpr std::size_t kMaxProblems = 100;
  if (report.problems.size() < kMaxProblems) report.problems.push_back(std::move(sentence));
}

void Inspector::check(CheckReport& report) const {
  const std::vector<Offset> in_ring = ring_blocks();
  check_lanes(in_ring, report);
  ChunkWord word;
  std::uint64_t chunk = 0;
  for (; chunk < chunks_.count(); chunk += word.count) {
    if (!chunks_.tile(chunk, word) || pm::load(view_.chunk(chunk).word) != word.pack()) {
      return add_problem(
          report, fmt::format("chunk {} has another header than when the pool was opened", chunk));
    }
    if (word.kind == ChunkKind::spans) check_chunk(chunk, report);
  }
  if (chunk != chunks_.count() || chunk != pm::load(view_.header().alloc_num)) {
    add_problem(report, fmt::format("the chunks do not end at chunk {}", chunks_.count()));
  }
  for_each_allocated(in_ring, [&](Offset, std::uint64_t) { ++report.blocks; });
}

void Inspector::check_lanes(const std::vector<Offset>& in_ring, CheckReport& report) const {
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    if (pm::load(view_.lane(lane).record[0]) != 0) {
      add_problem(report,
                  fmt::format("lane {} holds the record of an operation that has not ended", lane));
    }
  }
  for (std::size_t i = 0; i < in_ring.size(); ++i) {
    const FoundBlock found = find(in_ring[i]);
    if (!found.small || !marked(found)) {
      add_problem(report, fmt::format("a ring holds {:#x}, which is no block with its bit set",
                                      in_ring[i]));
    }
    if (i > 0 && in_ring[i] == in_ring[i - 1]) {
      add_problem(report, fmt::format("block {:#x} is in two ring slots", in_ring[i]));
    }
  }
}

void Inspector::check_chunk(std::uint64_t chunk, CheckReport& report) const {
  for (unsigned i = 0; i < kSpansPerChunk;) {
    const SpanEntry entry = pm::load(view_.chunk(chunk).spans[i]);
    std::uint64_t spans = 1;
    if (i < first_span(chunk)) {
      if (entry != kFreeSpan) {
        add_problem(report,
                    fmt::format("chunk {}: span {} is not to be allocated, but has entry {:#x}",
                                chunk, i, entry));
      }
    } else if (is_class_entry(entry)) {
      check_span(span_offset(chunk, i), entry - 1U, report);
    } else if (entry != kFreeSpan) {
      spans = find(span_offset(chunk, i)).size / kSpanSize;
      if (spans == 0) {
        add_problem(report, fmt::format("chunk {}: span {} has entry {:#x}, which means nothing",
                                        chunk, i, entry));
        spans = 1;
      }
      for (std::uint64_t later = i + 1; later < i + spans; ++later) {
        if (pm::load(view_.chunk(chunk).spans[later]) == kFreeSpan) continue;
        add_problem(report, fmt::format("chunk {}: span {} is part of a run, but has an entry",
                                        chunk, later));
      }
    }
    i += static_cast<unsigned>(spans);
  }
}

void Inspector::check_span(Offset span, unsigned size_class, CheckReport& report) const {
  const SpanLayout& layout = view_.span(span);
  const SizeClass& geometry = kSizeClasses[size_class];
  if (pm::load(layout.word) != span_word(size_class)) {
    add_problem(report, fmt::format("the span at {:#x} does not say that its class is {}", span,
                                    size_class));
  }
  if (pm::load(layout.bitmap[geometry.words - 1]) & tail_bits(geometry, geometry.words - 1)) {
    add_problem(report,
                fmt::format("the bitmap of the span at {:#x} has bits past the last block", span));
  }
}

}  // namespace perdix::detail::alloc
