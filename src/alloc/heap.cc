#include "alloc/heap.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace perdix::detail::alloc {
namespace {

// How many spans of a pool that was just opened are read before a fresh span is used, and before
// the pool grows: this bounds the time of one allocation. The next one goes on where this one
// stopped.
constexpr unsigned kSpansPerLook = 64;
constexpr unsigned kSpansPerGrowth = 4096;

/// Makes a span the caller's.
Span* take_span(Span& span) noexcept {
  span.place.store(Span::Place::owned, std::memory_order_seq_cst);
  return &span;
}

}  // namespace

Heap::Heap(Space& space, unsigned nodes)
    : space_(space),
      pm_(space.pm()),
      view_(space.base()),
      chunks_(space),
      maps_(make_zeroed_array<std::atomic<SpanMap*>>(space.max_size() / kChunkSize)),
      nodes_(nodes) {}

void Heap::open() {
  chunks_.collect_free();
  chunk_cursor_ = chunks_.count();
  span_cursor_.fill(chunks_.count() * kSpansPerChunk);
}

// --- Spans of blocks -----------------------------------------------------------------------------

Span* Heap::acquire(unsigned size_class, unsigned node, Effort effort) {
  Found found;
  {
    const std::lock_guard lock(mutex_);
    found = look_for_span(size_class, node, effort);
  }
  if (!found.formed) form_span(*found.span);
  return found.span;
}

Heap::Found Heap::look_for_span(unsigned size_class, unsigned node, Effort effort) {
  if (effort == Effort::local) return find_span(size_class, node, effort);
  if (effort == Effort::grow) {
    discover_spans(size_class, kSpansPerGrowth);
    if (Span* span = listed_span(size_class, nodes_[node])) return {span};
    grow(1, node);
    return find_span(size_class, node, effort);
  }
  if (effort == Effort::anywhere) discover_all_spans();
  for (unsigned i = 0; i < nodes_.size(); ++i) {
    const Found found = find_span(size_class, (node + i) % nodes_.size(), effort);
    if (found.span != nullptr) return found;
  }
  return {};
}

Heap::Found Heap::find_span(unsigned size_class, unsigned node, Effort effort) {
  if (effort != Effort::claimed) {
    Node& home = nodes_[node];
    if (Span* span = listed_span(size_class, home)) return {span};
    discover_spans(size_class, kSpansPerLook);
    if (Span* span = listed_span(size_class, home)) return {span};
  }
  const Offset offset = find_run(1, node, effort);
  if (offset == pm::kNull) return {};
  return {take_span(fresh_span(offset, size_class)), false};
}

Span* Heap::listed_span(unsigned size_class, Node& node) noexcept {
  for (SpanList* spans : {&node.partial[size_class], &node.empty[size_class]}) {
    if (Span* span = spans->pop()) return take_span(*span);
  }
  return nullptr;
}

void Heap::release(Span& span) noexcept {
  const std::lock_guard lock(mutex_);
  span.place.store(Span::Place::full, std::memory_order_seq_cst);
  relist(span);
}

void Heap::give_back(Span& span, std::uint32_t word, std::uint64_t blocks) noexcept {
  const auto all = static_cast<std::int32_t>(span.geometry().blocks);
  const std::int32_t available = span.release(word, blocks);
  const Span::Place place = span.place.load(std::memory_order_seq_cst);
  if (place == Span::Place::full || (place == Span::Place::partial && available == all)) {
    const std::lock_guard lock(mutex_);
    relist(span);
  }
}

/// Moves a span to the list where it belongs by the number of its free blocks now. The caller holds
/// mutex_.
void Heap::relist(Span& span) noexcept {
  const std::int32_t available = span.available.load(std::memory_order_seq_cst);
  const bool empty = available == static_cast<std::int32_t>(span.geometry().blocks);
  switch (span.place.load(std::memory_order_relaxed)) {
    case Span::Place::full:
      if (available > 0) list(span);
      break;
    case Span::Place::partial:
      if (!empty) break;
      nodes_[span.node].partial[span.size_class].remove(span);
      list(span);
      break;
    case Span::Place::empty:
    case Span::Place::owned: break;
  }
}

void Heap::list(Span& span) noexcept {
  const bool empty = span.available.load(std::memory_order_seq_cst) ==
                     static_cast<std::int32_t>(span.geometry().blocks);
  Node& node = nodes_[span.node];
  (empty ? node.empty : node.partial)[span.size_class].push(span);
  span.place.store(empty ? Span::Place::empty : Span::Place::partial, std::memory_order_seq_cst);
}

/// Turns a free span into a span of blocks, in DRAM only. form_span() does it in PM.
Span& Heap::fresh_span(Offset offset, unsigned size_class) {
  SpanMap& map = *maps_[chunk_of(offset)].load(std::memory_order_relaxed);
  const unsigned index = span_index(offset);
  Span& span = new_span(map, index, size_class);
  for (std::uint32_t i = 0; i < span.geometry().words; ++i) {
    span.taken()[i].store(tail_bits(span.geometry(), i), std::memory_order_relaxed);
  }
  span.available.store(static_cast<std::int32_t>(span.geometry().blocks),
                       std::memory_order_relaxed);
  // Before its entry is in the table: discovery leaves out what is known.
  map.spans[index].store(&span, std::memory_order_release);
  return span;
}

/// Turns a span into a span of blocks in PM, durably. The caller owns the span, and no other thread
/// knows a block of it: so this needs no lock.
void Heap::form_span(Span& span) {
  SpanLayout& layout = view_.span(span.offset);
  pm_.zero(&layout.bitmap, span.geometry().words * sizeof(std::uint64_t));
  pm_.store(layout.word, span_word(span.size_class));
  // The bitmap must be empty before the table says that there is one.
  pm_.persist(&layout, sizeof layout.word + span.geometry().words * sizeof(std::uint64_t));
  SpanEntry& entry = view_.chunk(chunk_of(span.offset)).spans[span_index(span.offset)];
  pm_.store(entry, entry_of(span.size_class));
  // Before any record names a block of the span, also one of another thread.
  pm_.persist(&entry, sizeof entry);
}

/// Turns a span without taken blocks into a free span, in DRAM and durably in PM.
void Heap::dissolve_span(Span& span) {
  SpanMap& map = *maps_[chunk_of(span.offset)].load(std::memory_order_relaxed);
  const unsigned index = span_index(span.offset);
  SpanEntry& entry = view_.chunk(map.chunk).spans[index];
  pm_.store(entry, kFreeSpan);
  // Before another class's bitmap or an object is written there.
  pm_.persist(&entry, sizeof entry);
  map.spans[index].store(nullptr, std::memory_order_release);
  runs_of(map).give_back(map, index, 1);
  forget_span(span);
}

// --- Runs of spans and chunks --------------------------------------------------------------------

Offset Heap::take_run(std::uint16_t spans, unsigned node, Effort effort) {
  const std::lock_guard lock(mutex_);
  if (effort == Effort::grow) grow(spans, node);
  if (effort == Effort::anywhere) discover_all_spans();
  const std::size_t nodes = effort >= Effort::anywhere ? nodes_.size() : 1;
  for (std::size_t i = 0; i < nodes; ++i) {
    const Offset offset = find_run(spans, (node + i) % nodes_.size(), effort);
    if (offset == pm::kNull) continue;
    maps_[chunk_of(offset)].load(std::memory_order_relaxed)->run[span_index(offset)] =
        static_cast<std::uint8_t>(spans);
    return offset;
  }
  return pm::kNull;
}

/// Adds chunks until a run of spans can be taken that is not claimed.
void Heap::grow(unsigned spans, unsigned node) {
  do {
    form_chunk(chunks_.take(1, true), node);
  } while (free_spans() < claimed_ + spans);
}

/// Takes neighbouring free spans of a node's chunks; kNull if there are none. What is claimed is
/// left, or becomes less by them.
Offset Heap::find_run(unsigned spans, unsigned node, Effort effort) {
  Node& home = nodes_[node];
  const std::uint64_t kept = effort == Effort::claimed ? 0 : claimed_;
  for (;;) {
    SpanMap* const map = free_spans() >= kept + spans ? home.runs.find(spans) : nullptr;
    if (map != nullptr) {
      if (effort == Effort::claimed) claimed_ -= std::min<std::uint64_t>(spans, claimed_);
      return span_offset(map->chunk, home.runs.take(*map, spans));
    }
    if (discover_chunks()) continue;
    if (harvest_spans(home)) continue;
    const std::uint64_t chunk = chunks_.take(1, false);
    if (chunk == 0) return pm::kNull;
    form_chunk(chunk, node);
  }
}

std::uint64_t Heap::free_spans() const noexcept {
  std::uint64_t spans = 0;
  for (const Node& node : nodes_) spans += node.runs.free();
  return spans;
}

bool Heap::claim(std::uint64_t spans, unsigned node, Effort effort) {
  const std::lock_guard lock(mutex_);
  if (effort == Effort::anywhere) discover_all_spans();
  while (free_spans() < claimed_ + spans) {
    if (discover_chunks()) continue;
    const auto harvest = [this](Node& each) { return harvest_spans(each); };
    if (std::any_of(nodes_.begin(), nodes_.end(), harvest)) continue;
    const std::uint64_t chunk = chunks_.take(1, effort == Effort::grow);
    if (chunk == 0) return false;
    form_chunk(chunk, node);
  }
  claimed_ += spans;
  return true;
}

void Heap::restore_claims(std::uint64_t spans) noexcept {
  const std::lock_guard lock(mutex_);
  claimed_ = spans;
}

void Heap::unclaim(std::uint64_t spans) noexcept {
  const std::lock_guard lock(mutex_);
  claimed_ -= std::min(spans, claimed_);
}

void Heap::give_back_run(Offset offset) {
  const std::lock_guard lock(mutex_);
  SpanMap& map = *maps_[chunk_of(offset)].load(std::memory_order_relaxed);
  const unsigned index = span_index(offset);
  assert(map.run[index] != 0);
  runs_of(map).give_back(map, index, map.run[index]);
  map.run[index] = 0;
}

Offset Heap::take_chunks(std::uint16_t count, Effort effort) {
  const std::lock_guard lock(mutex_);
  const bool grow = effort == Effort::grow;
  std::uint64_t chunk = chunks_.take(count, false);
  if (chunk == 0 && effort == Effort::anywhere) discover_all_spans();
  if (chunk == 0 && harvest_chunks()) chunk = chunks_.take(count, false);
  if (chunk == 0 && grow) chunk = chunks_.take(count, true);
  return chunk == 0 ? pm::kNull : chunk * kChunkSize + kLargeHeader;
}

void Heap::give_back_chunks(Offset offset) {
  const std::lock_guard lock(mutex_);
  chunks_.give_back(chunk_of(offset));
}

/// Makes the node's spans without taken blocks free. Returns false if there were none.
bool Heap::harvest_spans(Node& node) {
  bool any = false;
  for (SpanList& spans : node.empty) {
    while (Span* span = spans.pop()) {
      dissolve_span(*span);
      any = true;
    }
  }
  return any;
}

/// Makes chunks of which all spans are free into free chunks. Returns false if there were none.
bool Heap::harvest_chunks() {
  bool any = false;
  while (discover_chunks()) continue;
  for (Node& node : nodes_) {
    harvest_spans(node);
    for (SpanMap* map = node.runs.longest(); map != nullptr;) {
      SpanMap& candidate = *map;
      map = map->next;
      if (candidate.chunk == 0 || candidate.free.size() != kMaxRun) continue;
      if (free_spans() < claimed_ + kMaxRun) return any;  // what is left is claimed
      node.runs.remove(candidate);
      chunks_.write(candidate.chunk, {ChunkKind::free, 0, 1});
      // Before it becomes part of a larger tile.
      pm_.fence();
      chunks_.give_back(candidate.chunk);
      maps_[candidate.chunk].store(nullptr, std::memory_order_release);
      candidate.next = unused_maps_;
      unused_maps_ = &candidate;
      any = true;
    }
  }
  return any;
}

void Heap::form_chunk(std::uint64_t chunk, unsigned node) {
  ChunkLayout& layout = view_.chunk(chunk);
  SpanMap& map = new_map(chunk, node);
  map.free.add(first_span(chunk), kSpansPerChunk - first_span(chunk));
  pm_.zero(&layout.reserved, sizeof layout.reserved);
  pm_.zero(&layout.spans, sizeof layout.spans);
  // The table must be empty before the header says that there is one.
  pm_.persist(&layout.reserved, sizeof layout - sizeof layout.word);
  chunks_.write(chunk, {ChunkKind::spans, static_cast<std::uint8_t>(node), 1});
  // Before a span of the chunk is used.
  pm_.fence();
  maps_[chunk].store(&map, std::memory_order_release);
  runs_of(map).add(map);
  space_.prepare(chunk * kChunkSize, kChunkSize);
}

}  // namespace perdix::detail::alloc
