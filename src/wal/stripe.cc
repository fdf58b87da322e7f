#include "wal/stripe.h"

#include <array>
#include <cassert>
#include <mutex>

namespace perdix::detail::wal {

Stripe::Stripe(pool::PoolCore& pool, StripeLayout& layout, std::uint64_t seed, unsigned number,
               const Marks& marks)
    : pm_(pool.pm()), seed_(seed), marks_(marks), segments_(pool, layout, number) {
  set_checkpointed(segments_.start());
}

void Stripe::open(Position tail) {
  segments_.open(tail);
  tail_.store(tail, std::memory_order_release);
  // Some of it was promised to the surviving chains; how much is not known before they are.
  const std::uint64_t room = segments_.room_behind(tail) / sizeof(Record);
  promise(room);
  unclaimed_.store(room, std::memory_order_relaxed);
}

// relaxed: those that don't hold the lock only need to know about how many.
void Stripe::promise(std::uint64_t records) noexcept {
  promised_.store(promised_.load(std::memory_order_relaxed) + records, std::memory_order_relaxed);
}

void Stripe::take_back(std::uint64_t records) noexcept {
  const std::uint64_t promised = promised_.load(std::memory_order_relaxed);
  assert(records <= promised);
  promised_.store(promised - records, std::memory_order_release);
}

/// Where the record of a position is written. Under lock_.
Record& Stripe::place(Position position) noexcept {
  if (place_in_segment(position) == 0 || segment_ == nullptr) {
    assert(position < segments_.end());
    segment_ = reinterpret_cast<std::byte*>(segments_.at(segment_begin(position)));
  }
  return *reinterpret_cast<Record*>(segment_ + written_at(position));
}

/// Writes the record that follows a chain's head, to the tail. `commit(record, check)` stores
/// the check word and makes the whole line durable. Under lock_.
template <class Commit>
Position Stripe::write(const Chain& chain, Type type, Word key, Word value, Commit commit) {
  const Position position = tail_.load(std::memory_order_relaxed);
  if (!writes_records()) return position;
  const Position head = chain.head.load(std::memory_order_relaxed);
  Record& record = place(position);
  // The line after the next, so that no append waits for it.
  __builtin_prefetch(segment_ + written_at(position + 2 * sizeof(Record)), 1);
  const std::uint64_t where = pack_where(chain.owner.load(std::memory_order_relaxed), type,
                                         link_to(head == 0 ? position : head));
  // Not flushed: the commit flushes their line.
  pm_.store(record.where, where);
  pm_.store(record.key, key);
  pm_.store(record.value, value);
  // Last: a line that is written back early holds a prefix of the stores to it, and without the
  // check they are nothing.
  commit(record, check_of(seed_, position, where, key, value));
  return position;
}

void Stripe::append(Chain& chain, Type type, Word key, Word value) {
  const Position position =
      write(chain, type, key, value, [this](Record& record, std::uint64_t check) {
        pm_.store(record.check, check);
        // One line. Fenced under the lock, so that no later record becomes durable without it.
        pm_.persist(&record, sizeof record);
      });
  joined(chain, position);
}

void Stripe::append(Chain& chain, Type type, Word key, Word value, alloc::Session& session) {
  assert(writes_records());
  const Position position =
      write(chain, type, key, value, [&](Record& record, std::uint64_t check) {
        session.commit_when(record.check, ~std::uint64_t{0}, check);
        if (pm_.commits_as_one()) {
          // The rest of the record is in the same line.
          return session.commit_as_one(std::array{pm::set_word(record.check, check)});
        }
        session.log();                     // also fences the new blocks
        pm_.publish(record.check, check);  // the commit; flushes the rest of the record's line too
      });
  joined(chain, position);
}

void Stripe::spend_sure(Chain& chain) noexcept {
  assert(chain.sure > 0);
  --chain.sure;
  take_back(1);
}

bool Stripe::promise_more(Chain& chain, std::uint16_t records) noexcept {
  if (!has_room(records)) return false;
  chain.sure = static_cast<std::uint16_t>(chain.sure + records);
  promise(records);
  return true;
}

void Stripe::end(Chain& chain) noexcept {
  ChainList::prefetch_neighbours(chain);  // for remove(), while the record becomes durable
  const Position position =
      write(chain, Type::end, 0, 0, [this](Record& record, std::uint64_t check) {
        pm_.store(record.check, check);
        // Durable before the buffer is used for others: their records might be all that is found.
        pm_.persist(&record, sizeof record);
      });
  chain.head.store(0, std::memory_order_release);
  passed(position);
}

void Stripe::remove(Chain& chain) noexcept {
  chains_.remove(chain);
  note_oldest();
  take_back(promise_of(chain));
  chain.sure = 0;
  chain.first.store(0, std::memory_order_release);
}

/// The record at the tail belongs to the chain. Under lock_.
void Stripe::joined(Chain& chain, Position position) noexcept {
  if (chain.head.load(std::memory_order_relaxed) == 0) {
    chain.first.store(position, std::memory_order_release);
    chains_.push_newest(chain, marks_.current());
    note_oldest();
    promise(promise_of(chain));
  }
  chain.head.store(position, std::memory_order_release);
  passed(position);
}

/// Comes last: a thread that sees the tail behind a record also sees its effect on the chain. Under
/// lock_.
void Stripe::passed(Position position) noexcept {
  tail_.store(position + sizeof(Record), std::memory_order_release);
}

void Stripe::note_oldest() noexcept {
  oldest_generation_.store(chains_.oldest_generation(), std::memory_order_release);
}

Chain* Stripe::oldest() const {
  const std::lock_guard guard(lock_);
  return chains_.oldest();
}

bool Stripe::claim(std::uint64_t records) noexcept {
  const std::lock_guard guard(lock_);
  const std::uint64_t unclaimed = unclaimed_.load(std::memory_order_relaxed);
  if (unclaimed < records) return false;
  unclaimed_.store(unclaimed - records, std::memory_order_relaxed);
  return true;
}

void Stripe::unclaim(std::uint64_t records) noexcept {
  const std::lock_guard guard(lock_);
  unclaimed_.store(unclaimed_.load(std::memory_order_relaxed) + records, std::memory_order_relaxed);
}

void Stripe::resumed() noexcept {
  const std::lock_guard guard(lock_);
  const std::uint64_t unclaimed = unclaimed_.exchange(0, std::memory_order_relaxed);
  take_back(unclaimed);
}

void Stripe::skip_to_next_segment() noexcept {
  const Position next = tail();
  if (place_in_segment(next) == 0) return;
  tail_.store(segment_begin(next) + kSegmentSize, std::memory_order_release);
}

void Stripe::free_ahead(std::uint64_t spare) {
  if (segments_.room_behind(tail()) < (spare + 1) * kSegmentSize)
    return;  // mostly, and without a lock
  segments_.free_ahead([&](auto set_end) {
    const std::lock_guard guard(lock_);
    const Position needed = tail() + promised_.load(std::memory_order_relaxed) * sizeof(Record);
    const Position begin = segment_begin(needed);
    const Position end = (begin == needed ? begin : begin + kSegmentSize) + spare * kSegmentSize;
    if (end < segments_.end()) set_end(end);
  });
}

void Stripe::list_oldest(Chain& chain, Position first) {
  const std::lock_guard guard(lock_);
  // Positions never repeat, so a chain that has this one is the same chain still.
  if (chain.first.load(std::memory_order_relaxed) != first) return;
  chains_.push_oldest(chain);
  note_oldest();
}

}  // namespace perdix::detail::wal
