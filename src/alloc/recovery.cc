#include "alloc/recovery.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include <perdix/error.h>

#include "alloc/calloc.h"
#include "alloc/record.h"
#include "pm/access.h"
#include "util/checksum.h"

namespace perdix::detail::alloc {
namespace {

[[noreturn]] void throw_corrupt(unsigned lane, const char* what, std::uint64_t value) {
  throw Error(
      Errc::corrupt,
      fmt::format("lane {} of the allocator names {} {:#x}, which can't be; restore the pool from "
                  "a copy",
                  lane, what, value));
}

class Recovery {
 public:
  Recovery(Space& space, Chunks& chunks, const Marks& marks, const Inspector& inspector)
      : space_(space),
        pm_(space.pm()),
        view_(space.base()),
        chunks_(chunks),
        marks_(marks),
        inspector_(inspector) {}

  void validate(unsigned lane) const;
  void resolve(unsigned lane);
  void drain_rings();

 private:
  void validate(unsigned lane, const Record& record) const;
  bool is_plausible(BlockRef block) const noexcept;
  bool is_word(Offset offset) const noexcept;
  bool committed(const Record& record) const;
  void apply(const WordStore& store) const;
  void allocate(unsigned lane, BlockRef block) const;
  void free(BlockRef block) const;

  Space& space_;
  const pm::Persister& pm_;
  View view_;
  Chunks& chunks_;
  const Marks& marks_;
  const Inspector& inspector_;
};

/// Whether the lane's record and ring are what recovery can work with. Throws corrupt.
void Recovery::validate(unsigned lane) const {
  if (const std::optional<Record> record = read_record(view_.lane(lane).record))
    validate(lane, *record);
  for (const std::uint64_t& slot : view_.lane(lane).ring) {
    const Offset block = pm::load(slot);
    if (block != pm::kNull && !inspector_.find(block).small)
      throw_corrupt(lane, "a free block at", block);
  }
}

/// Completes or takes back the operation that a lane was at, if any. Records of different lanes are
/// independent: by rules R1 and R5 no two name the same words or blocks.
void Recovery::resolve(unsigned lane) {
  RecordWords& words = view_.lane(lane).record;
  const std::optional<Record> record = read_record(words);
  if (!record) {
    // Half a record: its operation had not come to its commit.
    if (pm::load(words[0]) != 0) clear_record(pm_, words);
    return;
  }
  validate(lane, *record);
  if (committed(*record)) {
    apply(record->redo);
    for (const BlockRef block : record->reserved) allocate(lane, block);
    for (const BlockRef block : record->freed) free(block);
  } else {
    apply(record->undo);
    for (const BlockRef block : record->reserved) free(block);
  }
  // All of it before the record is gone; until then it is done again.
  pm_.fence();
  clear_record(pm_, words);
}

void Recovery::validate(unsigned lane, const Record& record) const {
  for (const Offset word : {record.commit_word, record.redo.word, record.undo.word}) {
    if (word != pm::kNull && !is_word(word)) throw_corrupt(lane, "a word at", word);
  }
  for (const BlockList* blocks : {&record.reserved, &record.freed}) {
    for (const BlockRef block : *blocks) {
      if (!is_plausible(block)) throw_corrupt(lane, "a block at", block.offset);
    }
  }
}

/// Whether an operation may have reserved or freed the block, before or after its marks were made.
bool Recovery::is_plausible(BlockRef block) const noexcept {
  if (block.units == 0) return inspector_.find(block.offset).small;
  const std::uint64_t chunk = chunk_of(block.offset);
  ChunkWord word;
  if (!chunks_.tile(chunk, word)) return false;
  if (is_large(block.offset)) return word.kind != ChunkKind::spans && word.count == block.units;

  const unsigned index = span_index(block.offset);
  const bool inside = is_run(block.offset) && word.kind == ChunkKind::spans &&
                      index >= first_span(chunk) && index + block.units <= kSpansPerChunk;
  if (!inside) return false;
  const auto& spans = view_.chunk(chunk).spans;
  const SpanEntry entry = pm::load(spans[index]);
  const auto is_free = [](const SpanEntry& later) { return pm::load(later) == kFreeSpan; };
  return (entry == kFreeSpan || entry == (kRunFlag | block.units)) &&
         std::all_of(spans.begin() + index + 1, spans.begin() + index + block.units, is_free);
}

/// Whether the offset is that of a word outside of the allocator's own area.
bool Recovery::is_word(Offset offset) const noexcept {
  const bool inside = offset % sizeof(std::uint64_t) == 0 && offset < space_.size();
  return inside && (offset < kHeaderOffset || offset >= kLanesEnd);
}

bool Recovery::committed(const Record& record) const {
  if (record.commit_word == pm::kNull) return true;
  return (pm::load(view_.at<std::uint64_t>(record.commit_word)) & record.mask) == record.expected;
}

void Recovery::apply(const WordStore& store) const {
  if (store.word == pm::kNull) return;
  auto& word = view_.at<std::uint64_t>(store.word);
  pm_.store(word, store.value);
  pm_.flush(&word, sizeof word);  // durable before the record is gone: see resolve()
}

void Recovery::allocate(unsigned lane, BlockRef block) const {
  if (block.units != 0) return marks_.allocate(block);
  // It may have come from the ring of its lane, and still be there.
  for (std::uint64_t& slot : view_.lane(lane).ring) {
    if (pm::load(slot) == block.offset) marks_.write_slot(slot, 0);
  }
  const FoundBlock found = inspector_.find(block.offset);
  marks_.allocate(found.span, found.index);
}

void Recovery::free(BlockRef block) const {
  if (block.units != 0) return marks_.free(block);
  const FoundBlock found = inspector_.find(block.offset);
  marks_.free(found.span, found.index);
}

void Recovery::drain_rings() {
  std::vector<std::uint64_t*> slots;
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (std::uint64_t& slot : view_.lane(lane).ring) {
      const Offset block = pm::load(slot);
      if (block == pm::kNull) continue;
      if (!inspector_.find(block).small) throw_corrupt(lane, "a free block at", block);
      slots.push_back(&slot);
    }
  }
  if (slots.empty()) return;
  for (const std::uint64_t* slot : slots) free({pm::load(*slot), 0});
  // A bit must be clear before the slot that also says that the block is free is emptied: else it
  // leaks.
  pm_.fence();
  for (std::uint64_t* slot : slots) marks_.write_slot(*slot, 0);
  // A slot must be empty before the block can be allocated again: else the next recovery would free
  // it.
  pm_.fence();
}

void check_header(const HeaderLayout& header) {
  const bool sound =
      pm::load(header.magic) == HeaderLayout::kMagic && header.checksum == header_checksum(header);
  if (!sound) {
    throw Error(Errc::corrupt, "the allocator's header is damaged; restore the pool from a copy");
  }
  const bool known = header.chunk_size == kChunkSize && header.span_size == kSpanSize &&
                     header.lanes == kLanes && header.ring_slots == LaneLayout::kSlots &&
                     header.size_classes == kClasses;
  if (!known) {
    throw Error(
        Errc::newer_format,
        "the pool's allocator has another geometry than this release knows; use a newer one");
  }
}

}  // namespace

std::uint64_t header_checksum(const HeaderLayout& header) noexcept {
  return util::checksum(&header, offsetof(HeaderLayout, checksum));
}

void recover(Space& space, Chunks& chunks, const Marks& marks, const Inspector& inspector) {
  const View view(space.base());
  check_header(view.header());
  chunks.open();
  Recovery recovery(space, chunks, marks, inspector);
  for (unsigned lane = 0; lane < kLanes; ++lane) recovery.resolve(lane);
  recovery.drain_rings();
}

std::vector<pm::FileRange> validate(Space& space) {
  const View view(space.base());
  check_header(view.header());
  Chunks chunks(space);
  chunks.open();
  const Marks marks(space.pm(), view, chunks);
  const Inspector inspector(view, chunks);
  const Recovery recovery(space, chunks, marks, inspector);
  for (unsigned lane = 0; lane < kLanes; ++lane) recovery.validate(lane);
  std::vector<pm::FileRange> used;
  ChunkWord word;
  for (std::uint64_t chunk = 0; chunk < chunks.count(); chunk += word.count) {
    chunks.tile(chunk, word);
    if (word.kind == ChunkKind::free) continue;
    const std::uint64_t begin = chunk * kChunkSize, end = begin + word.count * kChunkSize;
    if (!used.empty() && used.back().end == begin) {
      used.back().end = end;
    } else {
      used.push_back({begin, end});
    }
  }
  return used;
}

void Calloc::format(Space& space) {
  const pm::Persister& pm = space.pm();
  const View view(space.base());
  HeaderLayout& header = view.header();
  pm.zero(&header, kLanesEnd - kHeaderOffset);
  pm.store(header.magic, HeaderLayout::kMagic);
  pm.store(header.chunk_size, static_cast<std::uint32_t>(kChunkSize));
  pm.store(header.span_size, static_cast<std::uint32_t>(kSpanSize));
  pm.store(header.lanes, kLanes);
  pm.store(header.ring_slots, LaneLayout::kSlots);
  pm.store(header.size_classes, kClasses);
  pm.store(header.checksum, header_checksum(header));
  pm.store(header.chunk0.word, ChunkWord{ChunkKind::spans, 0, 1}.pack());
  pm.store(header.alloc_num, 1);
  // Before the pool says that it is one.
  pm.persist(&header, kLanesEnd - kHeaderOffset);
}

}  // namespace perdix::detail::alloc
