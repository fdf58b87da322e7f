// Counts how often an operation is disturbed by another one in its leaf. These are conflicts, one
// each time:
//   - a compare-and-swap of an entry, or of a slot's fingerprint, fails, since another thread was
//     faster;
//   - what was found in a leaf does not count, since the leaf was replaced, and the operation
//     searches again;
//   - a write finds its entry dead or frozen, or its leaf closed by another thread, and begins
//     again;
//   - an insert loses against another insert of the same key that was not complete;
//   - a lock of a leaf is taken (WriteLocks, AllLocks), or the leaf was replaced when the lock is
//     free.
// A thread that replaces a full leaf, and meets no other one there, has no conflict.
// Of values that are strings only a part is counted: no figure has them.
//
// Thread-safe. A count is exact while no thread uses the tree.
#pragma once

#include <cstdint>

#include "util/striped_counter.h"

namespace perdix::detail::index::nbtree {

/// That of a form which does not count: empty.
template <bool kCounts>
class Conflicts {
 public:
  void add() noexcept {}
  std::uint64_t sum() const noexcept { return 0; }

  class Tries {
   public:
    explicit Tries(Conflicts&) noexcept {}
    void next() noexcept {}
  };
};

template <>
class Conflicts<true> {
 public:
  void add() noexcept { count_.add(1); }
  std::uint64_t sum() const noexcept { return static_cast<std::uint64_t>(count_.sum()); }

  /// The tries of one step: each but the first one follows a conflict.
  class Tries {
   public:
    explicit Tries(Conflicts& conflicts) noexcept : conflicts_(conflicts) {}
    void next() noexcept {
      if (tried_) conflicts_.add();
      tried_ = true;
    }

   private:
    Conflicts& conflicts_;
    bool tried_ = false;
  };

 private:
  util::StripedCounter count_;
};

}  // namespace perdix::detail::index::nbtree
