#include "alloc/calloc.h"

#include <algorithm>
#include <cassert>
#include <limits>

#include <fmt/format.h>

#include <perdix/error.h>

#include "alloc/recovery.h"
#include "epoch/guard.h"
#include "pm/access.h"
#include "util/stripe.h"

namespace perdix::detail::alloc {
namespace {

static_assert(util::kStripes == kLanes, "a thread's stripe is its lane");

Topology bounded(Topology topology) noexcept {
  topology.nodes = std::clamp(topology.nodes, 1U, kLanes);
  return topology;
}

constexpr std::uint64_t units_of(std::uint64_t bytes, std::uint64_t unit) noexcept {
  return (bytes + unit - 1) / unit;
}

constexpr bool fits_run(std::uint64_t bytes) noexcept { return bytes <= kMaxRun * kSpanSize; }

}  // namespace

Calloc::Calloc(Space& space, const Topology& topology)
    : space_(space),
      pm_(space.pm()),
      reclaimer_(space.reclaimer()),
      view_(space.base()),
      topology_(bounded(topology)),
      heap_(space, topology_.nodes),
      marks_(pm_, view_, heap_.chunks()),
      inspector_(view_, heap_.chunks()) {
  recover(space, heap_.chunks(), marks_, inspector_);
  heap_.open();
  lanes_.reserve(kLanes);
  for (unsigned i = 0; i < kLanes; ++i) {
    lanes_.push_back(
        std::make_unique<Lane>(heap_, marks_, pm_, reclaimer_, view_.lane(i), i % topology_.nodes));
  }
}

Session Calloc::session() {
  util::Backoff backoff;
  for (unsigned lane = first_lane(), tries = 0;; ++tries) {
    if (lanes_[lane]->lock().try_lock()) return Session(*this, *lanes_[lane]);
    // The next lane of the same node; after a round any.
    lane = (lane + (tries % kLanes == kLanes - 1 ? 1 : topology_.nodes)) % kLanes;
    if (tries >= kLanes) backoff.pause();
  }
}

unsigned Calloc::first_lane() const noexcept {
  const auto stripe = static_cast<unsigned>(util::current_stripe());
  if (topology_.nodes == 1) return stripe;
  const unsigned node = topology_.current_node() % topology_.nodes;
  const unsigned lanes_of_node = (kLanes - node - 1) / topology_.nodes + 1;
  return node + stripe % lanes_of_node * topology_.nodes;
}

std::uint64_t Calloc::size_for(std::uint64_t bytes) noexcept {
  bytes = std::max<std::uint64_t>(bytes, 1);
  if (bytes <= kLargestClass) return kSizeClasses[size_class_of(bytes)].size;
  if (fits_run(bytes)) return units_of(bytes, kSpanSize) * kSpanSize;
  if (bytes > kMaxObject) return 0;
  return units_of(bytes + kLargeHeader, kChunkSize) * kChunkSize - kLargeHeader;
}

/// Tries to find space, with more and more effort, until attempt(effort) returns true. Throws what
/// growing throws.
template <class Attempt>
void Calloc::with_space(Lane& lane, Attempt attempt) {
  if (attempt(Effort::local)) return;
  if (settle_others(lane) > 0 && attempt(Effort::local)) return;
  try {
    [[maybe_unused]] const bool found = attempt(Effort::grow);
    assert(found);
  } catch (const Error& error) {
    if (error.code() != Errc::out_of_space) throw;
    if (attempt(Effort::anywhere)) return;
    collect_everything(lane);
    if (!attempt(Effort::anywhere)) throw;
  }
}

void Calloc::refill(Lane& lane, unsigned size_class, Block& block) {
  if (lane.settle(std::numeric_limits<std::size_t>::max()) > 0 && lane.take(size_class, block))
    return;
  with_space(lane, [&](Effort effort) {
    Span* span = heap_.acquire(size_class, lane.node(), effort);
    if (span != nullptr) lane.take_from(*span, size_class, block);
    return span != nullptr;
  });
}

BlockRef Calloc::take_object(Lane& lane, std::uint64_t bytes) {
  if (bytes > kMaxObject) {
    throw Error(Errc::too_large, fmt::format("an object of {} bytes was asked for; the limit is {}",
                                             bytes, kMaxObject));
  }
  lane.settle(std::numeric_limits<std::size_t>::max());
  BlockRef object;
  const bool run = fits_run(bytes);
  object.units = static_cast<std::uint16_t>(run ? units_of(bytes, kSpanSize)
                                                : units_of(bytes + kLargeHeader, kChunkSize));
  with_space(lane, [&](Effort effort) {
    object.offset = run ? heap_.take_run(object.units, lane.node(), effort)
                        : heap_.take_chunks(object.units, effort);
    return object.offset != pm::kNull;
  });
  return object;
}

void Calloc::claim(std::uint64_t spans) {
  const Session session = this->session();
  Lane& lane = *session.lane_;
  lane.settle(std::numeric_limits<std::size_t>::max());
  with_space(lane, [&](Effort effort) { return heap_.claim(spans, lane.node(), effort); });
}

/// Makes blocks available that were freed on other lanes, which may stay unused for long. Returns
/// how many blocks.
std::size_t Calloc::settle_others(Lane& lane) {
  std::size_t settled = 0;
  for (const auto& other : lanes_) {
    if (other.get() == &lane || !other->lock().try_lock()) continue;
    settled += other->settle(std::numeric_limits<std::size_t>::max());
    other->lock().unlock();
  }
  return settled;
}

/// Takes back what lanes keep for later. Busy lanes are left out, since the thread that holds one
/// may be waiting for the same blocks.
void Calloc::collect_everything(Lane& lane) {
  lane.surrender();
  for (const auto& other : lanes_) {
    if (other.get() == &lane || !other->lock().try_lock()) continue;
    other->surrender();
    other->lock().unlock();
  }
}

bool Calloc::reclaim() {
  if (epoch::Guard::held()) return false;  // and takes no lock that might be waited for
  bool any = false;
  for (const auto& lane : lanes_) {
    const std::lock_guard lock(lane->lock());
    any |= lane->seal();
  }
  return reclaimer_.advance() && any;
}

Offset Calloc::offset_in_pool(const std::uint64_t& word) const {
  const Offset offset = view_.offset_of(&word);
  assert(offset % sizeof word == 0 && offset != pm::kNull && offset < space_.max_size());
  return offset;
}

bool Calloc::validate_block(Offset block, std::uint64_t bytes) const noexcept {
  const FoundBlock found = inspector_.find(block);
  return found.size >= std::max<std::uint64_t>(bytes, 1) && inspector_.marked(found);
}

std::uint64_t Calloc::block_size(Offset block) const noexcept {
  return inspector_.find(block).size;
}

void Calloc::for_each_allocated(const std::function<void(Offset, std::uint64_t)>& fn) const {
  inspector_.for_each_allocated(fn);
}

std::uint64_t Calloc::bytes_allocated() const { return inspector_.bytes_allocated(); }

std::uint64_t Calloc::bytes_in_spans() const { return inspector_.bytes_in_spans(); }

void Calloc::check(CheckReport& report) const {
  inspector_.check(report);
  heap_.check(report);
}

}  // namespace perdix::detail::alloc
