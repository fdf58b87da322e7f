// Changes of the plugged-in index. Each is an operation of Uno: it is logged, so that a crash takes
// it back as a whole, and after an exception the index is as before it, or broken (uno.h).
//
// Thread-safe, but not for two changes of one key.
#pragma once

#include <string_view>

#include "index/tips/entry.h"
#include "index/tips/guest.h"
#include "index/tips/need.h"
#include "index/tips/uno.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {

class Changes {
 public:
  Changes(const pool::PoolCore& pool, Guest& guest, Uno& uno)
      : pool_(pool), guest_(guest), uno_(uno) {}

  /// Makes the write of an entry. A full pool gives it the blocks of `claimed`, its need if it was
  /// admitted (reserve.h). Returns false if there was no space for it: nothing has happened then.
  bool apply(const Entry& entry, const Need& claimed = {});

  /// Whether the index keeps its keys in order.
  bool is_ordered() const { return guest_.facts().ordered; }
  Kind key_kind() const { return guest_.kinds().key; }

  /// The blocks that apply() may take from the pool.
  Need need_of(const Entry& entry) const;

  /// Whether all puts need the same, and that.
  bool needs_are_alike() const {
    return guest_.kinds().key == Kind::u64 && guest_.kinds().value == Kind::u64;
  }
  Need need_alike() const { return needs_are_alike() ? need_of_put(0, 0) : Need(); }

  /// Removes the pair of a key, if it is there. Throws out_of_space, bad_alloc.
  void erase(Word wanted);

  /// Makes an index that has no pairs anew, and frees its nodes. In the epoch that sees this it
  /// never leads to one that is free. Throws corrupt.
  void clear();

 private:
  void put(const Entry& entry);
  void take_out(Word wanted);
  Need need_of_put(std::size_t key_size, std::size_t value_size) const;
  Word new_word(std::string_view bytes, Kind kind);
  void free_word(Word word, Kind kind);

  const pool::PoolCore& pool_;
  Guest& guest_;
  Uno& uno_;
};

}  // namespace perdix::detail::index::tips
