#include "index/tips/uno.h"

#include <algorithm>
#include <cstring>

#include <perdix/error.h>

#include "index/tips/plugin.h"
#include "util/checksum.h"

namespace perdix::tips {

using detail::index::tips::Uno;

void* allocate(std::size_t bytes) { return Uno::Scope::current().uno().allocate(bytes); }
void free(void* block) { Uno::Scope::current().uno().free(block); }
void undo_log_add(const void* p, std::size_t bytes) { Uno::Scope::current().uno().add(p, bytes); }

static_assert(kUndoLines == Uno::kUndoRoom && kMemoryCalls == Uno::kMemoryRoom);

}  // namespace perdix::tips

namespace perdix::detail::index::tips {
namespace {

// The operation that this thread replays: plug-ins are code that knows no context.
thread_local Uno::Scope* current_scope = nullptr;

}  // namespace

/// Makes room, so that the operation need not stop between two stores.
Uno::Scope::Scope(Uno& uno, const Need& need) : uno_(uno), need_(need), outer_(current_scope) {
  const auto lock = uno.lock();
  uno.make_room(uno.operations_ + 1);
  ++uno.operations_;
  current_scope = this;
}

Uno::Scope::~Scope() {
  report();
  current_scope = outer_;
  const auto lock = uno_.lock();
  --uno_.operations_;
}

Uno::Scope& Uno::Scope::current() {
  if (current_scope == nullptr) {
    throw Error(Errc::invalid_argument,
                "a plug-in of Tips may allocate, free and change memory in its put() and erase() "
                "only");
  }
  return *current_scope;
}

/// Plug-ins store without telling the probe. So the probe hears of what they may change, and later
/// of each word of it that has changed.
void Uno::Scope::touch(void* p, std::size_t bytes) {
  if constexpr (pm::kInstrumented) {
    if (pm::background_work()) return;  // there is no probe
    report();
    auto* const at = static_cast<std::byte*>(p);
    touched_.push_back({at, {at, at + bytes}});
  }
}

void Uno::Scope::report() {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  for (Touched& touched : touched_) {
    const std::size_t size = touched.reported.size();
    for (std::size_t i = 0; i < size; i += kWord) {
      const std::size_t n = std::min(kWord, size - i);
      if (std::memcmp(touched.at + i, touched.reported.data() + i, n) == 0) continue;
      pm::before_write(touched.at + i, n);
      pm::on_write(touched.at + i, n);
      std::memcpy(touched.reported.data() + i, touched.at + i, n);
    }
  }
}

Uno::Uno(pool::PoolCore& pool, Header& header, alloc::Claim& claim)
    : pool_(pool),
      header_(header),
      claim_(claim),
      undo_(blocks_of(pm::load(header.undo), kUndoBytes)),
      memory_(blocks_of(pm::load(header.memory), kMemoryBytes)) {}

std::vector<pm::Offset> Uno::blocks_of(pm::Offset first, std::uint64_t bytes) const {
  std::vector<pm::Offset> blocks;
  for (pm::Offset at = first; at != pm::kNull;) {
    const bool known = std::find(blocks.begin(), blocks.end(), at) != blocks.end();
    if (known || !pool_.allocator().validate_block(at, bytes)) throw_damaged_part(pool_, "a log");
    blocks.push_back(at);
    at = pm::load(pool_.at<LogBlock>(at)->next);
  }
  if (blocks.empty()) throw_damaged_part(pool_, "the header");
  return blocks;
}

/// The link is the commit of the block's allocation.
void Uno::extend(std::vector<pm::Offset>& blocks, std::uint64_t bytes) {
  blocks.reserve(blocks.size() + 1);
  alloc::Session session = pool_.allocator().session();
  const pm::Offset offset = session.reserve(bytes);
  auto* const block = pool_.at<LogBlock>(offset);
  pm().store(block->next, pm::kNull);
  pm().store(block->bytes, bytes);
  std::uint64_t flushed = sizeof(LogBlock);
  if (bytes == kMemoryBytes) {  // entries are 0 until they are used; undo records check themselves
    pm().zero(block + 1, bytes - sizeof(LogBlock));
    flushed = bytes;
  }
  pm().flush(block, flushed);  // the commit fences
  session.commit(pm::set_word(pool_.at<LogBlock>(blocks.back())->next, offset));
  blocks.push_back(offset);
}

/// The lock of the logs, which one thread alone does not need. It is the last one to be taken:
/// plug-ins come here with locks of theirs.
std::unique_lock<std::mutex> Uno::lock() {
  return alone_ ? std::unique_lock<std::mutex>() : std::unique_lock(mutex_);
}

/// With the lock.
void Uno::make_room(std::uint64_t operations) {
  const std::uint64_t records = operations * kUndoRoom;
  while (undo_room() - undo_used_ < records) extend(undo_, kUndoBytes);
  while (memory_room() - memory_used_ < operations * kMemoryRoom) extend(memory_, kMemoryBytes);
  logged_.make_room(records);
  if (lines_.capacity() - lines_.size() < records) lines_.reserve(2 * (lines_.size() + records));
}

UndoRecord& Uno::undo_at(std::uint64_t place) const {
  auto* const first =
      reinterpret_cast<UndoRecord*>(pool_.at<LogBlock>(undo_[place / kUndoPerBlock]) + 1);
  return first[place % kUndoPerBlock];
}

std::uint64_t& Uno::memory_at(std::uint64_t place) const {
  auto* const first =
      reinterpret_cast<std::uint64_t*>(pool_.at<LogBlock>(memory_[place / kMemoryPerBlock]) + 1);
  return first[place % kMemoryPerBlock];
}

std::uint64_t Uno::check_of(const UndoRecord& record, std::uint64_t place) const {
  const std::uint64_t seed =
      pm::load(header_.nonce) ^ util::checksum(&place, sizeof place) ^ pm::load(header_.epoch);
  return util::checksum(&record.offset, sizeof record - offsetof(UndoRecord, offset), seed);
}

/// A block of the pool's free space, or else of what is claimed for the operation.
pm::Offset Uno::take_block(alloc::Session& session, std::size_t bytes) {
  const std::uint64_t claimed = Scope::current().need_.take(bytes);
  try {
    return session.reserve(bytes);
  } catch (const Error& error) {
    if (error.code() != Errc::out_of_space || claimed == 0) throw;
    return session.reserve(claimed, claim_);
  }
}

/// The block with its entry in the memory log, in one commit: D5.
void* Uno::allocate(std::size_t bytes) {
  const auto lock = this->lock();
  if (memory_used_ == memory_room()) extend(memory_, kMemoryBytes);
  alloc::Session session = pool_.allocator().session();
  const pm::Offset offset = take_block(session, bytes);
  const std::uint64_t size = std::max<std::uint64_t>(bytes, 1);
  fresh_.make_room();
  session.commit(pm::set_word(memory_at(memory_used_), offset | kAllocated));
  fresh_.add({offset, size}, pool_.allocator().small_block_at(offset) != pm::kNull);
  ++memory_used_;
  void* const block = pool_.at<std::byte>(offset);
  Scope::current().touch(block, size);
  return block;
}

/// The memory that a plug-in's operation needs in order to continue: it may be between two stores.
template <class Step>
void Uno::or_break(Step step) {
  try {
    step();
  } catch (...) {
    broken_ = true;
    throw;
  }
}

/// A plug-in of a user may say anything.
void Uno::require_inside(const void* p, std::size_t bytes) {
  if (pool_.contains(pool_.offset(p), bytes)) return;
  foreign_memory_ = true;
  throw Error(Errc::invalid_argument,
              "a plug-in of Tips frees or changes memory that is not of its pool");
}

/// Not durable before flush(): until then recovery takes back that the block is out of use.
void Uno::free(void* block) {
  const auto lock = this->lock();
  or_break([&] {
    require_inside(block, 1);
    if (memory_used_ == memory_room()) extend(memory_, kMemoryBytes);
  });
  pm().store(memory_at(memory_used_++), pool_.offset(block) | kFreed);
}

/// The part of a line that belongs to the same block as `offset`: to `block`, or to one without a
/// size class if that is kNull, which shares its lines with nothing.
Uno::Line Uno::line_at(pm::Offset offset, pm::Offset block) const {
  pm::Offset begin = offset / pm::kLineSize * pm::kLineSize, end = begin + pm::kLineSize;
  if (block != pm::kNull) {
    begin = std::max(begin, block);
    end = std::min(end, block + pool_.allocator().block_size(block));
  }
  return {begin, end - begin};
}

/// The end of the block of this epoch that an offset lies in, which `block` is if it has a size
/// class; kNull if it lies in none.
pm::Offset Uno::end_of_fresh(pm::Offset offset, pm::Offset block) {
  if (block == pm::kNull) return fresh_.end_of_large(offset);
  return fresh_.has_small(block) ? block + pool_.allocator().block_size(block) : pm::kNull;
}

/// Once in an epoch. Returns whether the line has a record only now. The caller has made room.
bool Uno::write_undo(Line line) {
  if (!logged_.insert(line.offset)) return false;
  lines_.push_back(line);
  UndoRecord record{};
  record.offset = line.offset;
  record.size = line.size;
  std::memcpy(record.bytes.data(), pool_.at<std::byte>(line.offset), line.size);
  record.check = check_of(record, undo_used_);
  UndoRecord& to = undo_at(undo_used_);
  pm().copy(&to, &record, sizeof record);
  pm().flush(&to, sizeof record);  // with the fence of add()
  unfenced_ = true;
  ++undo_used_, ++written_;
  return true;
}

/// The records are durable before the plug-in stores: D4.
void Uno::add(const void* p, std::size_t bytes) {
  or_break([&] { require_inside(p, bytes); });
  Scope::current().touch(const_cast<void*>(p), bytes);
  const auto lock = this->lock();
  const pm::Offset begin = pool_.offset(p);
  or_break([&] { log_lines(begin, begin + bytes); });
  // The plug-in stores next, and any store may reach PM immediately.
  if (unfenced_) pm().fence();
  unfenced_ = false;
}

void Uno::log_lines(pm::Offset begin, pm::Offset end) {
  for (pm::Offset at = begin; at < end;) {
    const pm::Offset block = pool_.allocator().small_block_at(at);
    if (const pm::Offset behind = end_of_fresh(at, block); behind != pm::kNull) {
      at = behind;
      ++saved_;
      continue;
    }
    // A plug-in of few changes has the room.
    if (undo_used_ == undo_room() || !logged_.has_room() || lines_.size() == lines_.capacity())
      make_room(operations_);
    const Line line = line_at(at, block);
    if (!write_undo(line)) ++saved_;
    at = line.offset + line.size;
  }
}

bool Uno::is_empty() const {
  const std::lock_guard lock(mutex_);
  return undo_used_ == 0 && memory_used_ == 0;
}

std::uint64_t Uno::dram_bytes() const {
  const std::lock_guard lock(mutex_);
  return logged_.dram_bytes() + lines_.capacity() * sizeof(Line) + fresh_.dram_bytes();
}

bool Uno::has_room() const {
  const std::lock_guard lock(mutex_);
  return undo_room() - undo_used_ >= kUndoRoom && memory_room() - memory_used_ >= kMemoryRoom;
}

bool Uno::is_due(unsigned undo_records) const {
  constexpr unsigned kEntries = 2048;
  const std::lock_guard lock(mutex_);
  return undo_used_ > pm::limit("tips: undo records before a reclamation", undo_records) ||
         memory_used_ > pm::limit("tips: blocks before a reclamation", kEntries);
}

void Uno::flush(std::uint64_t reclaim_to) {
  const std::lock_guard lock(mutex_);
  // Durable by the fence behind them.
  for (const Line& line : lines_) pm().flush(pool_.at<std::byte>(line.offset), line.size);
  // Likewise.
  for (const auto& [block, size] : fresh_.all()) pm().flush(pool_.at<std::byte>(block), size);
  // Likewise. Here, and not where they were written: that may have been another thread, whose
  // flushes this one's fence does not wait for.
  for (std::uint64_t place = 0; place < memory_used_; place += kMemoryPerBlock) {
    const std::uint64_t left = memory_used_ - place;
    pm().flush(&memory_at(place), std::min<std::uint64_t>(left, kMemoryPerBlock) * sizeof left);
  }
  // The index, and what it gave back, is durable before the undo records mean nothing.
  pm().fence();
  pm().store(header_.reclaim_to, reclaim_to);  // in the line of `flushed`, so not later than it
  pm().publish(header_.flushed, pm::load(header_.epoch));
}

template <class Entry>
void Uno::for_each_entry(Entry entry) const {
  for (std::uint64_t place = 0; place < memory_room(); ++place) {
    std::uint64_t& word = memory_at(place);
    if (pm::load(word) != 0) entry(word, pm::load(word) & ~kMarks, pm::load(word) & kMarks);
  }
}

void Uno::free_freed() {
  const std::lock_guard lock(mutex_);
  for_each_entry([&](std::uint64_t& word, pm::Offset block, std::uint64_t mark) {
    if (mark != kFreed) return;
    alloc::Session session = pool_.allocator().session();
    session.free(block);
    session.commit(pm::set_word(word, 0));
  });
}

void Uno::start_epoch() {
  const std::lock_guard lock(mutex_);
  for_each_entry([&](std::uint64_t& word, pm::Offset, std::uint64_t) {
    pm().store(word, 0);
    pm().flush(&word, sizeof word);  // with the fence below
  });
  // An entry of this epoch that stays in the next one would free the block that it names. The heads
  // of the operational logs, which were flushed before, are to be durable, too.
  pm().fence();
  pm().publish(header_.epoch, pm::load(header_.epoch) + 1);
  undo_used_ = memory_used_ = 0;
  logged_.clear();
  lines_.clear();
  fresh_.clear();
}

/// Whether a record speaks of memory that a block has.
bool Uno::is_sound(const UndoRecord& record) const {
  if (record.size == 0 || record.size > pm::kLineSize) return false;
  if (!pool_.contains(record.offset, record.size)) return false;
  const Line line = line_at(record.offset, pool_.allocator().small_block_at(record.offset));
  return line.offset == record.offset && line.size == record.size;
}

void Uno::roll_back() {
  {
    const std::lock_guard lock(mutex_);
    for (std::uint64_t place = 0; place < undo_room(); ++place) {
      const UndoRecord& record = undo_at(place);
      if (record.check != check_of(record, place)) break;
      if (!is_sound(record)) throw_damaged_part(pool_, "an undo record");
      std::byte* const to = pool_.at<std::byte>(record.offset);
      pm().copy(to, record.bytes.data(), record.size);
      pm().flush(to, record.size);  // with the next commit's fence
    }
    // The first commit, and start_epoch() without one, fences: the old index is durable before any
    // block of the lost one can be given to others, and before the records mean nothing.
    for_each_entry([&](std::uint64_t& word, pm::Offset block, std::uint64_t mark) {
      if (mark != kAllocated) return;
      alloc::Session session = pool_.allocator().session();
      session.free(block);
      session.commit(pm::set_word(word, 0));
    });
  }
  start_epoch();
}

void Uno::shrink(std::size_t kept) {
  const std::lock_guard lock(mutex_);
  for (std::vector<pm::Offset>* blocks : {&undo_, &memory_}) {
    for (; blocks->size() > kept; blocks->pop_back()) {
      alloc::Session session = pool_.allocator().session();
      session.free(blocks->back());
      session.commit(pm::set_word(pool_.at<LogBlock>((*blocks)[blocks->size() - 2])->next, 0));
    }
  }
}

void Uno::check(Problems& problems) const {
  const std::lock_guard lock(mutex_);
  for_each_entry([&](const std::uint64_t& word, pm::Offset block, std::uint64_t mark) {
    problems.expect(
        (mark == kAllocated || mark == kFreed) && pool_.allocator().validate_block(block, 1),
        "the memory log has an entry {:#x}, which leads to no block (T4)", word);
  });
}

void Uno::walk(Owned& owned) const {
  const std::lock_guard lock(mutex_);
  const auto walk_log = [&](const std::vector<pm::Offset>& blocks, std::uint64_t bytes) {
    for (std::size_t i = blocks.size() - 1; i > 0; --i)
      owned.release(pm::set_word(pool_.at<LogBlock>(blocks[i - 1])->next, pm::kNull),
                    OwnedBlocks(blocks[i], bytes, "a block of a log"));
  };
  walk_log(undo_, kUndoBytes);
  walk_log(memory_, kMemoryBytes);
}

}  // namespace perdix::detail::index::tips
