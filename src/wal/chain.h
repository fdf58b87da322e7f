// The log's side of one write buffer, in DRAM, and the list that orders the chains of a stripe by
// age.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>

#include "wal/layout.h"
#include "wal/record.h"

namespace perdix::wal {

/// A chain: the records of one owner since its last END. Zeroed (recycled) chains have no owner.
///
/// `owner` changes only while `head` is 0, and only by whoever holds the lock that guards the
/// buffer; `head` and `first` are changed by the log. A checkpoint reads them at any time without a
/// lock: since positions never repeat, it knows from an unchanged head that the owner that it read
/// in between is the head's.
///
/// Its memory stays valid, and in place, as long as the log is open: buffers are recycled, not
/// freed.
struct Chain {
  std::atomic<Owner> owner{0};     ///< 0: not in use
  std::atomic<Position> head{0};   ///< newest record, 0: empty
  std::atomic<Position> first{0};  ///< oldest record, 0: empty

  /// Gives an empty chain to an owner, or to nobody.
  void assign(Owner to) noexcept {
    assert(head.load(std::memory_order_relaxed) == 0 && to <= kMaxOwner);
    stripe_ = static_cast<std::uint8_t>(stripe_of_owner(to));
    // release: who reads this owner sees the head of the one before gone.
    owner.store(to, std::memory_order_release);
  }

 private:
  friend class ChainList;
  friend class Log;

  Chain* older_ = nullptr;  // guarded by the lock of the stripe, as the next two
  Chain* newer_ = nullptr;
  bool listed_ = false;
  std::uint8_t stripe_ = 0;  // of the owner, for whoever may append; others calculate it
  Chain* known_ = nullptr;   // the chain that was added before this one; constant
};

/// Chains that have records, by ascending `first`. Intrusive, so that appending allocates nothing.
/// Guarded by the lock of the stripe.
class ChainList {
 public:
  Chain* oldest() const noexcept { return oldest_; }

  /// A chain that is newer than all in the list.
  void push_newest(Chain& chain) noexcept {
    assert(!chain.listed_);
    chain.older_ = newest_;
    chain.newer_ = nullptr;
    (newest_ != nullptr ? newest_->newer_ : oldest_) = &chain;
    newest_ = &chain;
    chain.listed_ = true;
  }

  /// A chain that is older than all in the list.
  void push_oldest(Chain& chain) noexcept {
    assert(!chain.listed_);
    chain.older_ = nullptr;
    chain.newer_ = oldest_;
    (oldest_ != nullptr ? oldest_->older_ : newest_) = &chain;
    oldest_ = &chain;
    chain.listed_ = true;
  }

  /// Asks for what remove() changes.
  void prefetch_neighbours(const Chain& chain) const noexcept {
    __builtin_prefetch(chain.older_, 1);
    __builtin_prefetch(chain.newer_, 1);
  }

  /// Nothing if the chain isn't listed: one that was adopted, and the log isn't resumed yet.
  void remove(Chain& chain) noexcept {
    if (!chain.listed_) return;
    (chain.older_ != nullptr ? chain.older_->newer_ : oldest_) = chain.newer_;
    (chain.newer_ != nullptr ? chain.newer_->older_ : newest_) = chain.older_;
    chain.listed_ = false;
  }

 private:
  Chain* oldest_ = nullptr;
  Chain* newest_ = nullptr;
};

}  // namespace perdix::wal
