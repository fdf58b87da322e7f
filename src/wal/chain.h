// The log's side of one write buffer, in DRAM, and the list that orders the chains that began in a
// stripe by age.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>

#include "wal/layout.h"
#include "wal/marks.h"

namespace perdix::detail::wal {

/// A chain: the records of one owner since its last END. Zeroed (recycled) chains have no owner.
///
/// `owner` changes only while `head` is 0, and only the holder of the lock that guards the buffer
/// changes it. The log changes `head` and `first`. A checkpoint reads them at any time without a
/// lock: since positions never repeat, an unchanged head shows that the owner read in between is
/// the head's.
///
/// The fields that each append and a checkpoint need come last, so a buffer has them in one line
/// with the fields that a change needs.
///
/// Its memory stays valid, and in place, as long as the log is open: buffers are recycled, not
/// freed.
struct Chain {
 private:
  friend class ChainList;
  friend class Log;

  // Guarded by the lock of the stripe that the chain began in; atomic for threads that only
  // prefetch what they lead to.
  std::atomic<Chain*> older_{nullptr};
  std::atomic<Chain*> newer_{nullptr};
  Generation generation_ = 0;
  bool listed_ = false;

 public:
  /// Records, besides the END, for which the stripe that the chain began in keeps room:
  /// Log::append_surely() takes it. Set by the holder of the buffer's lock while the chain is
  /// empty; later counted down by the log, and up by Log::promise().
  std::uint16_t sure = 0;

  std::atomic<Position> first{0};  ///< oldest record, 0: empty

  /// Gives an empty chain to an owner, or to none.
  void assign(Owner to) noexcept {
    assert(head.load(std::memory_order_relaxed) == 0 && to <= kMaxOwner);
    // release: a thread that reads this owner sees that the head of the previous one is gone.
    owner.store(to, std::memory_order_release);
  }

 private:
  Chain* known_ = nullptr;  // the chain that was added before this one; constant

 public:
  std::atomic<Owner> owner{0};    ///< 0: not in use
  std::atomic<Position> head{0};  ///< newest record, 0: empty
};

/// Chains that have records, by ascending generation. Intrusive, so that appending allocates
/// nothing. Guarded by the lock of the stripe.
class ChainList {
 public:
  Chain* oldest() const noexcept { return get(oldest_); }

  /// The generation of the oldest chain; kNoGeneration without one.
  Generation oldest_generation() const noexcept {
    const Chain* chain = oldest();
    return chain == nullptr ? kNoGeneration : chain->generation_;
  }

  std::uint64_t size() const noexcept { return size_; }

  /// A chain that began now, in this generation.
  void push_newest(Chain& chain, Generation generation) noexcept {
    assert(!chain.listed_);
    chain.generation_ = generation;
    Chain* const before = get(newest_);
    set(chain.older_, before);
    set(chain.newer_, nullptr);
    set(before != nullptr ? before->newer_ : oldest_, &chain);
    set(newest_, &chain);
    chain.listed_ = true;
    ++size_;
  }

  /// A chain whose generation, which it has, is none later than those in the list.
  void push_oldest(Chain& chain) noexcept {
    assert(!chain.listed_ && chain.generation_ <= oldest_generation());
    Chain* const after = get(oldest_);
    set(chain.older_, nullptr);
    set(chain.newer_, after);
    set(after != nullptr ? after->older_ : newest_, &chain);
    set(oldest_, &chain);
    chain.listed_ = true;
    ++size_;
  }

  /// Asks for what remove() changes. Needs no lock.
  static void prefetch_neighbours(const Chain& chain) noexcept {
    __builtin_prefetch(get(chain.older_), 1);
    __builtin_prefetch(get(chain.newer_), 1);
  }

  /// Nothing if the chain isn't listed: one that was adopted, and the log isn't resumed yet.
  void remove(Chain& chain) noexcept {
    if (!chain.listed_) return;
    Chain *const older = get(chain.older_), *const newer = get(chain.newer_);
    set(older != nullptr ? older->newer_ : oldest_, newer);
    set(newer != nullptr ? newer->older_ : newest_, older);
    chain.listed_ = false;
    --size_;
  }

 private:
  using Place = std::atomic<Chain*>;

  // relaxed: the stripe's lock orders them.
  static Chain* get(const Place& place) noexcept { return place.load(std::memory_order_relaxed); }
  static void set(Place& place, Chain* chain) noexcept {
    place.store(chain, std::memory_order_relaxed);
  }

  Place oldest_{nullptr};
  Place newest_{nullptr};
  std::uint64_t size_ = 0;
};

}  // namespace perdix::detail::wal
