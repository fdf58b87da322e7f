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
    : pool_(pool),
      root_(root),
      shape_(shape),
      chunk_units_(shape.chunk_units()),
      lists_(pool, root) {}

BackupLog::~BackupLog() {
  for (auto& block : blocks_) delete block.load();
  for (unsigned depth = 0; depth < regions_.size(); ++depth) {
    RegionUnits* const units = regions_[depth].load();
    for (std::size_t i = 0; units != nullptr && i < std::size_t{1} << depth; ++i)
      delete units[i].used.load();
    delete[] units;
  }
}

/// Null if no region of that depth has been asked for.
BackupLog::RegionUnits* BackupLog::units_of(Region region) const {
  const unsigned depth = ChunkLists::depth_of(region);
  RegionUnits* const units = regions_[depth].load(std::memory_order_acquire);
  return units != nullptr ? &units[region - (Region{1} << depth)] : nullptr;
}

/// The caller holds growing_.
BackupLog::RegionUnits& BackupLog::make_units_of(Region region) {
  const unsigned depth = ChunkLists::depth_of(region);
  if (regions_[depth].load(std::memory_order_relaxed) == nullptr)
    regions_[depth].store(new RegionUnits[std::size_t{1} << depth], std::memory_order_release);
  return *units_of(region);
}

pm::Offset BackupLog::next_chunk(pm::Offset offset) const {
  if (!pool_.contains(offset, kChunkBytes) || offset % 64 != 0)
    pool::throw_corrupt(pool_, "a chunk", offset);
  const auto& head = *pool_.at<ChunkHead>(offset);
  if (pm::load(head.magic) != ChunkHead::kMagic || pm::load(head.units) != chunk_units_)
    pool::throw_corrupt(pool_, "a chunk", offset);
  return pm::load(head.next);
}

void BackupLog::read_all() {
  for (Region region = 1; region < 2u << lists_.depth(); ++region) require_read(region);
}

void BackupLog::require_read(Region region) {
  const RegionUnits* units = units_of(region);
  if (units != nullptr && units->read.load(std::memory_order_acquire)) return;
  const std::lock_guard lock(growing_);
  read(region);
}

/// Of all regions of a hash.
void BackupLog::require_read(KeyHash hash, unsigned max_depth) {
  lists_.for_each_region(hash, hash, max_depth, [&](Region region) { require_read(region); });
}

/// Finds the chunks of a region, and which of their units are free, unless a thread has done that.
/// The caller holds growing_.
void BackupLog::read(Region region) {
  RegionUnits& units = make_units_of(region);
  if (units.read.load(std::memory_order_relaxed)) return;
  std::vector<pm::Offset> found;
  for (pm::Offset at = pm::load(lists_.head(region)); at != pm::kNull;) {
    found.push_back(at);
    at = next_chunk(at);
    // A damaged list may lead round in a circle.
    if (found.size() > pool_.size() / kChunkBytes) pool::throw_corrupt(pool_, "a chunk", at);
  }
  auto used = std::make_unique<UsedUnits>();
  const unsigned before = chunk_count_.load(std::memory_order_relaxed);
  try {
    for (std::size_t i = found.size(); i > 0; --i) {  // from the oldest one on
      const unsigned chunk = make_room(region);
      append(found[i - 1], chunk, region);
      load_uses(chunk, *used);
    }
  } catch (...) {  // no thread has seen what was read
    chunk_count_.store(before);
    units.chunks = 0;
    units.free.clear();
    units.free_count.store(0);
    throw;
  }
  std::sort(used->units.begin(), used->units.end());
  if (!used->units.empty()) units.used.store(used.release(), std::memory_order_release);
  units.read.store(true, std::memory_order_release);
  regions_read_.fetch_add(1, std::memory_order_relaxed);
  pm::on_step("elimda: a region of the backup log was read");
}

void BackupLog::load_uses(unsigned chunk, UsedUnits& used) {
  const Unit first = chunk * chunk_units_;
  for (unsigned i = chunk_units_; i > 0; --i) {
    const Unit unit = first + i - 1;
    unsigned set = 0;
    for (unsigned w = 0; w < shape_.unit_words(); ++w)
      set += static_cast<unsigned>(std::popcount(UnitWord::unpack(pm::load(words(unit)[w])).valid));
    uses(unit).store(static_cast<std::uint16_t>(set), std::memory_order_relaxed);
    if (set == 0) {
      give_back(unit);
      continue;
    }
    const UnitWord word = word_that_counts(unit);
    if (word.log != UnitWord::kNoLog && word.log >= shape_.log_names())
      pool::throw_corrupt(pool_, "a backup unit", pool_.offset(words(unit)));
    used.units.push_back({word.log, word.number, unit});
  }
}

const std::vector<BackupLog::UsedUnit>* BackupLog::used_in(Region region) {
  require_read(region);
  const UsedUnits* used = units_of(region)->used.load(std::memory_order_acquire);
  return used != nullptr ? &used->units : nullptr;
}

void BackupLog::forget_used() {
  for (Region region = 1; region < ChunkLists::kRegions; ++region) {
    RegionUnits* const units = units_of(region);
    if (units == nullptr) continue;
    if (UsedUnits* used = units->used.exchange(nullptr)) pool_.reclaimer().retire(used);
  }
}

/// Makes room in DRAM for one more chunk and returns its number. Throws bad_alloc, and out_of_space
/// if there are as many chunks as can be numbered.
unsigned BackupLog::make_room(Region region) {
  const unsigned chunk = chunk_count_.load(std::memory_order_relaxed);
  if (chunk / kBlock == blocks_.size())
    throw Error(Errc::out_of_space,
                "the backup log of an ElimDa index has as many units as it can");
  std::atomic<Block*>& block = blocks_[chunk / kBlock];
  if (block.load(std::memory_order_relaxed) == nullptr) block.store(new Block);
  auto& uses = (*block.load(std::memory_order_relaxed))[chunk % kBlock].uses;
  if (uses == nullptr) uses = std::make_unique<Uses[]>(chunk_units_);
  RegionUnits& units = *units_of(region);
  const std::lock_guard lock(units.free_lock);
  const std::size_t needed = std::size_t{units.chunks + 1} * chunk_units_;
  if (units.free.capacity() < needed) units.free.reserve(needed + needed / 2);
  return chunk;
}

void BackupLog::append(pm::Offset offset, unsigned chunk, Region region) {
  Chunk& added = (*blocks_[chunk / kBlock].load())[chunk % kBlock];
  added.words = pool_.at<std::uint64_t>(offset + sizeof(ChunkHead));
  added.pairs = pool_.at<Pair>(offset + shape_.chunk_pairs_at());
  added.region = region;
  ++units_of(region)->chunks;
  chunk_count_.store(chunk + 1, std::memory_order_release);
}

/// Makes regions of a greater depth if the list of a hash's region is long. Returns whether it did.
/// The caller holds growing_. Throws corrupt, out_of_space, bad_alloc.
bool BackupLog::add_regions(KeyHash hash, unsigned max_depth) {
  const unsigned depth = lists_.depth();
  const std::uint64_t greatest = pm::limit("elimda: depth of regions", ChunkLists::kMaxDepth);
  const std::uint64_t most = pm::limit("elimda: units of a region", kMaxChunks * chunk_units_);
  if (depth >= std::min<std::uint64_t>(max_depth, greatest)) return false;
  const unsigned chunks = make_units_of(ChunkLists::region_of(hash, depth)).chunks;
  if (std::uint64_t{chunks + 1} * chunk_units_ <= most) return false;
  lists_.deepen();
  pm::on_step("elimda: the backup log has more regions");
  return true;
}

bool BackupLog::deepen(KeyHash hash, unsigned max_depth) {
  require_read(hash, max_depth);
  if (has_free(hash, max_depth)) return false;
  const std::lock_guard lock(growing_);
  return !has_free(hash, max_depth) && add_regions(hash, max_depth);
}

/// Allocates a chunk without pairs that count, links it before the others of the hash's region, and
/// adds its units to the free ones. The caller holds growing_. Throws corrupt, out_of_space,
/// bad_alloc.
void BackupLog::add_chunk(KeyHash hash, unsigned max_depth) {
  add_regions(hash, max_depth);
  const Region region = ChunkLists::region_of(hash, std::min(lists_.depth(), max_depth));
  read(region);
  const unsigned chunk = make_room(region);
  const pm::Persister& pm = pool_.pm();
  alloc::Session session = pool_.allocator().session();
  const pm::Offset offset = session.reserve(kChunkBytes);
  std::uint64_t& list = lists_.head(region);
  auto& head = *pool_.at<ChunkHead>(offset);
  pm.zero(&head, shape_.chunk_pairs_at());
  pm.store(head.next, pm::load(list));
  pm.store(head.units, chunk_units_);
  pm.store(head.magic, ChunkHead::kMagic);
  pm.flush(&head, shape_.chunk_pairs_at());  // durable before the commit, by its fence
  session.commit(pm::set_word(list, offset));
  append(offset, chunk, region);
  for (unsigned i = chunk_units_; i > 0; --i) give_back(chunk * chunk_units_ + i - 1);
}

/// Takes all units of a chunk off the list of free units. Returns false, and has changed nothing,
/// if some of them are in use.
bool BackupLog::withdraw_units(unsigned chunk) {
  RegionUnits& region = *units_of(chunk_of(chunk * chunk_units_).region);
  const std::lock_guard lock(region.free_lock);
  const auto of_chunk = [&](Unit unit) { return unit / chunk_units_ == chunk; };
  if (std::count_if(region.free.begin(), region.free.end(), of_chunk) != chunk_units_) return false;
  std::erase_if(region.free, of_chunk);
  region.free_count.store(static_cast<unsigned>(region.free.size()), std::memory_order_relaxed);
  return true;
}

/// Takes a chunk out of the list in PM and frees it. No unit of it is in use or free, and the
/// caller holds growing_. Throws corrupt, bad_alloc.
void BackupLog::unlink(Chunk& chunk) {
  const pm::Offset offset = pool_.offset(chunk.words) - sizeof(ChunkHead);
  std::uint64_t* link = &lists_.head(chunk.region);
  while (pm::load(*link) != offset) {
    next_chunk(pm::load(*link));
    link = &pool_.at<ChunkHead>(pm::load(*link))->next;
  }
  alloc::Session session = pool_.allocator().session();
  session.free(offset);
  session.commit(pm::set_word(*link, next_chunk(offset)));
  chunk.gone.store(true);
  --units_of(chunk.region)->chunks;
  gone_count_.fetch_add(1);
}

bool BackupLog::free_unused_chunks() {
  read_all();
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

bool BackupLog::has_free(KeyHash hash, unsigned max_depth) const {
  bool any = false;
  lists_.for_each_region(hash, hash, max_depth, [&](Region region) {
    const RegionUnits* units = units_of(region);
    any |= units != nullptr && units->free_count.load(std::memory_order_relaxed) != 0;
  });
  return any;
}

/// Takes a free unit of the regions that have a hash, from the greatest depth on.
bool BackupLog::pop(KeyHash hash, unsigned max_depth, Unit& unit) {
  for (unsigned depth = std::min(lists_.depth(), max_depth) + 1; depth > 0; --depth) {
    RegionUnits* const region = units_of(ChunkLists::region_of(hash, depth - 1));
    if (region == nullptr || region->free_count.load(std::memory_order_relaxed) == 0) continue;
    const std::lock_guard lock(region->free_lock);
    if (region->free.empty()) continue;
    unit = region->free.back();
    region->free.pop_back();
    region->free_count.store(static_cast<unsigned>(region->free.size()), std::memory_order_relaxed);
    return true;
  }
  return false;
}

BackupLog::Unit BackupLog::take(KeyHash hash, unsigned max_depth) {
  require_read(hash, max_depth);
  Unit unit = 0;
  while (!pop(hash, max_depth, unit)) {
    const std::lock_guard lock(growing_);
    if (pop(hash, max_depth, unit)) break;  // another thread has added a chunk, or freed a unit
    add_chunk(hash, max_depth);
  }
  uses(unit).store(1, std::memory_order_relaxed);
  return unit;
}

std::uint32_t BackupLog::next_number(Unit unit) const {
  std::uint32_t number = 0;
  for (unsigned i = 0; i < shape_.unit_words(); ++i)
    number = std::max(number, UnitWord::unpack(pm::load(words(unit)[i])).number);
  return number + 1;
}

void BackupLog::give_back(Unit unit) {
  RegionUnits& region = *units_of(chunk_of(unit).region);
  const std::lock_guard lock(region.free_lock);
  region.free.push_back(unit);
  region.free_count.store(static_cast<unsigned>(region.free.size()), std::memory_order_relaxed);
}

void BackupLog::drop(Unit unit) {
  // acq_rel: all accesses by its former users come before the unit is used again.
  if (uses(unit).fetch_sub(1, std::memory_order_acq_rel) == 1) give_back(unit);
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
  logs.for_each([&](CollectingLog log) {
    if (!LogWord::unpack(pm::load(log.word())).copying) return;
    const KeyHash hash = log.first_hash();
    lists_.for_each_region(hash, hash, logs.depth(), [&](Region region) {
      const std::vector<UsedUnit>* used = used_in(region);
      if (used == nullptr) return;
      for (const UsedUnit& unit : *used)
        if (unit.log == log.name()) finish_copy(unit.unit, log);
    });
  });
}

void BackupLog::finish_all_copies(const LogSet& logs) {
  for (Unit unit = 0; unit < units(); ++unit) {
    const std::uint16_t name = UnitWord::unpack(pm::load(words(unit)[0])).log;
    if (name == UnitWord::kNoLog || counted(unit) == 0) continue;
    if (name > logs.log(logs.count() - 1).name())
      pool::throw_corrupt(pool_, "a backup unit", pool_.offset(words(unit)));
    if (logs.has(name)) finish_copy(unit, logs.named(name));  // of fewer logs: complete
  }
}

void BackupLog::finish_copy(Unit unit, const CollectingLog& log) {
  const auto head = LogWord::unpack(pm::load(log.word()));
  const unsigned copied = words_with(unit, log.name(), head.number);
  if (head.count == 0 || copied == 0) return;
  if (copied == shape_.unit_words())
    log.reset();
  else
    empty(unit);
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
