// Write buffers for engines whose leaves lie in PM only (Zhao et al. 2024, section 3.1): a buffer
// is found by the place of its leaf. write_buffers.h has what is no matter of places.
//
//   Home        of a buffer in use: the place of its leaf, and what leads the engine there
//   of(place)   the buffer of a leaf
//   give, take  between a buffer and a leaf
//
// Homes are in lists, one for each latch of the engine (latches.h). A list is changed by the holder
// of its latch. A reader without it validates the version of the latch afterwards; homes are used
// again and never freed, so what it meets on its way is a home.
//
// A chain begins with a note of what leads to the leaf (`kNote`), and its owner is a number that
// the leaf has in PM (owner_numbers.h). A leaf that was written anew elsewhere has another number.
// So a chain is stale if no leaf has its number: all of it was carried out.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "index/common/latches.h"
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

 private:
  std::atomic<std::uint32_t> number_{0};
};

/// What the log says of a leaf.
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

  HomeBuffers(util::Arena& arena, const wal::Log::Limits& limits, const Latches& latches)
      : Base(arena, limits), latches_(latches), lists_(latches.count()) {}

  /// As open_log().
  void open(pool::PoolCore& pool, pm::Offset offset, std::uint64_t budget) {
    Base::open_log(pool, offset, budget);
    this->log()->add(closing_);
  }

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
  Buffer& give(pm::Offset place, std::uint64_t note, Number number) {
    Home& home = new_home();
    home.place.store(place, std::memory_order_relaxed);
    home.note.store(note, std::memory_order_relaxed);
    Base::give(home, number);
    home.next.store(list(place).load(std::memory_order_relaxed), std::memory_order_relaxed);
    list(place).store(&home, std::memory_order_release);
    return this->at(number);
  }

  /// Takes the buffer, whose chain is closed, from its leaf, whose latch is held.
  void take(Buffer& buffer) {
    Home& home = *buffer.node.load(std::memory_order_relaxed);
    std::atomic<Home*>* link = &list(home.place.load(std::memory_order_relaxed));
    while (link->load(std::memory_order_relaxed) != &home)
      link = &link->load(std::memory_order_relaxed)->next;
    link->store(home.next.load(std::memory_order_relaxed), std::memory_order_release);
    this->release(this->take_from(home));
    const std::lock_guard lock(homes_lock_);
    unused_.push_back(&home);  // new_home() has reserved a place
  }

  // --- After a restart, until the log is resumed; thread-safe ---

  /// Whether the chain of an owner has been adopted or ended since.
  bool was_resumed(wal::Owner owner) const {
    const std::lock_guard lock(resuming_);
    return resumed_.contains(owner);
  }
  /// Throws bad_alloc.
  void note_resumed(wal::Owner owner) {
    const std::lock_guard lock(resuming_);
    resumed_.insert(owner);
  }
  void forget_resumed(wal::Owner owner) {
    const std::lock_guard lock(resuming_);
    resumed_.erase(owner);
  }

  /// Ends a chain of which all was carried out.
  void end_stale(wal::Owner owner, wal::Position head) {
    const std::lock_guard lock(resuming_);
    if (!resumed_.insert(owner).second) return;
    pm::on_step("buffers: end a stale chain");
    this->log()->adopt(closing_, owner, head);
    this->log()->end(closing_);
  }

  /// A chain of before the restart, until drop_survivor() is called. Of one thread at a time, in a
  /// Guard.
  std::optional<std::pair<wal::Owner, wal::Position>> next_survivor() {
    if (!survivors_) {
      survivors_.emplace();
      this->log()->for_each_surviving(
          [&](wal::Owner owner, wal::Position head) { survivors_->emplace_back(owner, head); });
    }
    return survivors_->empty() ? std::nullopt : std::optional(survivors_->back());
  }
  void drop_survivor() { survivors_->pop_back(); }

 private:
  using List = std::atomic<Home*>;

  List& list(pm::Offset place) const { return lists_[latches_.index_of(place)]; }

  Home& new_home() {
    const std::lock_guard lock(homes_lock_);
    if (unused_.empty()) {
      unused_.reserve(homes_.size() + 1);
      return homes_.emplace_back();
    }
    Home* const home = unused_.back();
    unused_.pop_back();
    return *home;
  }

  const Latches& latches_;
  mutable std::vector<List> lists_;
  std::mutex homes_lock_;
  std::deque<Home> homes_;
  std::vector<Home*> unused_;

  mutable std::mutex resuming_;  // guards the two that follow
  std::unordered_set<wal::Owner> resumed_;
  wal::Chain closing_;
  std::optional<std::vector<std::pair<wal::Owner, wal::Position>>> survivors_;
};

}  // namespace perdix::detail::index
