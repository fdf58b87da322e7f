// The ledger: blocks on their way into the index or out of it, named in PM so that a crash leaks
// none and frees none that is in use.
//
// The allocator's record needs a commit word that no other thread changes (session.h, R1). A
// word of a lock-free structure is not such a word, so allocation is separated from linking: a
// block is allocated into a word of the ledger, and freed from one, both of which belong to the
// holder of a stripe. In between, a block may be in the index, in the ledger, or both, and when the
// index is opened after a crash, what is named and not reached is freed. That is right whatever
// other threads have done in the meantime.
//
// Rules:
//   1. A block is named before it can be unlinked; the name is durable by then.
//   2. It is freed from its name a grace period after it was unlinked. Names are made and taken
//   back inside of a Guard: so no other name of a block exists when it is freed.
//
// Anchors are not blocks but places in pages of anchors, which belong to the stripes, too. They are
// claimed and named like blocks, with kAnchorTag; a place is made free, durably, before its name
// and before the blob of its low bound go: so what is not free can always be read.
//
// What a crash has left named is known as unresolved() and is not used until
// resolve_all().
//
// An opening does not look at the pages of anchors, of which there is one for some thousand pairs.
// A stripe learns of the free places in its pages when it needs one, a page at a time, and of the
// rest by learn_places(). Until all stripes know theirs, a place that is made free is given to
// none: the page may not have been looked at as yet, and then would give it once more.
//
// A StripeLease is the exclusive use of a stripe, for one operation. It does not wait as long as
// there is a free stripe of its purpose. A structure modification may begin while its thread has a
// StripeLease for an operation, but not the other way round: so no thread waits for itself.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "alloc/limbo.h"
#include "alloc/session.h"
#include "index/common/owned.h"
#include "index/nbtree/layout.h"
#include "index/nbtree/unresolved_blocks.h"
#include "pool/pool_core.h"
#include "util/spin_lock.h"
#include "util/stripe.h"

namespace perdix::detail::index::nbtree {

class Ledger {
  struct Lane;

 public:
  class StripeLease;
  using Leases = std::span<StripeLease* const>;  ///< null: none

  enum class Purpose { operation, modification };

  /// Throws corrupt.
  Ledger(pool::PoolCore& pool, Root& root);
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  /// What a crash has left named for a purpose.
  UnresolvedBlocks& unresolved(Purpose purpose) { return unresolved_[index_of(purpose)]; }
  const UnresolvedBlocks& unresolved(Purpose purpose) const {
    return unresolved_[index_of(purpose)];
  }

  /// Whether resolve_all() has something to do.
  bool has_unresolved(Purpose purpose) const {
    return !unresolved(purpose).empty() || occupied(purpose) != 0;
  }

  /// How many stripes can't be used before what they name is resolved.
  unsigned occupied(Purpose purpose) const;

  /// Frees the unresolved blocks of a purpose that have not been reached. Once, by one thread, when
  /// no other thread can call reached() any more.
  void resolve_all(Purpose purpose);

  /// Looks at all pages of anchors that no thread has looked at since the opening, but for those of
  /// stripes that other threads keep. Throws corrupt.
  void learn_places();

  /// The place of an anchor at an offset, which may be any; null if there is none.
  Anchor* place_at(pm::Offset offset) const;

  /// Waits for a grace period and frees what was unlinked before the call. Returns whether that was
  /// anything. In a Guard it does nothing. The caller holds no StripeLease but these.
  bool free_unlinked(Leases own = {});

  /// Frees pages all of whose places are free, and whose words name nothing. Returns whether there
  /// were any. Does nothing if a modification is going on. The caller holds no StripeLease but
  /// these.
  bool free_empty_pages(Leases own = {});

  /// Bytes of all pages that are known.
  std::uint64_t page_bytes() const { return page_bytes_.load(std::memory_order_relaxed); }

  /// Tells of blocks that are claimed or were unlinked, then of the pages. No other thread may use
  /// the ledger, and a drop has resolved before what a crash has left named.
  void walk(Owned& owned) const;

 private:
  struct alignas(util::kCacheLine) Lane {
    util::SpinLock lock;
    Stripe* stripe = nullptr;
    bool occupied = false;             // locked until what it names is resolved
    bool unclaiming = false;           // what it claims was not linked, and is still to be freed
    unsigned turns = 0;                // of make_room()
    std::vector<pm::Offset*> words;    // those that name nothing; has room for all
    std::size_t word_count = 0;        // with those that name something, but for unresolved blocks
    std::vector<Anchor*> anchors;      // places that are free
    pm::Offset unlearned = pm::kNull;  // the first page of anchors that was not looked at
    std::unordered_set<pm::Offset> learned;  // those before it
    alloc::Limbo unlinked;                   // words that name what was unlinked, by their offsets
  };

  static std::size_t index_of(Purpose purpose) { return static_cast<std::size_t>(purpose); }
  static Purpose purpose_of(std::size_t stripe) {
    return stripe < kOperationStripes ? Purpose::operation : Purpose::modification;
  }

  template <class AnyPage, class Visit>
  void for_each_page(pm::Offset first, Visit visit) const;
  template <class Visit>
  void for_each_word(Stripe& stripe, Visit visit) const;
  template <class AnyPage>
  AnyPage& add_page(pm::Offset& first);
  template <class AnyPage>
  void free_page(pm::Offset& link);
  bool free_word_pages(Lane& lane);
  static bool is_of(const Lane& lane, Leases own);
  void forget_places(Leases own);
  bool free_anchor_pages(Leases own);
  void free_of_another(const Lane& lane);
  void learn(std::size_t stripe);
  void learn_page(Lane& lane);
  bool learn_pages(Lane& lane);
  void add_words(Lane& lane);
  void add_anchors(Lane& lane);
  static unsigned commit_and_free(alloc::Session& session, const pm::Change* claim,
                                  std::span<pm::Offset* const> words);
  void claim_and_free(Lane& lane, alloc::Session& session, const pm::Change& claim);
  unsigned free_words(Lane& lane, std::span<pm::Offset* const> words);
  bool free_named(Lane& lane, unsigned most);
  void free_word(Lane* lane, pm::Offset& word);
  void free_claims(Lane& lane, alloc::Session& session);
  Anchor& checked_place(pm::Offset name) const;
  void free_place(Lane* lane, pm::Offset name);

  const pm::Persister& pm() const { return pool_.pm(); }

  pool::PoolCore& pool_;
  std::array<Lane, kStripes> lanes_;
  std::array<std::atomic<unsigned>, 2> abandoned_{};  // stripes, by purpose
  std::array<UnresolvedBlocks, 2> unresolved_;        // by purpose
  std::atomic<unsigned> unlearned_{0};                // stripes with pages to be looked at
  std::atomic<std::uint64_t> page_bytes_{0};
};

/// Whatever it still claims or names when it ends, the index has not linked or unlinked. If it
/// cannot be freed then, for want of memory, the next holder of the stripe does that.
class Ledger::StripeLease {
 public:
  /// Throws what freeing does, for a holder before; out_of_space if all stripes were abandoned.
  StripeLease(Ledger& ledger, Purpose purpose);
  StripeLease(const StripeLease&) = delete;
  StripeLease& operator=(const StripeLease&) = delete;
  ~StripeLease();

  /// Allocates blocks: fill(session) reserves and fills them, flushed at least, and returns their
  /// offsets, up to four. They are claimed when this returns, and all that this thread has flushed
  /// is durable. Throws out_of_space, nothing changed.
  template <class Fill>
  void claim(Fill fill) {
    alloc::Session session = ledger_.pool_.allocator().session();
    commit(session, fill(session));
  }

  const std::array<pm::Offset, 4>& claims() const { return claims_; }

  /// A place for an anchor, which this may claim, with kAnchorTag. Throws out_of_space.
  Anchor& take_anchor();

  /// The claimed blocks have been linked, durably.
  void linked();

  /// The claimed blocks were not linked, and never will be: frees them.
  void unclaim();

  /// Gives up the claimed blocks, of which it is unknown whether they will be linked: the stripe
  /// stays as it is until the index is opened again.
  void abandon();

  /// Makes sure that `names` can be given. Throws out_of_space and changes nothing then.
  void make_room(unsigned names);

  /// Names a block that this thread is about to unlink; 0: none after all. Flushed only: a fence
  /// must come before the block is unlinked. `name` counts from 0; what it named before, it does no
  /// more.
  void name(unsigned name, pm::Offset block);

  /// The named blocks have been unlinked, durably.
  void unlinked();

  /// The named blocks have not been unlinked.
  void unname();

 private:
  using Claims = std::array<pm::Offset, 4>;

  friend class Ledger;
  void commit(alloc::Session& session, const Claims& claims);
  void lock_stripe(Purpose purpose);

  Ledger& ledger_;
  Lane* lane_;
  Claims claims_{};
  Anchor* anchor_ = nullptr;  // free, or claimed
  std::array<pm::Offset*, 4> words_{};
  std::array<pm::Offset, 4> names_{};
};

}  // namespace perdix::detail::index::nbtree
