#include "alloc/session.h"

#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include <perdix/error.h>

#include "alloc/calloc.h"
#include "alloc/claim.h"
#include "pm/access.h"

namespace perdix::detail::alloc {
namespace {

std::uint64_t bytes_of(const Block& block, const BlockRef& object) {
  if (block.span != nullptr) return block.span->geometry().size;
  return is_large(object.offset) ? object.units * kChunkSize - kLargeHeader
                                 : object.units * kSpanSize;
}

}  // namespace

Session::~Session() {
  if (lane_ == nullptr) return;
  const Operation& operation = lane_->operation;
  if (operation.logged) {
    committed() ? finish() : cancel();
  } else if (operation.record.reserved.size() + operation.record.freed.size() > 0) {
    for (unsigned i = 0; i < operation.record.freed.size(); ++i) {
      if (operation.freed[i].slot != kNoSlot) lane_->unclaim_slot(operation.freed[i].slot);
    }
    put_back_reserved();
  }
  reset();
  lane_->lock().unlock();
}

Offset Session::reserve(std::size_t bytes) {
  assert(!lane_->operation.logged && !lane_->operation.record.reserved.full());
  return bytes <= kLargestClass ? reserve_small(bytes > 0 ? bytes : 1) : reserve_object(bytes);
}

Offset Session::reserve(std::size_t bytes, Claim& claim) {
  Operation& operation = lane_->operation;
  assert(!operation.logged && !operation.record.reserved.full());
  Block& block = operation.reserved[operation.record.reserved.size()];
  operation.record.reserved.push(claim.take(std::max<std::size_t>(bytes, 1), block));
  return block.offset;
}

Offset Session::reserve_small(std::uint64_t bytes) {
  Operation& operation = lane_->operation;
  const unsigned size_class = size_class_of(bytes);
  Block& block = operation.reserved[operation.record.reserved.size()];
  if (!lane_->take(size_class, block)) calloc_->refill(*lane_, size_class, block);
  operation.record.reserved.push({block.offset, 0});
  return block.offset;
}

Offset Session::reserve_object(std::uint64_t bytes) {
  Operation& operation = lane_->operation;
  const BlockRef object = calloc_->take_object(*lane_, bytes);
  operation.reserved[operation.record.reserved.size()] = {object.offset, nullptr, 0, kNoSlot};
  operation.record.reserved.push(object);
  return object.offset;
}

void Session::free(Offset block) {
  Operation& operation = lane_->operation;
  assert(!operation.logged && !operation.record.freed.full());
  // Every free makes up to two earlier ones available again, so what waits is bounded by what one
  // grace period frees.
  lane_->settle(2);
  lane_->make_room();
  Heap& heap = calloc_->heap_;
  Block& freed = operation.freed[operation.record.freed.size()];
  freed = {block, nullptr, 0, kNoSlot};
  if (is_large(block)) return operation.record.freed.push({block, heap.chunks_at(block)});
  if (is_run(block)) return operation.record.freed.push({block, heap.run_at(block)});
  Span& span = heap.span_at(block);
  const std::uint64_t position = position_in_span(block);
  const bool begins = is_block(span.geometry(), position);
  freed.span = &span;
  freed.index = begins ? block_index(span.geometry(), position) : 0;
  if (!begins || !span.is_taken(freed.index)) {
    throw Error(Errc::corrupt,
                fmt::format("no block is allocated at offset {:#x} of the pool; run `perdix check`",
                            block));
  }
  freed.slot = lane_->claim_slot();
  operation.record.freed.push({block, 0});
}

void Session::free_unread(Offset block) {
  free(block);
  Operation& operation = lane_->operation;
  operation.freed[operation.record.freed.size() - 1].unread = true;
}

void Session::commit_when(const std::uint64_t& word, std::uint64_t mask, std::uint64_t expected) {
  Record& record = lane_->operation.record;
  record.commit_word = calloc_->offset_in_pool(word);
  record.mask = mask;
  record.expected = expected;
  assert((expected & ~mask) == 0);
  if (committed()) {
    record.commit_word = pm::kNull;
    throw Error(
        Errc::corrupt,
        fmt::format("the word at offset {:#x} of the pool is not as its index knows it; run "
                    "`perdix check`",
                    calloc_->offset_in_pool(word)));
  }
}

void Session::make_durable(const pm::Change& change) {
  if (calloc_->pm_.commits_as_one()) {
    commit_when(*change.word, change.mask, change.value);
    return make_durable_as_one({&change, 1});
  }
  make_logged(change);
  drop_record();
}

/// Makes the change and then the marks durable, and leaves the record in place.
void Session::make_logged(const pm::Change& change) {
  const pm::Persister& pm = calloc_->pm_;
  assert(!pm.commits_as_one());
  commit_when(*change.word, change.mask, change.value);
  log();
  pm.store(*change.word, change.of(pm::load(*change.word)));  // the commit
  // make_marks_durable() fences, if nothing is freed (rule R3).
  pm.flush(change.word, sizeof *change.word);
  if (lane_->operation.record.freed.size() > 0) pm.fence();  // before marks say that it is free
  make_marks_durable();
}

void Session::make_durable_as_one(std::span<const pm::Change> changes) {
  pm::Changes all;
  for (const pm::Change& change : changes) all.add(change);
  add_marks(all);
  // The commit, of which a crash leaves all or nothing: so there is no record that could tell.
  calloc_->pm_.commit(all.all());
  const Record& record = lane_->operation.record;
  for (const auto& blocks : {record.reserved, record.freed}) {
    for (const BlockRef block : blocks) {
      if (block.units != 0) calloc_->marks_.wrote(block);
    }
  }
}

/// Ends an operation that is durable together with its marks, and whose record is gone. Only DRAM
/// is left to do.
void Session::end() {
  remember();
  reset();
}

/// Adds to `changes` the stores that mark() would make.
void Session::add_marks(pm::Changes& changes) const {
  const Operation& operation = lane_->operation;
  const Marks& marks = calloc_->marks_;
  auto& ring = lane_->layout().ring;
  for (unsigned i = 0; i < operation.record.reserved.size(); ++i) {
    const Block& block = operation.reserved[i];
    if (block.slot != kNoSlot) {
      changes.set(ring[block.slot], 0);  // its bit is still set
    } else {
      changes.add(block.span != nullptr ? marks.allocation(block.span->offset, block.index)
                                        : marks.allocation(operation.record.reserved[i]));
    }
  }
  for (unsigned i = 0; i < operation.record.freed.size(); ++i) {
    const Block& block = operation.freed[i];
    if (block.slot != kNoSlot) {
      changes.set(ring[block.slot], block.offset);
    } else {
      changes.add(block.span != nullptr ? marks.release(block.span->offset, block.index)
                                        : marks.release(operation.record.freed[i]));
    }
  }
}

void Session::redo(std::uint64_t& word, std::uint64_t value) {
  lane_->operation.record.redo = {calloc_->offset_in_pool(word), value};
}

void Session::undo(std::uint64_t& word, std::uint64_t value) {
  lane_->operation.record.undo = {calloc_->offset_in_pool(word), value};
}

bool Session::logged() const noexcept { return lane_->operation.logged; }

void Session::log() {
  Operation& operation = lane_->operation;
  assert(!operation.logged);
  if (operation.record.commit_word == pm::kNull) {
    // The record commits as soon as it is in PM, and that may be early: what it makes reachable
    // must be durable before.
    calloc_->pm_.fence();
  }
  write_record(calloc_->pm_, lane_->layout().record, operation.record);
  operation.logged = true;
}

bool Session::committed() const {
  const Record& record = lane_->operation.record;
  if (record.commit_word == pm::kNull) return true;
  return (pm::load(calloc_->view_.at<std::uint64_t>(record.commit_word)) & record.mask) ==
         record.expected;
}

void Session::end_record() {
  make_marks_durable();
  drop_record();
}

void Session::make_marks_durable() {
  assert(lane_->operation.logged);
  mark();
  // The marks, and the caller's stores of an operation without commit word, must be durable when
  // the record is gone.
  calloc_->pm_.fence();
}

/// Clears the record, durably. Makes durable what this thread has flushed before, too.
void Session::drop_record() { clear_record(calloc_->pm_, lane_->layout().record); }

/// Marks the blocks of a committed operation in PM. Flushed, not fenced.
void Session::mark() {
  const Operation& operation = lane_->operation;
  const Marks& marks = calloc_->marks_;
  auto& ring = lane_->layout().ring;
  for (unsigned i = 0; i < operation.record.reserved.size(); ++i) {
    const Block& block = operation.reserved[i];
    if (block.slot != kNoSlot) {
      marks.write_slot(ring[block.slot], 0);  // its bit is still set
    } else if (block.span != nullptr) {
      marks.allocate(block.span->offset, block.index);
    } else {
      marks.allocate(operation.record.reserved[i]);
    }
  }
  for (unsigned i = 0; i < operation.record.freed.size(); ++i) {
    const Block& block = operation.freed[i];
    if (block.slot != kNoSlot) {
      marks.write_slot(ring[block.slot], block.offset);
    } else if (block.span != nullptr) {
      marks.free(block.span->offset, block.index);
    } else {
      marks.free(operation.record.freed[i]);
    }
  }
}

/// Gives slots back, and lets freed blocks wait for their readers. Only after the record is gone:
/// until then a recovery would act on these blocks and slots.
void Session::remember() {
  const Operation& operation = lane_->operation;
  for (unsigned i = 0; i < operation.record.reserved.size(); ++i) {
    if (operation.reserved[i].slot != kNoSlot) lane_->unclaim_slot(operation.reserved[i].slot);
  }
  for (unsigned i = 0; i < operation.record.freed.size(); ++i) {
    const Block& block = operation.freed[i];
    if (block.unread) {
      lane_->freed_unread(block.offset, block.slot);
    } else {
      lane_->freed(block.offset, block.slot);
      pm::on_retired(&calloc_->view_.at<std::byte>(block.offset),
                     bytes_of(block, operation.record.freed[i]));
      pm::on_step("alloc: a freed block waits for its readers");
    }
  }
}

void Session::cancel() {
  const Operation& operation = lane_->operation;
  assert(operation.logged && operation.record.commit_word != pm::kNull);
  const pm::Persister& pm = calloc_->pm_;
  if (const WordStore& undo = operation.record.undo; undo.word != pm::kNull) {
    // Durable before the record is gone, by which recovery would make this store.
    std::uint64_t& word = calloc_->view_.at<std::uint64_t>(undo.word);
    pm.publish(word, undo.value);
  }
  clear_record(pm, lane_->layout().record);
  for (unsigned i = 0; i < operation.record.freed.size(); ++i) {
    if (operation.freed[i].slot != kNoSlot) lane_->unclaim_slot(operation.freed[i].slot);
  }
  put_back_reserved();
  reset();
}

void Session::put_back_reserved() noexcept {
  const Operation& operation = lane_->operation;
  // The last first, so that the lane hands them out in the same order again.
  for (unsigned i = operation.record.reserved.size(); i > 0; --i) {
    const BlockRef object = operation.record.reserved[i - 1];
    if (object.units == 0) {
      lane_->put_back(operation.reserved[i - 1]);
    } else if (is_large(object.offset)) {
      calloc_->heap_.give_back_chunks(object.offset);
    } else {
      calloc_->heap_.give_back_run(object.offset);
    }
  }
}

void Session::reset() noexcept {
  lane_->operation.record.clear();
  lane_->operation.logged = false;
}

}  // namespace perdix::detail::alloc
