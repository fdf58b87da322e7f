#include "wal/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "pm/access.h"
#include "wal/header.h"
#include "wal/owned_block.h"

namespace perdix::wal {
namespace {

/// Of a stripe. So many segments, so that what can't be reclaimed in spite of all cleaning (part of
/// the tail's segment) is little against it.
constexpr std::uint64_t kLeastLimit = 4 * kSegmentSize;
/// Of a stripe. The ring has room for what is allocated ahead too, and for the ENDs that cleaning
/// appends until half of the limit is free: at most half of it again.
constexpr std::uint64_t kMostLimit = 640 * kSegmentSize;
static_assert(kMostLimit / 2 * 3 + 8 * kSegmentSize < kSegmentsPerStripe * kSegmentSize);

/// Of a stripe: what a restart reads at most, if checkpoints are taken when due and the head table
/// is small. All stripes together 4 MiB, which take some ten milliseconds.
constexpr std::uint64_t kMostSuffix = 8 * kSegmentSize;

/// Else so many times the table: a record then pays for 16 bytes of it.
constexpr std::uint64_t kSuffixPerTable = 2;

std::uint64_t limit_per_stripe(std::uint64_t bytes) {
  return std::clamp(bytes / kStripes, kLeastLimit, kMostLimit);
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
      stripe_limit_(limit_per_stripe(limits.bytes)) {
  auto found = std::make_unique<Survivors>(pool, pm::load(header_.checkpoint), seed_);
  for (unsigned i = 0; i < kStripes; ++i) {
    Stripe& stripe = stripes_.emplace_back(pool, header_.stripes[i], seed_, i);
    stripe.open(found->scan(stripe.segments(), i));
    stripe.set_checkpointed(found->checkpointed(stripe.segments(), i));
  }
  require_distinct_blocks();
  survivors_.store(found.release(), std::memory_order_release);
}

Log::~Log() { delete survivors_.load(std::memory_order_relaxed); }

/// Else two records would lie in one place (W3).
void Log::require_distinct_blocks() const {
  std::vector<pm::Offset> blocks;
  for_each_block([&](pm::Offset block) { blocks.push_back(block); });
  std::sort(blocks.begin(), blocks.end());
  const auto twice = std::adjacent_find(blocks.begin(), blocks.end());
  if (twice != blocks.end()) {
    throw_corrupt(pool_, fmt::format("it uses the block at offset {:#x} twice", *twice));
  }
}

void Log::set_limit(std::uint64_t bytes) noexcept {
  stripe_limit_.store(limit_per_stripe(bytes), std::memory_order_relaxed);
}

void destroy(pool::PoolCore& pool, std::uint64_t& header_word) {
  const pm::Offset offset = pm::load(header_word);
  if (offset == pm::kNull) return;
  Header& header = checked_header(pool, offset);
  // The header last: until then the word leads to what is left.
  free_from(pool, header.checkpoint);
  for (StripeLayout& stripe : header.stripes) {
    for (pm::Offset& segment : stripe.segments) free_from(pool, segment);
  }
  free_from(pool, header_word);
}

// --- Writers -------------------------------------------------------------------------------------

void Log::end(Chain& chain) {
  if (chain.head.load(std::memory_order_relaxed) == 0) return;
  stripe(chain).end(chain);
}

void Log::add(Chain& chain) noexcept {
  Chain* before = known_.load(std::memory_order_relaxed);
  do {
    chain.known_ = before;
    // release: who finds the chain sees the one before it.
  } while (!known_.compare_exchange_weak(before, &chain, std::memory_order_release,
                                         std::memory_order_relaxed));
}

// --- Maintenance ---------------------------------------------------------------------------------

bool Log::crowded() const noexcept {
  const std::uint64_t half = stripe_limit() / 2;
  return std::any_of(stripes_.begin(), stripes_.end(),
                     [=](const Stripe& stripe) { return stripe.live() > half; });
}

Chain* Log::oldest() {
  const auto stripe =
      std::max_element(stripes_.begin(), stripes_.end(),
                       [](const Stripe& a, const Stripe& b) { return a.live() < b.live(); });
  Chain* chain = stripe->oldest();
  if (chain != nullptr) stripe->make_room_for_ends();
  return chain;
}

bool Log::checkpoint_due() const noexcept {
  if (resuming()) return false;
  const std::uint64_t table = table_bytes_.load(std::memory_order_relaxed);  // orders nothing
  const std::uint64_t most =
      std::min(stripe_limit() / 4, std::max(kMostSuffix, kSuffixPerTable * table / kStripes));
  return std::any_of(stripes_.begin(), stripes_.end(),
                     [=](const Stripe& stripe) { return stripe.suffix() >= most; });
}

Tails Log::read_tails() const noexcept {
  Tails tails;
  for (unsigned i = 0; i < kStripes; ++i) tails[i] = stripes_[i].tail();
  return tails;
}

void Log::checkpoint() {
  if (resuming()) return;
  const std::lock_guard guard(maintenance_);
  // The tails before the chains: whatever happens to a chain from here on has a record behind its
  // stripe's tail, which recovery reads, and so what is found of the chain doesn't matter.
  const Tails tails = read_tails();
  bool changed = false;
  for (unsigned i = 0; i < kStripes; ++i) changed |= tails[i] != stripes_[i].checkpointed();
  if (!changed) return;
  publish_table(tails, open_chains(tails));
  for (unsigned i = 0; i < kStripes; ++i) stripes_[i].set_checkpointed(tails[i]);
}

/// The chains whose newest record lies before the tails.
std::vector<TableEntry> Log::open_chains(const Tails& tails) const {
  std::vector<TableEntry> heads;
  for (const Chain* chain = known_.load(std::memory_order_acquire); chain != nullptr;
       chain = chain->known_) {
    const Position head = chain->head.load(std::memory_order_acquire);
    if (head == 0 || head >= tails[stripe_of_position(head)]) continue;
    const Owner owner = chain->owner.load(std::memory_order_acquire);
    // No position is the head twice, so an unchanged one was there all the time, and a chain with a
    // head doesn't change its owner. A changed one is behind the tails, or there is an END.
    if (chain->head.load(std::memory_order_relaxed) == head) heads.push_back({owner, head});
  }
  return heads;
}

void Log::publish_table(const Tails& tails, const std::vector<TableEntry>& heads) {
  alloc::Session session = pool_.allocator().session();
  if (const pm::Offset old = pm::load(header_.checkpoint); old != pm::kNull) session.free(old);
  const pm::Offset table = write_table(session, pool_, seed_, tails, heads);
  session.commit_when(header_.checkpoint, ~std::uint64_t{0}, table);
  session.log();  // also fences the table
  // The commit. Durable before anything before the tails is reclaimed: checkpointed() still says
  // so.
  pool_.pm().publish(header_.checkpoint, table);
  session.finish();
  table_bytes_.store(pool_.allocator().block_size(table), std::memory_order_relaxed);
}

void Log::reclaim() {
  if (resuming()) return;
  for (Stripe& stripe : stripes_) stripe.reclaim();
}

// --- After a restart -----------------------------------------------------------------------------

Position Log::surviving(Owner owner) const {
  const Survivors* survivors = survivors_.load(std::memory_order_acquire);
  if (survivors == nullptr || owner == 0 || owner > kMaxOwner) return 0;
  const Position head = survivors->find(owner);
  if (head != 0) link(owner, head);
  return head;
}

/// The record of a chain at a position that came from PM.
std::optional<Content> Log::link(Owner owner, Position position) const {
  const unsigned number = stripe_of_owner(owner);
  const Segments& segments = stripes_[number].segments();
  if (stripe_of_position(position) == number && position >= segments.start() &&
      position < segments.end()) {
    const std::optional<Content> record = segments.read(seed_, position);
    if (record && record->owner == owner && record->type != Type::end) return record;
  }
  // Nothing is reclaimed before resumed(), so then it can't be that.
  if (!resuming()) return std::nullopt;
  throw_corrupt(pool_, fmt::format("the chain of owner {} leads to {:#x}, where no record of it is",
                                   owner, position));
}

void Log::prepare_adoption() {
  const std::lock_guard guard(adopting_);
  if (adopted_.size() == adopted_.capacity()) adopted_.reserve(2 * adopted_.size() + 1);
}

void Log::adopt(Chain& chain, Owner owner, Position head, Position first) {
  assert(resuming() && first <= head && stripe_of_position(head) == stripe_of_owner(owner));
  chain.assign(owner);
  chain.first.store(first, std::memory_order_release);
  chain.head.store(head, std::memory_order_release);
  const std::lock_guard guard(adopting_);
  adopted_.push_back({first, &chain});
}

void Log::resumed() {
  std::vector<Adopted> adopted;
  {
    const std::lock_guard guard(adopting_);
    adopted.swap(adopted_);
  }
  // The youngest first, each put before all others of its stripe; chains that began after the
  // restart are younger still.
  std::sort(adopted.begin(), adopted.end(),
            [](const Adopted& a, const Adopted& b) { return a.first > b.first; });
  for (const auto& [first, chain] : adopted) {
    stripes_[stripe_of_position(first)].list_oldest(*chain, first);
  }
  // Last: from here on what is not listed may be reclaimed.
  const Survivors* survivors = survivors_.exchange(nullptr, std::memory_order_acq_rel);
  if (survivors == nullptr) return;
  const auto dispose = [](void* object, void*) { delete static_cast<Survivors*>(object); };
  pool_.reclaimer().retire(const_cast<Survivors*>(survivors), dispose, nullptr);  // R4
}

// --- Facts ---------------------------------------------------------------------------------------

std::uint64_t Log::bytes_used() const noexcept {
  std::uint64_t bytes = 0;
  for (const Stripe& stripe : stripes_) bytes += stripe.used();
  return bytes;
}

std::uint64_t Log::pm_bytes() const {
  std::uint64_t bytes = 0;
  for_each_block([&](pm::Offset block) { bytes += pool_.allocator().block_size(block); });
  return bytes;
}

std::uint64_t Log::appended() const noexcept {
  std::uint64_t records = 0;
  for (unsigned i = 0; i < kStripes; ++i) {
    records += (stripes_[i].tail() - first_position(i)) / sizeof(Record);
  }
  return records;
}

void Log::for_each_block(const std::function<void(pm::Offset)>& visit) const {
  visit(pool_.offset(&header_));
  if (const pm::Offset table = pm::load(header_.checkpoint); table != pm::kNull) visit(table);
  for (const Stripe& stripe : stripes_) stripe.segments().for_each_block(visit);
}

}  // namespace perdix::wal
