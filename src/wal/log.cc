#include "wal/log.h"

#include <algorithm>
#include <cassert>
#include <exception>
#include <random>

#include <fmt/format.h>

#include "pm/access.h"
#include "wal/header.h"
#include "wal/owned_block.h"

namespace perdix::detail::wal {
namespace {

/// The greatest limit of a stripe. Less than its ring, which also needs room for the segments that
/// are allocated ahead.
constexpr std::uint64_t kMaxLimit = 640 * kSegmentSize;
static_assert(kMaxLimit < kRingSize);

/// A checkpoint is due when a restart would read this many times the bytes of the head table: so
/// each record that is appended causes 8 bytes of a table.
constexpr std::uint64_t kSuffixPerTable = 4;

/// All stripes, locked.
class AllLocked {
 public:
  explicit AllLocked(std::deque<Stripe>& stripes) noexcept : stripes_(stripes) {
    for (Stripe& stripe : stripes_) stripe.lock();
  }
  AllLocked(const AllLocked&) = delete;
  AllLocked& operator=(const AllLocked&) = delete;
  ~AllLocked() {
    for (Stripe& stripe : stripes_) stripe.unlock();
  }

 private:
  std::deque<Stripe>& stripes_;
};

std::uint64_t limit_per_stripe(const Log::Limits& limits) {
  return std::min(std::max(limits.bytes, limits.min_bytes) / kStripes, kMaxLimit);
}

/// Prefetches the record a few places behind `next`, assuming that all distances equal that from
/// `from` to `next`: chains that were made together do.
void prefetch_beyond(const void* from, const void* next) noexcept {
  constexpr std::uintptr_t kPlaces = 16;
  const auto end = reinterpret_cast<std::uintptr_t>(next);
  const std::uintptr_t distance = end - reinterpret_cast<std::uintptr_t>(from);  // wraps
  __builtin_prefetch(reinterpret_cast<const void*>(end + kPlaces * distance));
}

}  // namespace

std::uint64_t draw_seed() {
  std::random_device device;
  return pm::on_draw(std::uint64_t{device()} << 32 | device());
}

// --- Life ----------------------------------------------------------------------------------------

pm::Offset Log::create(alloc::Session& session, pool::PoolCore& pool, std::uint64_t seed) {
  const pm::Offset offset = session.reserve(sizeof(Header));
  write_header(pool, *pool.at<Header>(offset), seed);
  return offset;
}

Log::Log(pool::PoolCore& pool, pm::Offset header, Limits limits)
    : pool_(pool),
      header_(checked_header(pool, header)),
      seed_(pm::load(header_.seed)),
      stripe_limit_(limit_per_stripe(limits)),
      max_suffix_(limits.suffix),
      bytes_per_look_(limits.records_per_look * sizeof(Record)),
      generations_(stripes_, limits.generation * sizeof(Record)) {
  assert(kSegmentSize % bytes_per_look_ == 0);
  for (unsigned i = 0; i < kStripes; ++i)
    stripes_.emplace_back(pool, header_.stripes[i], seed_, i, generations_.marks());
  auto found = std::make_unique<Survivors>(pool, header_, rings());
  for (unsigned i = 0; i < kStripes; ++i) {
    stripes_[i].open(found->scan(i));
    stripes_[i].set_checkpointed(found->checkpointed(i));
  }
  generations_.mark_the_past();
  require_distinct_blocks();
  survivors_.store(found.release(), std::memory_order_release);
}

Log::~Log() { delete survivors_.load(std::memory_order_relaxed); }

/// Throws corrupt if two parts of the log use the same block: then two records would lie in one
/// place (W3).
void Log::require_distinct_blocks() const {
  std::vector<pm::Offset> blocks;
  for_each_block([&](pm::Offset block) { blocks.push_back(block); });
  std::sort(blocks.begin(), blocks.end());
  const auto twice = std::adjacent_find(blocks.begin(), blocks.end());
  if (twice != blocks.end()) {
    throw_corrupt(pool_, fmt::format("it uses the block at offset {:#x} twice", *twice));
  }
}

void for_each_owner(pool::PoolCore& pool, std::uint64_t& header_word,
                    const std::function<void(std::uint64_t& word, std::uint64_t bytes)>& visit) {
  const pm::Offset offset = pm::load(header_word);
  Header& header = checked_header(pool, offset);
  const pm::Offset table = pm::load(header.checkpoint);
  if (table != pm::kNull && small_table_at(header, offset, table) == nullptr)
    visit(header.checkpoint, sizeof(TableHeader));
  for (StripeLayout& stripe : header.stripes) {
    for (pm::Offset& segment : stripe.segments) {
      if (pm::load(segment) != pm::kNull) visit(segment, kSegmentSize);
    }
  }
  visit(header_word, sizeof(Header));
}

// --- Writers -------------------------------------------------------------------------------------

/// find_tail() if the thread's own tail is locked or has too little room: takes the next stripe
/// with room that is not locked, or if all are, waits for one. The thread goes on appending there.
[[gnu::noinline]] Stripe* Log::find_another_tail(std::uint64_t records) noexcept {
  const unsigned own = cursors_.stripe();
  const auto first_with_room = [&](auto lock) -> Stripe* {
    for (unsigned i = 0; i < kStripes; ++i) {
      Stripe& stripe = stripes_[(own + i) % kStripes];
      if (!lock(stripe)) continue;
      if (stripe.has_room(records)) {
        cursors_.go_to((own + i) % kStripes);
        return &stripe;
      }
      stripe.unlock();
    }
    return nullptr;
  };
  Stripe* const found = first_with_room([](Stripe& one) { return one.try_lock(); });
  return found != nullptr ? found : first_with_room([](Stripe& one) { return one.lock(), true; });
}

Stripe& Log::lock_tail_surely(Chain& chain) {
  assert(chain.head.load(std::memory_order_relaxed) != 0);
  if (Stripe* stripe = find_tail(1)) return *stripe;
  if (chain.sure == 0) throw_full();
  Stripe& home = home_of(chain);
  home.lock();
  home.spend_sure(chain);
  return home;
}

bool Log::promise(Chain& chain, std::uint16_t records) {
  Stripe& home = home_of(chain);
  try {
    if (!home.admit(stripe_limit_)) return false;
  } catch (const Error& error) {
    if (error.code() != Errc::out_of_space) throw;
    return false;
  }
  const std::lock_guard guard(home);
  return home.promise_more(chain, records);
}

void Log::throw_full() const {
  throw Error(Errc::out_of_space,
              fmt::format("{}: the log of an index is full", pool_.path().string()));
}

/// Called after an append that ends a span of bytes_per_look_ bytes of its stripe: makes a look
/// due. `segment_ended`: it also ends a segment, so the thread goes on at the next stripe.
[[gnu::noinline]] void Log::go_on(bool segment_ended) noexcept {
  cursors_.make_look_due();
  if (segment_ended) cursors_.go_to((cursors_.stripe() + 1) % kStripes);
  generations_.begin_if_due(kStripes * stripe_limit_, resuming());
}

[[gnu::noinline]] bool Log::admit_anywhere() {
  const unsigned own = cursors_.stripe();
  std::exception_ptr full;
  for (unsigned i = 0; i < kStripes; ++i) {
    const unsigned number = (own + i) % kStripes;
    try {
      if (!stripes_[number].admit(stripe_limit_)) continue;
      cursors_.go_to(number);
      return true;
    } catch (const Error& error) {
      if (error.code() != Errc::out_of_space) throw;
      full = std::current_exception();
    }
  }
  if (full) std::rethrow_exception(full);
  return false;
}

void Log::end(Chain& chain) noexcept {
  if (chain.head.load(std::memory_order_relaxed) == 0) return;
  Stripe& home = home_of(chain);
  Stripe* const found = find_tail(1);
  if (found == nullptr) home.lock();  // the home stripe keeps room for the END (W6)
  {
    LockedTail tail(*this, found != nullptr ? *found : home);
    // Taken before the END if it is free: a lock that is taken behind it waits until it is durable.
    // Never waited for, since stripes are locked by number.
    const std::unique_lock at_home =
        tail.is(home) ? std::unique_lock<Stripe>() : std::unique_lock(home, std::try_to_lock);
    tail->end(chain);
    // Only now: until the END is durable, recovery needs the chain's records.
    if (at_home || tail.is(home)) return home.remove(chain);
  }
  const std::lock_guard at_home(home);
  home.remove(chain);
}

void Log::add(Chain& chain) noexcept {
  Chain* before = known_.load(std::memory_order_relaxed);
  do {
    chain.known_ = before;
    // release: a thread that finds the chain sees the one before it.
  } while (!known_.compare_exchange_weak(before, &chain, std::memory_order_release,
                                         std::memory_order_relaxed));
}

// --- Maintenance ---------------------------------------------------------------------------------

bool Log::crowded() const noexcept {
  const Generation oldest = generations_.oldest();
  if (oldest == kNoGeneration) return false;
  std::uint64_t promised = 0;
  for (unsigned i = 0; i < kStripes; ++i) {
    const Position mark =
        generations_.marks().at(oldest, i);  // before the tail, so that it is not behind it
    // Of any stripe: the end of the oldest chains moves the marks of all.
    if (stripes_[i].tail() - mark > stripe_limit_ / 2) return true;
    promised += stripes_[i].promised() * sizeof(Record);
  }
  // Of all stripes together: the oldest chains may have begun in any of them, so their end need not
  // help a certain one. Both together are less than the limit, so some stripe admits once the rest
  // is reclaimed. They are not added: otherwise promises would force the end of chains that few
  // records follow.
  return promised > kStripes * stripe_limit_ / 4;
}

Chain* Log::oldest() const {
  const auto stripe =
      std::min_element(stripes_.begin(), stripes_.end(), [](const Stripe& a, const Stripe& b) {
        return a.oldest_generation() < b.oldest_generation();
      });
  return stripe->oldest();
}

bool Log::suffix_is_long() const noexcept {
  const std::uint64_t table = table_bytes_.load(std::memory_order_relaxed);  // orders nothing
  const std::uint64_t most =
      std::min(kStripes * stripe_limit_ / 4, std::max(max_suffix_, kSuffixPerTable * table));
  return suffix_bytes() >= most;
}

/// Reads all tails at one moment. If a record of a chain lies behind these tails, so do all later
/// records of the chain (W4).
auto Log::cut() noexcept -> Cut {
  const AllLocked locked(stripes_);
  Cut cut{generations_.tails(), 0};
  for (const Stripe& stripe : stripes_) cut.open += stripe.open_chains();
  return cut;
}

void Log::checkpoint() {
  if (resuming()) return;
  const std::lock_guard guard(maintenance_);
  // The tails before the chains: whatever happens to a chain from here on has a record behind
  // them, which recovery reads, and so what is found of the chain doesn't matter.
  const Cut now = cut();
  bool changed = false;
  for (unsigned i = 0; i < kStripes; ++i) changed |= now.tails[i] != stripes_[i].checkpointed();
  if (!changed) return;
  publish_table(now);
  for (unsigned i = 0; i < kStripes; ++i) stripes_[i].set_checkpointed(now.tails[i]);
}

void Log::publish_table(const Cut& cut) {
  alloc::Session session = pool_.allocator().session();
  free_table(session);
  TableWriter writer(session, pool_, header_, cut.open);
  add_open_chains(cut.tails, writer);
  const pm::Offset table = writer.finish(seed_, cut.tails);
  session.commit_when(header_.checkpoint, ~std::uint64_t{0}, table);
  session.log();  // also fences the table
  // The commit. It is durable before anything before the new tails is reclaimed: until the caller
  // calls set_checkpointed(), reclaim() goes by the tails of the table before.
  pool_.pm().publish(header_.checkpoint, table);
  session.finish();
  table_bytes_.store(writer.bytes(), std::memory_order_relaxed);
}

/// Adds the block of the head table, if it has one, to those that the session frees.
void Log::free_table(alloc::Session& session) const {
  const pm::Offset table = pm::load(header_.checkpoint);
  if (table == pm::kNull || small_table_at(header_, pool_.offset(&header_), table)) return;
  session.free(table);
}

/// If no chain is open, lets each stripe go on in its next segment and takes a checkpoint. Returns
/// false, and has changed nothing, if a chain is open. The caller holds maintenance_.
///
/// All stripes are locked until the checkpoint is durable: a record in the next segment is behind a
/// gap, which a restart passes only because the table's tails lie behind it.
bool Log::skip_segments() {
  alloc::Session session = pool_.allocator().session();
  free_table(session);
  {
    const AllLocked locked(stripes_);
    for (const Stripe& stripe : stripes_) {
      if (stripe.promised() != 0) return false;
    }
    for (Stripe& stripe : stripes_) stripe.skip_to_next_segment();
    const Tails tails = generations_.tails();
    const pm::Offset table = TableWriter(session, pool_, header_, 0).finish(seed_, tails);
    session.commit_when(header_.checkpoint, ~std::uint64_t{0}, table);
    session.log();
    pool_.pm().publish(header_.checkpoint, table);  // the commit
    for (unsigned i = 0; i < kStripes; ++i) stripes_[i].set_checkpointed(tails[i]);
  }
  session.finish();
  return true;
}

/// Adds the chains to the table whose newest record lies before the tails. They were open when the
/// tails were read.
void Log::add_open_chains(const Tails& tails, TableWriter& table) const {
  for (const Chain* chain = known_.load(std::memory_order_acquire); chain != nullptr;
       chain = chain->known_) {
    if (chain->known_ != nullptr) prefetch_beyond(&chain->head, &chain->known_->head);
    const Position head = chain->head.load(std::memory_order_acquire);
    if (head == 0 || head >= tails[stripe_of_position(head)]) continue;
    const Owner owner = chain->owner.load(std::memory_order_acquire);
    // No position is a chain's head twice. So if the head is unchanged, it was the head while the
    // owner was read, and a chain with a head doesn't change its owner. If it has changed, the new
    // head is behind the tails, or an END is.
    if (chain->head.load(std::memory_order_relaxed) == head) table.add(owner, head);
  }
}

void Log::reclaim() {
  if (resuming()) return;
  const Tails bounds = generations_.needed();
  for (unsigned i = 0; i < kStripes; ++i) {
    stripes_[i].reclaim(bounds[i]);
    // An opening takes all room behind the tail for promised, so its first record may need another
    // segment. Without this each opening would add one. One ahead stays, for the headroom.
    stripes_[i].free_ahead(1);
  }
}

void Log::shrink() {
  const auto has_segments = [](const Stripe& one) { return one.segments().count() != 0; };
  if (resuming() || std::none_of(stripes_.begin(), stripes_.end(), has_segments)) return;
  try {
    const bool skipped = [this] {
      const std::lock_guard guard(maintenance_);
      return skip_segments();
    }();
    if (!skipped) checkpoint();
  } catch (const Error& error) {
    if (error.code() != Errc::out_of_space) throw;
  }
  reclaim();
  for (Stripe& stripe : stripes_) stripe.free_ahead();
}

// --- After a restart -----------------------------------------------------------------------------

Position Log::surviving(Owner owner) const {
  const Survivors* survivors = survivors_.load(std::memory_order_acquire);
  if (survivors == nullptr || owner == 0 || owner > kMaxOwner) return 0;
  const Position head = survivors->find(owner);
  if (head != 0) at(owner, head);
  return head;
}

Survivors::Rings Log::rings() const noexcept {
  Survivors::Rings rings;
  for (unsigned i = 0; i < kStripes; ++i) rings[i] = &stripes_[i].segments();
  return rings;
}

/// Returns the record of a chain at a position that was read from PM. Throws corrupt if there is
/// none; after resumed() returns nullopt then, since the record may have been reclaimed.
std::optional<Content> Log::at(Owner owner, Position position) const {
  const unsigned number = stripe_of_position(position);
  if (number >= kStripes) {
    throw_corrupt(pool_, fmt::format("the chain of owner {} leads to {:#x}", owner, position));
  }
  const Segments& segments = stripes_[number].segments();
  if (position >= segments.start() && position < segments.end()) {
    const std::optional<Content> record = segments.read(seed_, position);
    if (record && record->owner == owner && record->type != Type::end) return record;
  }
  // Before resumed() nothing is reclaimed, so a record that is missing means damage.
  if (!resuming()) return std::nullopt;
  throw_corrupt(pool_, fmt::format("the chain of owner {} leads to {:#x}, where no record of it is",
                                   owner, position));
}

void Log::prefetch(std::span<Position> heads) const noexcept {
  constexpr unsigned kMaxRecords = 64;  // of each: a damaged chain might have no end
  const auto segments_of = [&](Position position) -> const Segments& {
    return stripes_[stripe_of_position(position) % kStripes].segments();
  };
  bool more = true;
  for (unsigned i = 0; more && i < kMaxRecords; ++i) {
    more = false;
    for (Position& position : heads) {
      if (position == 0) continue;
      const std::optional<Content> record = segments_of(position).read(seed_, position);
      position = record && !record->first ? previous(*record) : 0;
      if (position == 0) continue;
      __builtin_prefetch(segments_of(position).at(position));
      more = true;
    }
  }
}

auto Log::prepare_adoption(Owner owner, Position head, std::uint16_t sure) -> Adoption {
  assert(resuming() && head != 0);
  Position first = 0;
  Generation generation = kNoGeneration;
  follow(owner, head, [&](Type, Word, Word, Position position) {
    first = position;
    generation = std::min(generation, generations_.of_surviving(position));
  });
  adoptions_.prepare();
  if (!stripes_[stripe_of_position(first)].claim(1u + sure)) {
    adoptions_.cancel();
    throw_corrupt(pool_, fmt::format("there is no room to end the chain of owner {}", owner));
  }
  return {owner, head, first, generation, sure};
}

void Log::cancel_adoption(const Adoption& adoption) noexcept {
  adoptions_.cancel();
  stripes_[stripe_of_position(adoption.first)].unclaim(1u + adoption.sure);
}

void Log::adopt(Chain& chain, const Adoption& adoption) noexcept {
  chain.assign(adoption.owner);
  chain.generation_ = adoption.generation;
  chain.sure = adoption.sure;
  chain.first.store(adoption.first, std::memory_order_release);
  chain.head.store(adoption.head, std::memory_order_release);
  adoptions_.add({adoption.generation, adoption.first, &chain});
}

void Log::resumed() {
  // Each is put before all others of its stripe; chains that began after the restart are younger
  // still.
  for (const AdoptedChain& one : adoptions_.take())
    stripes_[stripe_of_position(one.first)].list_oldest(*one.chain, one.first);
  for (Stripe& stripe : stripes_) stripe.resumed();
  // Last: from here on records that are not listed may be reclaimed.
  const Survivors* survivors = survivors_.exchange(nullptr, std::memory_order_acq_rel);
  if (survivors == nullptr) return;
  pool_.reclaimer().retire(const_cast<Survivors*>(survivors));  // R4
}

// --- Facts ---------------------------------------------------------------------------------------

std::uint64_t Log::bytes_used() const noexcept {
  std::uint64_t bytes = 0;
  for (const Stripe& stripe : stripes_) bytes += stripe.used();
  return bytes;
}

std::uint64_t Log::segments() const noexcept {
  std::uint64_t count = 0;
  for (const Stripe& stripe : stripes_) count += stripe.segments().count();
  return count;
}

std::uint64_t Log::suffix_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const Stripe& stripe : stripes_) bytes += stripe.suffix();
  return bytes;
}

std::uint64_t Log::pm_bytes() const {
  std::uint64_t bytes = 0;
  for_each_block([&](pm::Offset block) { bytes += pool_.allocator().block_size(block); });
  return bytes;
}

void Log::for_each_block(const std::function<void(pm::Offset)>& visit) const {
  pm::Offset header = pool_.offset(&header_);
  for_each_owner(pool_, header, [&](std::uint64_t& word, std::uint64_t) { visit(pm::load(word)); });
}

}  // namespace perdix::detail::wal
