// The ledger: blocks on their way into the index or out of it, named in PM so that a crash leaks
// none and frees none that is in use.
//
// The allocator's record needs a commit word that nobody else changes meanwhile (session.h, R1). A
// word of a lock-free structure is not such a word, so allocation is separated from linking: a
// block is allocated into a word of the ledger, and freed from one, both of which belong to the
// holder of a stripe. In between, a block may be in the index, in the ledger, or both, and when the
// index is opened after a crash, what is named and not reached is freed. That is right whatever
// other threads have done in the meantime.
//
// Rules:
//   1. A block is named before it can be unlinked; the name is durable by then.
//   2. It is freed from its name a grace period after it was unlinked. Names are made and taken
//   back inside of a Guard: so nobody else names a block that is freed.
//
// A Hold is the exclusive use of a stripe, for one operation. It waits for nobody as long as there
// is a free stripe of its purpose. A structure modification may begin while its thread has a Hold
// for an operation, but not the other way round: so nobody waits for himself.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <unordered_set>
#include <vector>

#include "alloc/limbo.h"
#include "alloc/session.h"
#include "index/nbtree/layout.h"
#include "pool/pool_core.h"
#include "util/spin_lock.h"
#include "util/stripe.h"

namespace perdix::index::nbtree {

using Reached = std::unordered_set<pm::Offset>;
using BlockVisitor = std::function<void(pm::Offset)>;

class Ledger {
  struct Lane;

 public:
  class Hold;

  enum class Purpose { operation, modification };

  Ledger(pool::PoolCore& pool, Root& root);
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  /// What a crash has left named. Nothing else was called before.
  Reached named() const;

  /// Frees what is named and not reached, and forgets the names.
  void settle(const Reached& reached);

  /// Waits for a grace period and frees what was unlinked before the call. The caller holds neither
  /// a Guard nor a Hold.
  void free_unlinked();

  /// Shows the pages, and blocks that are claimed or were unlinked. Nobody else may use the ledger.
  void for_each_block(const BlockVisitor& visit) const;

  /// Frees the pages of an index that is being dropped; nothing is named any more.
  void destroy();

 private:
  struct alignas(util::kCacheLine) Lane {
    util::SpinLock lock;
    Stripe* stripe = nullptr;
    std::vector<pm::Offset*> words;  // those that name nothing
    alloc::Limbo unlinked;           // words that name what was unlinked, by their offsets
  };

  template <class Visit>
  static void for_each_word(const pool::PoolCore& pool, Stripe& stripe, Visit visit);
  void free_named(Lane& lane, unsigned most);
  void free_word(pm::Offset& word);
  void add_page(Lane& lane);

  const pm::Persister& pm() const { return pool_.pm(); }

  pool::PoolCore& pool_;
  Root& root_;
  std::array<Lane, kStripes> lanes_;
};

/// Whatever it still claims or names when it ends, the index has not linked or unlinked.
class Ledger::Hold {
 public:
  Hold(Ledger& ledger, Purpose purpose);
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;
  ~Hold();

  /// Allocates blocks: fill(session) reserves and fills them, flushed at least, and returns their
  /// offsets, up to four. They are claimed when this returns, and all that this thread has flushed
  /// is durable. Throws out_of_space, nothing changed.
  template <class Fill>
  void claim(Fill fill) {
    alloc::Session session = ledger_.pool_.allocator().session();
    commit(session, fill(session));
  }

  const std::array<pm::Offset, 4>& claims() const { return claims_; }

  /// The claimed blocks have been linked, durably.
  void linked();

  /// They were not, and never will be: frees them.
  void unclaim();

  /// Nobody can say whether they will be: the stripe stays as it is until the index is opened
  /// again.
  void abandon() { lane_ = nullptr; }

  /// Makes sure that so many names can be given. Throws out_of_space, nothing changed.
  void make_room(unsigned names);

  /// Names a block that this thread is about to unlink; 0: none after all. Flushed only: a fence
  /// must come before the block is unlinked. `name` counts from 0; what it named before, it does no
  /// more.
  void name(unsigned name, pm::Offset block);

  /// The named blocks have been unlinked, durably.
  void unlinked();

  /// They have not been.
  void unname();

 private:
  using Claims = std::array<pm::Offset, 4>;

  void commit(alloc::Session& session, const Claims& claims);

  Ledger& ledger_;
  Lane* lane_;
  Claims claims_{};
  std::array<pm::Offset*, 4> words_{};
  std::array<pm::Offset, 4> names_{};
};

}  // namespace perdix::index::nbtree
