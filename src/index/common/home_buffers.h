// Write buffers for engines whose leaves lie in PM only (Zhao et al. 2024, section 3.1): a buffer
// is found by the place of its leaf. write_buffers.h has the parts that do not depend on places.
//
//   Home               of a buffer in use: the place of its leaf, and how the engine gets there
//   of(place)          the buffer of a leaf
//   give_buffer        connects a buffer with a leaf; take() disconnects it
//   adopt_chain        continues a chain from before a restart in a buffer
//   resume_some        has some of all such chains adopted or ended
//
// buffered.h decides when that is done.
//
// Homes are in lists, about one for each buffer and at least one for each latch of the engine
// (latches.h). All places of a list share a latch, and only its holder changes the list. A reader
// without the latch validates its version afterwards. Homes are reused and never freed, so each
// entry that a reader meets is a home.
//
// A chain begins with a note of what leads to the leaf (`kNote`), and its owner is a number that
// the leaf has in PM (owner_numbers.h). A leaf that was rewritten elsewhere has another number. So
// a chain is stale if no leaf has its number: all of its changes were applied.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include <perdix/types.h>

#include "alloc/zeroed_array.h"
#include "epoch/guard.h"
#include "index/common/latches.h"
#include "index/common/owner_numbers.h"
#include "index/common/write_buffers.h"
#include "pm/offset.h"

namespace perdix::detail::index {

/// The type of the record that begins a chain: its key leads the engine to the leaf.
inline constexpr wal::Type kNote = wal::Type::erase_slot;

/// Where a buffer belongs. In use while it has a buffer.
class Home {
 public:
  std::uint32_t buffer() const { return number_.load(std::memory_order_acquire); }
  void set_buffer(std::uint32_t number) { number_.store(number, std::memory_order_release); }

  std::atomic<pm::Offset> place{pm::kNull};
  std::atomic<std::uint64_t> note{0};
  std::atomic<Home*> next{nullptr};
  Home* next_unused = nullptr;  // apart from `next`, where readers of its last list still are

 private:
  std::atomic<std::uint32_t> number_{0};
};

/// The records of a leaf in the log.
struct LoggedChanges {
  std::vector<std::pair<Word, Word>> pairs;  ///< keys and values that are in the index
  std::uint64_t note = 0;
  unsigned records = 0;
};

/// Reads a chain. Words identify keys: while a chain is open, the word of a buffered key is not
/// used again for another one without a newer record that says so. Throws corrupt.
inline LoggedChanges read_chain(const wal::Log& log, wal::Owner owner, wal::Position head) {
  LoggedChanges found;
  std::unordered_set<Word> seen;
  log.follow(owner, head, [&](wal::Type type, Word key, Word value, wal::Position) {
    ++found.records;
    if (type == kNote) {
      found.note = key;
    } else if (seen.insert(key).second && type == wal::Type::put) {
      found.pairs.emplace_back(key, value);
    }
  });
  return found;
}

template <BufferShape Shape>
class HomeBuffers : public WriteBuffers<Shape> {
  using Base = WriteBuffers<Shape>;

 public:
  using Buffer = typename Base::Buffer;
  using Number = typename Base::Number;
  using Place = pm::Offset;  ///< as buffer_exchange.h has it
  using Lock = Latch;

  HomeBuffers(util::Arena& arena, const wal::Log::Limits& limits, const Latches& latches)
      : Base(arena, limits), latches_(latches) {}

  /// As open_log(). `numbers`: the word in PM of the numbers of leaves (owner_numbers.h).
  void open(pool::PoolCore& pool, pm::Offset offset, std::uint64_t budget, std::uint64_t& numbers) {
    numbers_.emplace(pool.pm(), numbers);
    open(pool, offset, budget);
  }

  /// Opens the log for leaves whose places are their numbers, which never move, and close their
  /// chains before they go.
  void open(pool::PoolCore& pool, pm::Offset offset, std::uint64_t budget) {
    Base::open_log(pool, offset, budget, kBytesOfHome);
    make_lists();
    this->log()->add(closing_);
  }

  /// Where the leaf of a buffer is, which may lose it at any time; kNull if it has.
  static pm::Offset place_of(const Buffer& buffer) {
    const Home* home = buffer.node.load(std::memory_order_acquire);
    return home == nullptr ? pm::kNull : home->place.load(std::memory_order_relaxed);
  }
  Latch& lock_at(pm::Offset place) const { return latches_.of(place); }

  /// The buffer of the leaf at a place; null if it has none. The caller holds its latch, or
  /// validates its version.
  Buffer* of(pm::Offset place) const {
    for (Home* home = list(place).load(std::memory_order_acquire); home != nullptr;
         home = home->next.load(std::memory_order_acquire)) {
      if (home->place.load(std::memory_order_relaxed) != place) continue;
      const Number number = home->buffer();
      return number == 0 ? nullptr : &this->at(number);
    }
    return nullptr;
  }

  /// Gives the leaf at a place, whose latch is held, a buffer that no leaf has. Throws bad_alloc,
  /// and then nothing has happened.
  Buffer& give_buffer(pm::Offset place, std::uint64_t note, Number number) {
    Home& home = new_home();
    home.place.store(place, std::memory_order_relaxed);
    home.note.store(note, std::memory_order_relaxed);
    Base::give_buffer(home, number);
    home.next.store(list(place).load(std::memory_order_relaxed), std::memory_order_relaxed);
    list(place).store(&home, std::memory_order_release);
    return this->at(number);
  }

  /// Gives a leaf that keeps its number in a word, and has none yet, its number. Leaves it without
  /// one if there is none left.
  void give_number(std::uint64_t& word) {
    if (pm::load(word) != 0) return;
    const wal::Owner drawn = numbers_->draw();
    if (drawn != 0) numbers_->pm().publish(word, drawn);  // before a record has it
  }

  /// A number for a leaf that is not in the index yet; 0 if there is none left.
  wal::Owner draw_number() { return numbers_->draw(); }

  /// Takes the buffer, whose chain is closed, from its leaf, whose latch is held.
  Number take(Buffer& buffer) {
    Home& home = *buffer.node.load(std::memory_order_relaxed);
    std::atomic<Home*>* link = &list(home.place.load(std::memory_order_relaxed));
    while (link->load(std::memory_order_relaxed) != &home)
      link = &link->load(std::memory_order_relaxed)->next;
    link->store(home.next.load(std::memory_order_relaxed), std::memory_order_release);
    const Number number = this->take_buffer(home);
    const std::lock_guard lock(homes_lock_);
    home.next_unused = unused_;
    unused_ = &home;
    return number;
  }

  // --- After a restart, until the log is resumed; thread-safe ---

  /// Whether the chain of an owner has been adopted or ended since. True once the log is resumed.
  bool was_resumed(wal::Owner owner) const {
    const std::lock_guard lock(resuming_);
    return !this->log()->resuming() || resumed_.contains(owner);
  }

  /// Gives the leaf at a place, whose latch is held, a buffer with its chain of before the restart,
  /// beyond the budget if need be; the caller adds the pairs of the chain. `sure` as
  /// prepare_adoption() has it. Throws bad_alloc and corrupt, and then nothing has happened.
  Buffer& adopt_chain(pm::Offset place, std::uint64_t note, wal::Owner owner, wal::Position head,
                      std::uint16_t sure) {
    const Number number = this->acquire_beyond_budget(0);
    std::optional<wal::Log::Adoption> adoption;
    try {
      adoption = this->log()->prepare_adoption(owner, head, sure);
      return adopt_chain_and_note(place, note, number, *adoption);
    } catch (...) {
      if (adoption) this->log()->cancel_adoption(*adoption);
      this->release(number);
      throw;
    }
  }

  /// Ends a chain all of whose changes were applied.
  void end_stale(wal::Owner owner, wal::Position head) {
    const std::lock_guard lock(resuming_);
    if (!resumed_.insert(owner).second) return;
    pm::on_step("buffers: end a stale chain");
    this->log()->adopt(closing_, owner, head);
    this->log()->end(closing_);
  }

  /// Whether there are chains of before the restart.
  bool any_survivor() const {
    bool any = false;
    this->log()->for_each_surviving([&](wal::Owner, wal::Position) { any = true; });
    return any;
  }

  /// Calls resume_chain(owner, head) for this many chains of before the restart, under a Guard, and
  /// last() when none is left. One thread at a time; the others wait.
  template <class ResumeChain, class Last>
  void resume_some(unsigned chains, ResumeChain resume_chain, Last last) {
    const std::lock_guard lock(resuming_some_);
    for (; chains > 0 && this->log()->resuming(); --chains) {
      const epoch::Guard guard;
      if (const auto chain = next_survivor()) {
        resume_chain(chain->first, chain->second);
        survivors_->pop_back();
      } else {
        last();
        forget_resumed();
      }
    }
  }

 private:
  using List = std::atomic<Home*>;

  /// The chain is noted and adopted at one moment, for others: a thread that finds all chains noted
  /// tells the log so, and what is adopted after that would not be listed, and be lost with the
  /// next reclamation.
  Buffer& adopt_chain_and_note(pm::Offset place, std::uint64_t note, Number number,
                               const wal::Log::Adoption& adoption) {
    const std::lock_guard lock(resuming_);
    const auto noted = resumed_.insert(adoption.owner).first;
    try {
      Buffer& buffer = give_buffer(place, note, number);
      this->log()->adopt(buffer, adoption);
      return buffer;
    } catch (...) {
      resumed_.erase(noted);
      throw;
    }
  }

  /// A home in its block of a deque, and its part of the lists.
  static constexpr std::uint64_t kBytesOfHome = sizeof(Home) + 2 + sizeof(List);

  List& list(pm::Offset place) const { return lists_[Latches::index_of(place, list_bits_)]; }

  /// One for each buffer or two, but for each latch at least. Throws bad_alloc.
  void make_lists() {
    const auto bits = static_cast<unsigned>(std::bit_width(this->budget() / 2));
    list_bits_ = std::max(bits, latches_.bits());
    lists_ = alloc::make_zeroed_array<List>(std::size_t{1} << list_bits_);
  }

  std::optional<std::pair<wal::Owner, wal::Position>> next_survivor() {
    if (!survivors_) {
      survivors_.emplace();
      this->log()->for_each_surviving(
          [&](wal::Owner owner, wal::Position head) { survivors_->emplace_back(owner, head); });
    }
    return survivors_->empty() ? std::nullopt : std::optional(survivors_->back());
  }

  /// Frees what only resumption needs. The log is resumed, so was_resumed() does without. An
  /// assignment of {} would keep the set's buckets.
  void forget_resumed() {
    survivors_.reset();
    const std::lock_guard lock(resuming_);
    resumed_ = std::unordered_set<wal::Owner>();
  }

  Home& new_home() {
    const std::lock_guard lock(homes_lock_);
    if (unused_ == nullptr) return homes_.emplace_back();
    Home* const home = unused_;
    unused_ = home->next_unused;
    return *home;
  }

  const Latches& latches_;
  unsigned list_bits_ = 0;
  alloc::ZeroedArray<List> lists_;
  std::mutex homes_lock_;
  std::deque<Home> homes_;
  Home* unused_ = nullptr;  // the first; each leads to the next

  std::optional<OwnerNumbers> numbers_;

  mutable std::mutex resuming_;  // guards the two that follow
  std::unordered_set<wal::Owner> resumed_;
  wal::Chain closing_;

  std::mutex resuming_some_;  // guards what follows
  std::optional<std::vector<std::pair<wal::Owner, wal::Position>>> survivors_;
};

}  // namespace perdix::detail::index
