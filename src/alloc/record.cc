#include "alloc/record.h"

#include <algorithm>

#include "pm/access.h"
#include "util/checksum.h"

namespace perdix::detail::alloc {
namespace {

constexpr unsigned kReservedBits = 7;
constexpr unsigned kFreedShift = 3;
constexpr unsigned kHasRedo = 1 << 6;
constexpr unsigned kHasUndo = 1 << 7;

unsigned shape_of(const Record& record) noexcept {
  return record.reserved.size() | record.freed.size() << kFreedShift |
         (record.redo.word != pm::kNull ? kHasRedo : 0) |
         (record.undo.word != pm::kNull ? kHasUndo : 0);
}

unsigned words_of(unsigned shape) noexcept {
  return kRecordHeaderWords + (shape & kReservedBits) + (shape >> kFreedShift & kReservedBits) +
         (shape & kHasRedo ? 2 : 0) + (shape & kHasUndo ? 2 : 0);
}

std::uint64_t checksum_of(const RecordWords& words, unsigned count) noexcept {
  // 0 means that there is no record.
  return std::max<std::uint64_t>(util::checksum(&words[1], (count - 1) * sizeof words[1]), 1);
}

/// Returns the number of words.
unsigned encode(const Record& record, RecordWords& words) noexcept {
  const unsigned shape = shape_of(record);
  words[1] = record.commit_word | std::uint64_t{shape} << kOffsetBits;
  words[2] = record.mask;
  words[3] = record.expected;
  unsigned next = kRecordHeaderWords;
  for (const BlockRef block : record.reserved) words[next++] = block.pack();
  for (const BlockRef block : record.freed) words[next++] = block.pack();
  for (const WordStore& store : {record.redo, record.undo}) {
    if (store.word == pm::kNull) continue;
    words[next++] = store.word;
    words[next++] = store.value;
  }
  words[0] = checksum_of(words, next);
  return next;
}

}  // namespace

void write_record(const pm::Persister& pm, RecordWords& words, const Record& record) {
  RecordWords image;
  const unsigned count = encode(record, image);
  for (unsigned i = 1; i < count; ++i) pm.store(words[i], image[i]);
  pm.store(words[0], image[0]);
  // The operation may publish its commit word as soon as this returns: until finish() a crash needs
  // the record.
  pm.flush(&words, count * sizeof words[0]);
  pm.fence();
}

void clear_record(const pm::Persister& pm, RecordWords& words) {
  pm.store(words[0], 0);
  // Before the next owner of the commit word changes it, or of a block: else this record would be
  // resolved wrongly.
  pm.persist(&words[0], sizeof words[0]);
}

std::optional<Record> read_record(const RecordWords& words) {
  RecordWords image;
  for (unsigned i = 0; i < kRecordWords; ++i) image[i] = pm::load(words[i]);
  const auto shape = static_cast<unsigned>(image[1] >> kOffsetBits);
  const unsigned reserved = shape & kReservedBits;
  const unsigned freed = shape >> kFreedShift & kReservedBits;
  if (image[0] == 0 || reserved > kMaxBlocks || freed > kMaxBlocks || shape >= 2 * kHasUndo)
    return std::nullopt;
  if (image[0] != checksum_of(image, words_of(shape))) return std::nullopt;

  Record record;
  record.commit_word = image[1] & kOffsetMask;
  record.mask = image[2];
  record.expected = image[3];
  unsigned next = kRecordHeaderWords;
  for (unsigned i = 0; i < reserved; ++i) record.reserved.push(BlockRef::unpack(image[next++]));
  for (unsigned i = 0; i < freed; ++i) record.freed.push(BlockRef::unpack(image[next++]));
  if (shape & kHasRedo) {
    record.redo = {image[next], image[next + 1]};
    next += 2;
  }
  if (shape & kHasUndo) record.undo = {image[next], image[next + 1]};
  return record;
}

}  // namespace perdix::detail::alloc
