#include "index/elimda/backup_log.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include <fmt/format.h>

#include <perdix/error.h>

#include "index/elimda/bits.h"
#include "pool/checked.h"

namespace perdix::detail::index::elimda {

BackupLog::BackupLog(pool::PoolCore& pool, Root& root, const Shape& shape)
    : pool_(pool), root_(root), shape_(shape), chunk_units_(shape.chunk_units()) {}

BackupLog::~BackupLog() {
  for (auto& block : blocks_) delete block.load();
}

pm::Offset BackupLog::next_chunk(pm::Offset offset) const {
  if (!pool_.contains(offset, kChunkBytes) || offset % 64 != 0)
    pool::throw_corrupt(pool_, "a chunk", offset);
  const auto& head = *pool_.at<ChunkHead>(offset);
  if (pm::load(head.magic) != ChunkHead::kMagic || pm::load(head.units) != chunk_units_)
    pool::throw_corrupt(pool_, "a chunk", offset);
  return pm::load(head.next);
}

void BackupLog::open() {
  std::vector<pm::Offset> found;
  for (pm::Offset at = pm::load(root_.chunks); at != pm::kNull;) {
    found.push_back(at);
    at = next_chunk(at);
    // A damaged list may lead round in a circle.
    if (found.size() > pool_.size() / kChunkBytes) pool::throw_corrupt(pool_, "a chunk", at);
  }
  for (std::size_t i = found.size(); i > 0; --i) {  // from the oldest one on
    const unsigned chunk = make_room();
    append(found[i - 1], chunk);
    load_uses(chunk_of(chunk * chunk_units_), chunk * chunk_units_);
  }
}

void BackupLog::load_uses(Chunk& chunk, Unit first) {
  for (unsigned i = chunk_units_; i > 0; --i) {
    unsigned set = 0;
    for (unsigned w = 0; w < shape_.unit_words(); ++w) {
      const auto word =
          UnitWord::unpack(pm::load(chunk.words[std::size_t{i - 1} * shape_.unit_words() + w]));
      set += static_cast<unsigned>(std::popcount(word.valid));
    }
    chunk.uses[i - 1].store(static_cast<std::uint16_t>(set), std::memory_order_relaxed);
    if (set == 0) free_.push_back(first + i - 1);
  }
}

/// Makes room in DRAM for one more chunk and returns its number. Throws bad_alloc, and out_of_space
/// if there are as many chunks as can be numbered.
unsigned BackupLog::make_room() {
  const unsigned chunk = chunk_count_.load(std::memory_order_relaxed);
  if (chunk / kBlock == blocks_.size())
    throw Error(Errc::out_of_space,
                "the backup log of an ElimDa index has as many units as it can");
  std::atomic<Block*>& block = blocks_[chunk / kBlock];
  if (block.load(std::memory_order_relaxed) == nullptr) block.store(new Block);
  auto& uses = (*block.load(std::memory_order_relaxed))[chunk % kBlock].uses;
  if (uses == nullptr) uses = std::make_unique<Uses[]>(chunk_units_);
  const std::lock_guard lock(free_lock_);
  const std::size_t needed = std::size_t{chunk + 1} * chunk_units_;
  if (free_.capacity() < needed) free_.reserve(2 * needed);
  return chunk;
}

void BackupLog::append(pm::Offset offset, unsigned chunk) {
  Chunk& added = (*blocks_[chunk / kBlock].load())[chunk % kBlock];
  added.words = pool_.at<std::uint64_t>(offset + sizeof(ChunkHead));
  added.pairs = pool_.at<Pair>(offset + shape_.chunk_pairs_at());
  chunk_count_.store(chunk + 1, std::memory_order_release);
}

/// Allocates a chunk without pairs that count, links it before the others by the root's word, and
/// adds its units to the free ones. The caller holds growing_. Throws out_of_space, bad_alloc.
void BackupLog::add_chunk() {
  const unsigned chunk = make_room();
  const pm::Persister& pm = pool_.pm();
  alloc::Session session = pool_.allocator().session();
  const pm::Offset offset = session.reserve(kChunkBytes);
  auto& head = *pool_.at<ChunkHead>(offset);
  pm.zero(&head, shape_.chunk_pairs_at());
  pm.store(head.next, pm::load(root_.chunks));
  pm.store(head.units, chunk_units_);
  pm.store(head.magic, ChunkHead::kMagic);
  pm.flush(&head, shape_.chunk_pairs_at());  // durable before the commit, by its fence
  session.commit(pm::set_word(root_.chunks, offset));
  append(offset, chunk);
  const std::lock_guard lock(free_lock_);
  for (unsigned i = chunk_units_; i > 0; --i) free_.push_back(chunk * chunk_units_ + i - 1);
}

/// Takes all units of a chunk off the list of free units. Returns false, and has changed nothing,
/// if some of them are in use.
bool BackupLog::withdraw_units(unsigned chunk) {
  const std::lock_guard lock(free_lock_);
  const auto of_chunk = [&](Unit unit) { return unit / chunk_units_ == chunk; };
  if (std::count_if(free_.begin(), free_.end(), of_chunk) != chunk_units_) return false;
  std::erase_if(free_, of_chunk);
  return true;
}

/// Takes a chunk out of the list in PM and frees it. No unit of it is in use or free, and the
/// caller holds growing_. Throws corrupt, bad_alloc.
void BackupLog::unlink(Chunk& chunk) {
  const pm::Offset offset = pool_.offset(chunk.words) - sizeof(ChunkHead);
  std::uint64_t* link = &root_.chunks;
  while (pm::load(*link) != offset) {
    next_chunk(pm::load(*link));
    link = &pool_.at<ChunkHead>(pm::load(*link))->next;
  }
  alloc::Session session = pool_.allocator().session();
  session.free(offset);
  session.commit(pm::set_word(*link, next_chunk(offset)));
  chunk.gone.store(true);
  gone_count_.fetch_add(1);
}

bool BackupLog::free_unused_chunks() {
  const std::lock_guard growing(growing_);
  bool any = false;
  for (unsigned i = 0; i < chunk_count_.load(); ++i) {
    Chunk& chunk = chunk_of(i * chunk_units_);
    if (chunk.gone.load() || !withdraw_units(i)) continue;
    unlink(chunk);
    any = true;
  }
  return any;
}

bool BackupLog::pop(Unit& unit) {
  const std::lock_guard lock(free_lock_);
  if (free_.empty()) return false;
  unit = free_.back();
  free_.pop_back();
  return true;
}

BackupLog::Unit BackupLog::take() {
  Unit unit = 0;
  while (!pop(unit)) {
    const std::lock_guard lock(growing_);
    if (pop(unit)) break;  // another thread has added a chunk, or given back a unit
    add_chunk();
  }
  uses(unit).store(1, std::memory_order_relaxed);
  return unit;
}

void BackupLog::drop(Unit unit) {
  // acq_rel: all accesses by its former users come before the unit is used again.
  if (uses(unit).fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const std::lock_guard lock(free_lock_);
  free_.push_back(unit);
}

void BackupLog::clear(std::span<const DPair> pairs) {
  constexpr std::size_t kPairsPerFence = 64;
  for (std::size_t from = 0; from < pairs.size(); from += kPairsPerFence)
    clear_some(pairs.subspan(from, std::min(kPairsPerFence, pairs.size() - from)));
}

void BackupLog::clear_some(std::span<const DPair> pairs) {
  // A thread that is late in making the segment warm may clear some of them first, and then calls
  // forget() itself: drop_copy() in cold.h. So each bit is cleared by a compare-and-swap, in every
  // domain, which tells whether this thread has cleared it; a commit would not.
  std::uint64_t cleared = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    std::uint64_t& of_pair = word(pairs[i].ref);
    const bool changed = change_bits(pool_.pm(), {&of_pair, bit(pairs[i].ref), 0});
    cleared |= std::uint64_t{changed} << i;
    pool_.pm().flush(&of_pair, sizeof of_pair);  // fenced below
  }
  // Before the units may be used again, and before one of the pairs is erased: it would come back.
  pool_.pm().fence();
  for (; cleared != 0; cleared &= cleared - 1)
    forget(pairs[static_cast<std::size_t>(std::countr_zero(cleared))].ref);
}

void BackupLog::finish_copies(const LogSet& logs) {
  for (Unit unit = 0; unit < units(); ++unit) {
    const std::uint16_t name = UnitWord::unpack(pm::load(words(unit)[0])).log;
    if (name == UnitWord::kNoLog || counted(unit) == 0) continue;
    if (name > logs.log(logs.count() - 1).name())
      pool::throw_corrupt(pool_, "a backup unit", pool_.offset(words(unit)));
    if (!logs.has(name)) continue;  // of fewer logs: complete
    const CollectingLog log = logs.named(name);
    const auto head = LogWord::unpack(pm::load(log.word()));
    const unsigned copied = words_with(unit, name, head.number);
    if (head.count == 0 || copied == 0) continue;
    if (copied == shape_.unit_words())
      log.reset();
    else
      empty(unit);
  }
}

/// How many words of a unit say that it is that copy of a log. (Words before this one's first may
/// be of another, and then none of their pairs counts.) A word that was never written is none, nor
/// is one like it, of the first copy of log 0 without pairs that count: then the unit is emptied,
/// and the log has its pairs still.
unsigned BackupLog::words_with(Unit unit, unsigned log, std::uint32_t number) const {
  unsigned with = 0;
  for (unsigned i = 0; i < shape_.unit_words(); ++i) {
    const auto word = UnitWord::unpack(pm::load(words(unit)[i]));
    with += word.pack() != 0 && word.log == log && word.number == number;
  }
  return with;
}

/// Has no pair of a unit count, durably.
void BackupLog::empty(Unit unit) {
  for_each_pair(unit, [&](BackupRef ref) {
    commit_bits(pool_.pm(), killing(ref));
    forget(ref);
  });
}

UnitWord BackupLog::word_that_counts(Unit unit) const {
  const std::span all(words(unit), shape_.unit_words());
  const auto counts = [](std::uint64_t& word) {
    return UnitWord::unpack(pm::load(word)).valid != 0;
  };
  const auto found = std::find_if(all.begin(), all.end(), counts);
  assert(found != all.end());
  return UnitWord::unpack(pm::load(*found));
}

unsigned BackupLog::used_units() const {
  unsigned used = 0;
  for (Unit unit = 0; unit < units(); ++unit) used += counted(unit) != 0;
  return used;
}

std::size_t BackupLog::bytes() const {
  const std::size_t chunks = chunk_count_.load(std::memory_order_relaxed);
  return sizeof *this + (chunks + kBlock - 1) / kBlock * sizeof(Block) +
         chunks * chunk_units_ * (sizeof(Uses) + sizeof(Unit));
}

}  // namespace perdix::detail::index::elimda
