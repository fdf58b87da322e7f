// The way of a change through write buffers (Zhao et al. 2024, sections 3.1 and 3.2), for engines
// whose leaves lie in PM only. A *home* is what has a buffer: a leaf of FAST&FAIR, a segment of
// CCEH, a tall node of the skip list with all nodes up to the next one. New pairs of a home go into
// its buffer and the log, a line each near the one before, and reach the home in batches. The
// engine says of its homes what BufferHomes asks; all else is here:
//
//   find, sorted      what the buffer of a home has
//   add               a new pair
//   replace, erase    changes of a pair that the buffer has
//   merge             moves all pairs of a buffer into its home
//   ready             adopts the chain of a home, which comes before any other use of the home
//   keep_short, reclaim_space
//                     merge the buffers with the oldest chains; all, in a full pool
//   open, start_resumption, require_resumed
//                     an opening, and the return of chains from before it
//
// The record is the commit. New keys are buffered, and their changes while they are in the buffer.
// Pairs of the home change in place. So a key is in the buffer or in the home, not in both.
// Invariants while the latch of the home is free:
//   B1. The chain of a buffer says what the buffer holds, and its owner is the home's number.
//   B2. The keys of a buffer belong to its home, and none of them has a pair in the home.
//   B3. The chain has room for as many more records, besides its END, as the buffer has pairs. So
//       each can be erased, whatever else is full.
//   B4. What a chain begins with, or the number of its owner, leads to its home as long as the
//       chain is open. The engine says why.
//
// A merge moves all of a buffer, and then ends the chain:
//   in place      the home stays. A crash in between leaves pairs in both, with the same words. It
//                 is noticed when the chain is adopted, before anything else changes the home: the
//                 merge is completed, or where that takes space the pairs that it has moved leave
//                 the chain.
//   out of place  another home, or two, take the place of the home: Technique::bo, and where the
//                 home has no room. New homes have new numbers, so a crash before the END leaves a
//                 chain whose owner is no home any more. It is ended unread.
//
// buffer_exchange.h has how buffers change hands, and when one is given back.
//
// A writer holds the latch of the home. Readers hold none, and validate its version. A thread that
// waits for a latch holds none: the latch of another home is only tried.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include <perdix/error.h>
#include <perdix/types.h>

#include "epoch/guard.h"
#include "index/common/buffer_exchange.h"
#include "index/common/codec.h"
#include "index/common/home_buffers.h"
#include "index/common/latches.h"
#include "index/common/pair_count.h"
#include "index/common/pair_records.h"
#include "index/common/resumption.h"
#include "index/common/retry.h"
#include "index/common/value_codec.h"
#include "pool/checked.h"
#include "util/arena.h"

namespace perdix::detail::index {

/// A home whose latch is held. `Seen`: a home, its latch, and the version of the latch from before
/// anything was read of the home.
template <class Seen>
struct LockedHome : Seen {
  LatchSet latches;

  /// Locks a home that was seen, and holds no latch before. Returns false if it has changed, or
  /// another thread has its latch. Not inline: the compiler would store the words of `seen` one by
  /// one and read them in pairs at once, for which a processor waits 20 ns.
  [[gnu::noinline]] bool try_lock(const Seen& seen) {
    if (!seen.latch->try_upgrade(seen.version)) return false;
    latches.add_held(*seen.latch);
    static_cast<Seen&>(*this) = seen;
    return true;
  }
};

/// The homes of an engine. The latch of `seen` is held, or its version is validated
/// afterwards; that of `home` is held.
template <class H>
concept BufferHomes = requires(const H& homes, const typename H::Seen& seen,
                               LockedHome<typename H::Seen>& home,
                               WriteBuffer<typename H::Shape>& buffer, wal::Owner owner,
                               std::uint64_t word, bool full, void (*end)()) {
  typename H::KeyType;
  typename H::Pair;  ///< of words: key and value
  /// Named in the message about a damaged chain.
  { H::kLogName } -> std::convertible_to<const char*>;
  /// Homes are written anew in other places, and have numbers that are drawn: a word in PM each,
  /// number_word(seen). Their chains begin with a note, note(seen), that leads to the home. A home
  /// that stays is its chain's owner by its place.
  { H::kMoves } -> std::convertible_to<bool>;
  /// A merge in place of any pairs takes space, and may throw out_of_space: some pairs are in the
  /// home then, and have left the chain.
  { H::kMergeTakesSpace } -> std::convertible_to<bool>;

  /// At most how many pairs a buffer takes.
  { homes.capacity() } -> std::convertible_to<unsigned>;
  { homes.place(seen) } -> std::same_as<pm::Offset>;
  { homes.number(seen) } -> std::same_as<wal::Owner>;
  { homes.note(seen) } -> std::same_as<std::uint64_t>;
  /// Whether the home has a pair with this very word as key.
  { homes.has_word(seen, word) } -> std::same_as<bool>;
  /// The part of the hash of a key, by its word, that buffers keep.
  { homes.tag(word) } -> std::same_as<Hash16>;

  /// The home at a place, which has a buffer with a chain and whose latch is held. `note`: of that
  /// home, from when its chain began.
  { homes.at(pm::Offset{}, word) } -> std::same_as<typename H::Seen>;
  /// Where a chain from before the restart leads. The caller locks that, and asks whether
  /// owns(home, owner). Throws corrupt if it leads nowhere.
  { homes.route(owner, word) } -> std::same_as<typename H::Seen>;
  { homes.owns(seen, owner) } -> std::same_as<bool>;

  /// Moves all pairs of a buffer into the home, durably, and then calls end(), which ends the
  /// chain. Returns false, and has moved nothing, if the home has no room.
  { homes.merge_in_place(seen, buffer, end) } -> std::same_as<bool>;
  /// Puts others in the place of the home, durably, which have its pairs and those of the buffer,
  /// and then calls leave() for the buffer. Or merges in place, if there is no space for that but
  /// room in the home. `full`: a merge in place has found no room. May release the latches of
  /// `home`. Throws out_of_space and bad_alloc, and has moved no pair.
  homes.rewrite(home, buffer, full);
};

template <BufferHomes Homes>
class Buffered {
 public:
  using Shape = typename Homes::Shape;
  using Seen = typename Homes::Seen;
  using Locked = LockedHome<Seen>;
  using Key = View<typename Homes::KeyType>;
  using Keys = Codec<typename Homes::KeyType>;
  using Buffer = WriteBuffer<Shape>;

  /// Parts of the index, which outlive this. `latches`: of homes, by their places.
  struct Parts {
    pool::PoolCore& pool;
    const Keys& keys;
    const ValueCodec& values;
    const Latches& latches;
    PairCount& pairs;
  };

  Buffered(Homes homes, const Parts& parts, Technique technique)
      : homes_(homes),
        parts_(parts),
        records_(parts.pool, parts.keys, parts.values),
        technique_(technique),
        capacity_(homes.capacity()),
        buffers_(arena_, wal::Log::Limits{0}, parts.latches) {}

  /// Opens the log at an offset; once, before all else. `numbers`: the word in PM of the numbers of
  /// homes that move (owner_numbers.h); null if they stay.
  void open(pm::Offset log, std::uint64_t budget, std::uint64_t* numbers);

  /// Begins to bring back the chains from before the restart. If there are none the log is told
  /// now.
  void start_resumption(bool in_background);

  wal::Log& log() const { return *buffers_.log(); }
  std::uint64_t in_use() const { return buffers_.in_use(); }
  std::uint64_t dram_bytes() const { return sizeof *this + arena_.bytes_in_use(); }

  // --- Lookups: they count under the latch of the home, or if its version is validated ---

  /// A pair of a buffer. False: the buffer has none, or the home has no buffer.
  struct Found {
    Buffer* buffer = nullptr;
    unsigned number = 0;

    explicit operator bool() const { return buffer != nullptr; }
    Word value() const { return buffer->value(number); }
  };

  /// The buffer of the home at a place; null if it has none.
  Buffer* of(pm::Offset place) const { return buffers_.of(place); }

  /// `tag`: of the key, as Homes::tag() has it.
  Found find(pm::Offset place, Key key, Hash16 tag) const {
    Buffer* const buffer = of(place);
    if (buffer == nullptr) return {};
    const int i = buffer->find(
        tag, [&](unsigned at) { return parts_.keys.equal(buffer->key(at), key, tag); });
    return i < 0 ? Found{} : Found{buffer, static_cast<unsigned>(i)};
  }

  /// Pairs of a buffer in the order of their keys.
  struct Run {
    std::array<typename Homes::Pair, Shape::kPairs> pairs;
    unsigned size = 0;
  };

  /// The pairs with key >= from that the buffer of the home at a place has.
  Run sorted(pm::Offset place, Key from) const;

  /// Whether the chain of a buffer says what the buffer holds (B1).
  bool agrees_with_chain(const Buffer& buffer) const;

  // --- Changes of a locked home. If they merge they may release its latches: the caller must
  // --- search again

  /// The outcome for a new pair.
  enum class Added {
    added,
    merged,   ///< the buffer was full, and is merged
    refused,  ///< its home takes it
  };

  /// Adds a new key. Throws out_of_space and bad_alloc, and has not added it.
  Added add(Locked& home, Key key, NewValue value, Hash16 tag);

  /// Replaces the value of a pair, if that is `expected` or this is null. Returns whether it has,
  /// and nullopt if the buffer is merged instead.
  std::optional<bool> replace(Locked& home, const Found& found, NewValue value,
                              const NewValue* expected);

  /// Erases a pair, if its value is `expected` or this is null; returns whether it has. Cannot fail
  /// for want of space: the chain has room (B3).
  bool erase(const Found& found, const NewValue* expected);

  /// Moves the pairs of a buffer into its home, or into what replaces the home. Returns whether the
  /// home stays, locked; beyond the budget it loses the buffer. Throws out_of_space and bad_alloc.
  bool merge(Locked& home, Buffer& buffer);

  /// merge() for callers that go on with the home. Returns false, and nothing has changed, if the
  /// home has no room.
  bool merge_in_place(const Seen& home, Buffer& buffer);

  /// Takes the buffer of a home that is about to go, and has no pairs in it.
  void take_from(pm::Offset place) {
    if (Buffer* const buffer = of(place)) buffers_.release(buffers_.take(*buffer));
  }

  // --- For the Homes ---

  /// A number for a home that is not in the index yet; 0 if there is none left.
  wal::Owner draw_number() { return buffers_.draw_number(); }

  /// Ends the chain of a buffer whose pairs are all in homes, durably, and empties the buffer.
  void end_chain(Buffer& buffer);

  /// Ends the chain of a buffer whose pairs are all in the homes that have taken the place of its
  /// home, and takes the buffer from that.
  void leave(Buffer& buffer) {
    end_chain(buffer);
    buffers_.release(buffers_.take(buffer));
  }

  /// Removes a pair that is in its home, durably, from a buffer and its chain, which has room for
  /// that (B3).
  void forget(Buffer& buffer, unsigned i) {
    log().append_surely(buffer, wal::Type::erase_key, buffer.key(i), 0);
    buffer.remove(i);
    ++buffer.records;
  }

  // --- Upkeep. The caller holds no latch and no guard ---

  /// Keeps the log short, if the calling writer is one that looks.
  void keep_short() {
    if (buffers_.upkeep_due()) [[unlikely]]
      buffers_.keep_short(Upkeep{*this});
  }

  /// For a full pool: frees what the log no longer needs. Returns whether there was any.
  bool reclaim_space() noexcept { return buffers_.give_space_back(Upkeep{*this}); }

  // --- After a restart ---

  /// Whether a home is as it was seen, and needs no chain. If it has one from before the restart
  /// that no thread has adopted, adopts it.
  bool ready(const Seen& seen) { return !log().resuming() || adopt_if_any(seen); }

  /// Returns when all chains from before the restart are adopted or ended.
  void require_resumed();

 private:
  using Exchange = BufferExchange<HomeBuffers<Shape>>;
  using Number = typename Exchange::Number;
  using Held = typename Exchange::Held;

  /// Required by the upkeep of the log (write_buffers.h).
  struct Upkeep {
    Buffered& all;

    void clean(wal::Chain& chain, bool may_split) {
      all.clean(static_cast<Buffer&>(chain), may_split);
    }
    void resume_some(unsigned chains) { all.resume_some(chains); }
    void log_was_shortened() {}
    std::int64_t pairs() const { return all.parts_.pairs.change(); }
  };

  bool value_is(Word value, const NewValue* expected) const {
    return expected == nullptr || parts_.values.equal(value, *expected);
  }

  /// Records after which a chain is merged though the buffer has room. The count of records goes on
  /// from there only by erases of the pairs that are left, so it does not wrap.
  unsigned max_records() const { return 4 * capacity_; }
  static_assert(Buffer::kChainRecords + Shape::kPairs <=
                std::numeric_limits<typename Buffer::Count>::max());

  void begin_chain(const Seen& home, Buffer& buffer);
  bool merge_without_space(const Seen& home, Buffer& buffer);
  wal::Owner owner_of(const Seen& home);
  Buffer* give_buffer(const Seen& home);
  Seen seen(const Held& home, const Buffer& buffer) const;
  void clean(Buffer& buffer, bool may_split);
  bool adopt_if_any(const Seen& seen);
  void adopt_chain(const Seen& home, wal::Owner owner, wal::Position head);
  void resume_chain(wal::Owner owner, wal::Position head);
  void resume_some(unsigned chains);
  void resume(const std::stop_token& stop);

  const Homes homes_;
  const Parts parts_;
  const PairRecords<typename Homes::KeyType> records_;
  const Technique technique_;
  const unsigned capacity_;
  util::Arena arena_;
  Exchange buffers_;
  Resumption resumption_;  // last: its thread ends before anything else goes away
};

// --- Opening -------------------------------------------------------------------------------------

template <BufferHomes Homes>
void Buffered<Homes>::open(pm::Offset log, std::uint64_t budget, std::uint64_t* numbers) {
  retry_when_full(parts_.pool, [&] {
    if constexpr (Homes::kMoves) {
      buffers_.open(parts_.pool, log, budget, *numbers);
    } else {
      buffers_.open(parts_.pool, log, budget);
    }
  });
}

template <BufferHomes Homes>
void Buffered<Homes>::start_resumption(bool in_background) {
  if (!buffers_.any_survivor()) resume_some(1);
  if (in_background)
    resumption_.start_thread([this](const std::stop_token& stop) { resume(stop); });
}

// --- Lookups -------------------------------------------------------------------------------------

template <BufferHomes Homes>
auto Buffered<Homes>::sorted(pm::Offset place, Key from) const -> Run {
  const Keys& keys = parts_.keys;
  const Buffer* const buffer = of(place);
  Run run;
  for (unsigned i = 0; buffer != nullptr && i < buffer->size(); ++i) {
    const Word key = buffer->key(i);
    if (!(keys.view(key) < from)) run.pairs[run.size++] = {key, buffer->value(i)};
  }
  std::sort(run.pairs.begin(), run.pairs.begin() + run.size,
            [&](const auto& a, const auto& b) { return keys.view(a.key) < keys.view(b.key); });
  return run;
}

template <BufferHomes Homes>
bool Buffered<Homes>::agrees_with_chain(const Buffer& buffer) const {
  std::vector<std::pair<Word, Word>> held, logged;
  for (unsigned i = 0; i < buffer.size(); ++i) held.emplace_back(buffer.key(i), buffer.value(i));
  if (!buffer.empty_chain()) logged = read_chain(log(), buffer.owner, buffer.head).pairs;
  std::sort(held.begin(), held.end());
  std::sort(logged.begin(), logged.end());
  return held == logged;
}

// --- Changes -------------------------------------------------------------------------------------

template <BufferHomes Homes>
auto Buffered<Homes>::add(Locked& home, Key key, NewValue value, Hash16 tag) -> Added {
  if (!buffers_.any()) return Added::refused;
  Buffer* buffer = of(homes_.place(home));
  if (buffer == nullptr) buffer = give_buffer(home);
  if (buffer == nullptr) return Added::refused;
  buffer->hot.store(true, std::memory_order_relaxed);
  if (buffer->size() >= capacity_ || buffer->records >= max_records()) {
    merge(home, *buffer);
    return Added::merged;
  }
  if (!buffers_.has_promise(*buffer))  // B3; the log is full, and the home may have room
    return merge_without_space(home, *buffer) ? Added::merged : Added::refused;
  if (!buffers_.admitted()) return Added::refused;
  if (buffer->empty_chain()) begin_chain(home, *buffer);
  records_.add(log(), *buffer, key, value, tag);
  parts_.pairs.add();
  return Added::added;
}

template <BufferHomes Homes>
void Buffered<Homes>::begin_chain(const Seen& home, Buffer& buffer) {
  buffer.sure = buffers_.first_promise(capacity_);
  if constexpr (Homes::kMoves) {
    const std::uint64_t note = homes_.note(home);
    // The home may have changed since it got the buffer, so that the former note leads elsewhere.
    buffer.node.load(std::memory_order_relaxed)->note.store(note, std::memory_order_relaxed);
    log().append(buffer, kNote, note, 0);
    ++buffer.records;
  }
}

template <BufferHomes Homes>
std::optional<bool> Buffered<Homes>::replace(Locked& home, const Found& found, NewValue value,
                                             const NewValue* expected) {
  Buffer& buffer = *found.buffer;
  if (!value_is(found.value(), expected)) return false;
  if (buffer.records >= max_records() || !buffers_.admitted()) {
    merge(home, buffer);
    return std::nullopt;
  }
  records_.replace(log(), buffer, found.number, value);
  return true;
}

template <BufferHomes Homes>
bool Buffered<Homes>::erase(const Found& found, const NewValue* expected) {
  if (!value_is(found.value(), expected)) return false;
  records_.remove(log(), *found.buffer, found.number);
  parts_.pairs.remove();
  return true;
}

// --- Buffers change hands ------------------------------------------------------------------------

/// The number that owns the chains of a home; 0 if it can have none. A home that moves gets one
/// with its first buffer, before a record has it.
template <BufferHomes Homes>
wal::Owner Buffered<Homes>::owner_of(const Seen& home) {
  if constexpr (Homes::kMoves) buffers_.give_number(homes_.number_word(home));
  const wal::Owner number = homes_.number(home);
  return number <= wal::kMaxOwner ? number : 0;
}

/// Gives a locked home a free buffer, or now and then that of a home that is no longer written to.
/// Returns null if there is none, or no number or no memory for what leads to it.
template <BufferHomes Homes>
auto Buffered<Homes>::give_buffer(const Seen& home) -> Buffer* {
  if (!Homes::kMoves && owner_of(home) == 0) return nullptr;  // and takes none from others
  const Number number = buffers_.obtain(
      0, home.latch->version(),
      [&](const Held& cold, Buffer& buffer) { return merge_in_place(seen(cold, buffer), buffer); });
  if (number == 0) return nullptr;
  const wal::Owner owner = owner_of(home);
  try {
    if (owner != 0) {
      Buffer& buffer = buffers_.give_buffer(homes_.place(home), homes_.note(home), number);
      buffer.assign(owner);
      return &buffer;
    }
  } catch (const std::bad_alloc&) {
    // The home takes the change.
  }
  buffers_.release(number);
  return nullptr;
}

/// A locked home that its buffer led to. Only if the buffer has a chain it counts.
template <BufferHomes Homes>
auto Buffered<Homes>::seen(const Held& home, const Buffer& buffer) const -> Seen {
  if (buffer.empty_chain()) return {};
  const Home& led_here = *buffer.node.load(std::memory_order_relaxed);
  return homes_.at(home.place, led_here.note.load(std::memory_order_relaxed));
}

// --- Merging -------------------------------------------------------------------------------------

template <BufferHomes Homes>
bool Buffered<Homes>::merge(Locked& home, Buffer& buffer) {
  const bool in_place = technique_ < Technique::bo;
  if (!buffer.empty_chain() && !(in_place && merge_in_place(home, buffer))) {
    homes_.rewrite(home, buffer, in_place);
    return false;
  }
  buffers_.shed(buffer);
  return true;
}

template <BufferHomes Homes>
bool Buffered<Homes>::merge_in_place(const Seen& home, Buffer& buffer) {
  return buffer.empty_chain() || homes_.merge_in_place(home, buffer, [&] { end_chain(buffer); });
}

/// merge_in_place() where there may be no space.
template <BufferHomes Homes>
bool Buffered<Homes>::merge_without_space(const Seen& home, Buffer& buffer) {
  if (Homes::kMergeTakesSpace && buffer.size() > 0) return false;
  return merge_in_place(home, buffer);
}

template <BufferHomes Homes>
void Buffered<Homes>::end_chain(Buffer& buffer) {
  pm::on_step("buffers: a merge ends a chain");
  records_.end(log(), buffer);
}

// --- Upkeep --------------------------------------------------------------------------------------

/// Merges a buffer, if a home still has it. Without `may_split` only where that takes no space: it
/// takes none to end a chain without pairs.
/// Beyond the budget a merge in place comes first, whatever the technique, since the home loses the
/// buffer.
template <BufferHomes Homes>
void Buffered<Homes>::clean(Buffer& buffer, bool may_split) {
  const epoch::Guard guard;
  Held held = buffers_.hold_home_of(buffer);
  if (!held) return;
  Locked home;
  static_cast<Seen&>(home) = seen(held, buffer);
  home.latches.add_held(*held.lock.release());
  const bool is_beyond = buffers_.budget_is_exceeded();
  const bool takes_space = !Homes::kMergeTakesSpace || buffer.size() > 0;
  if ((!may_split || is_beyond) && merge_without_space(home, buffer)) {
    buffers_.shed(buffer);
  } else if (may_split || !takes_space) {
    merge(home, buffer);
  }
}

// --- After a restart -----------------------------------------------------------------------------

/// ready() while there are chains from before the restart. If a chain was adopted the home must be
/// looked for again.
template <BufferHomes Homes>
[[gnu::noinline]] bool Buffered<Homes>::adopt_if_any(const Seen& seen) {
  const wal::Owner owner = homes_.number(seen);
  if (owner == 0 || owner > wal::kMaxOwner || buffers_.was_resumed(owner)) return true;
  const wal::Position head = log().surviving(owner);
  if (head == 0) return true;
  Locked home;
  if (home.try_lock(seen) && !buffers_.was_resumed(owner)) adopt_chain(home, owner, head);
  return false;
}

/// Continues the chain of a locked home in a buffer. If some of its pairs are in the home, a crash
/// has interrupted a merge. It is completed, since the home has room for all pairs: there was room
/// for them when the merge began, and nothing has used it since. Where a merge takes space there
/// may be none now. So the pairs that it has moved leave the chain, and the others stay.
template <BufferHomes Homes>
void Buffered<Homes>::adopt_chain(const Seen& home, wal::Owner owner, wal::Position head) {
  const pm::Offset place = homes_.place(home);
  const LoggedChanges logged = read_chain(log(), owner, head);
  if (logged.pairs.size() > capacity_) pool::throw_corrupt(parts_.pool, Homes::kLogName, place);
  pm::on_step("buffers: adopt a chain");
  Buffer& buffer = buffers_.adopt_chain(place, homes_.note(home), owner, head,
                                        static_cast<std::uint16_t>(logged.pairs.size()));
  buffer.records =
      static_cast<typename Buffer::Count>(std::min(logged.records, Buffer::kChainRecords));
  for (const auto& [key, value] : logged.pairs) buffer.push(key, value, homes_.tag(key));
  bool interrupted = logged.pairs.empty();
  for (unsigned i = buffer.size(); i-- > 0;) {
    if (!homes_.has_word(home, buffer.key(i))) continue;
    interrupted = true;
    Homes::kMergeTakesSpace ? forget(buffer, i) : buffer.remove(i);
  }
  if (!interrupted) return;
  if (buffer.size() == 0) return end_chain(buffer);
  if (!Homes::kMergeTakesSpace && !merge_in_place(home, buffer))
    pool::throw_corrupt(parts_.pool, Homes::kLogName, place);
}

/// Has a chain from before the restart adopted by its home, or ends it if no home has its number.
template <BufferHomes Homes>
void Buffered<Homes>::resume_chain(wal::Owner owner, wal::Position head) {
  const std::uint64_t note = Homes::kMoves ? read_chain(log(), owner, head).note : 0;  // B4
  while (!buffers_.was_resumed(owner)) {
    const Seen seen = homes_.route(owner, note);
    Locked home;
    if (!home.try_lock(seen) || buffers_.was_resumed(owner)) continue;
    homes_.owns(home, owner) ? adopt_chain(home, owner, head) : buffers_.end_stale(owner, head);
  }
}

/// Adopts or ends up to this many chains from before the restart. When none is left, tells the log,
/// which may then free their records.
template <BufferHomes Homes>
void Buffered<Homes>::resume_some(unsigned chains) {
  buffers_.resume_some(
      chains, [&](wal::Owner owner, wal::Position head) { resume_chain(owner, head); },
      [&] {
        pm::on_step("buffers: all chains are adopted");
        log().resumed();
        resumption_.set_done();
      });
}

/// Has all chains adopted or ended, unless it is told to stop.
template <BufferHomes Homes>
void Buffered<Homes>::resume(const std::stop_token& stop) {
  while (log().resuming() && !stop.stop_requested()) resume_some(1);
  if (!log().resuming()) buffers_.tidy_up(Upkeep{*this});
}

template <BufferHomes Homes>
void Buffered<Homes>::require_resumed() {
  resumption_.wait_for_thread();
  if (log().resuming()) resume(std::stop_token());
  resumption_.wait_for_end();
}

}  // namespace perdix::detail::index
