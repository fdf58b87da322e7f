// How entries are read and how they change: the protocol of entry.h on the words of a block and the
// DRAM side of its leaf. Structure modifications, which move entries, are in smo.cc.
//
// Which of several inserts of the same new key wins: the one in the first slot (NBTree
// (docs/papers.md), section III-B, "log-structured insert"). An insert is decided by one step of
// its key word, pending -> live or pending -> dead. It may become live once no slot before it can
// hold its key any more: a slot before it that was taken for a key with the same fingerprint holds
// another key, is dead, or is made so while it is still empty. A pending entry of the same key is
// decided first, for its owner. So no insert waits for the owner of a slot, and after a crash the
// first entry of a key is the one that counted.
//
// Thread-safe. Has no state: what changes is the leaf and its block. The caller holds a guard.
#pragma once

#include <cstdint>

#include "index/common/codec.h"
#include "index/common/value_codec.h"
#include "index/nbtree/entry.h"
#include "index/nbtree/leaf.h"
#include "pm/access.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::nbtree {

/// The result of a search for a key in a leaf.
struct Lookup {
  int slot = -1;  ///< none
  Word value = 0;
  std::uint64_t dead = 0;  ///< slots where it may have been
};

template <class K>
class EntryProtocol {
 public:
  using Key = View<K>;

  EntryProtocol(pool::PoolCore& pool, Kind value_kind)
      : pm_(pool.pm()),
        persists_late_(pm_.domain() != pm::Domain::cpu_cache),
        keys_(pool),
        codec_(pool, value_kind) {}

  const Codec<K>& keys() const { return keys_; }
  const ValueCodec& values() const { return codec_; }

  /// Neither keys nor values own blobs.
  bool all_inline() const { return Codec<K>::kInline && codec_.is_inline(); }

  /// Pool bytes of the blobs of an entry, whose key word may carry a state.
  std::int64_t footprint(Word key, Word value) const {
    return keys_.footprint(key & Layout::kKeyBits) + codec_.footprint(value);
  }

  /// What the leaf has of the key. It counts if the leaf still is at its position after that.
  Lookup find(const Leaf<K>& leaf, Key key, Hash16 hash) const;

  /// Makes entries durable that may not be so (leaf.h, 3).
  void persist_unpersisted(const Leaf<K>& leaf, std::uint64_t slots) const {
    if (persists_late_ && slots != 0 && leaf.has_unpersisted()) persist_entries(leaf, slots);
  }
  void begin_unpersisted(Leaf<K>& leaf) const {
    if (persists_late_) leaf.begin_unpersisted();
  }
  void end_unpersisted(Leaf<K>& leaf) const {
    if (persists_late_) leaf.end_unpersisted();
  }

  /// Exchanges a live entry, which was `old`, for fresh(old). False if it is not live any more, or
  /// has another value than `only`, if that is given: the caller's guard keeps the blob of that
  /// value, so the same word is the same value.
  template <class Fresh>
  bool exchange(Entry& entry, const Word* only, pm::WordPair& old, const Fresh& fresh) const;

  /// Decides about a pending entry, which is durable. Returns whether its insert wins.
  bool decide(Leaf<K>& leaf, unsigned slot, Key key, Hash16 hash) const;

  /// Closes a leaf: afterwards all its entries are dead or frozen, and nothing in it changes.
  void freeze(Leaf<K>& leaf) const;

 private:
  using Layout = EntryLayout<K>;

  bool matches(Word word, Key key, Hash16 hash) const {
    if constexpr (Codec<K>::kInline) {
      return (word & Layout::kKeyBits) == (key & Layout::kKeyBits);
    } else {
      return keys_.equal(word & Layout::kKeyBits, key, hash);
    }
  }

  void persist_entries(const Leaf<K>& leaf, std::uint64_t slots) const;
  void show(Leaf<K>& leaf, unsigned slot) const;
  bool free_before(Leaf<K>& leaf, unsigned slot, Key key, Hash16 hash) const;
  bool wins_when_frozen(Leaf<K>& leaf, unsigned slot, Key key, Hash16 hash) const;

  const pm::Persister& pm() const { return pm_; }

  const pm::Persister& pm_;
  const bool persists_late_;  // what is visible may not be durable as yet
  Codec<K> keys_;
  ValueCodec codec_;
};

template <class K>
[[gnu::always_inline]] inline Lookup EntryProtocol<K>::find(const Leaf<K>& leaf, Key key,
                                                            Hash16 hash) const {
  // Before the fingerprints: what is visible has one.
  const std::uint64_t visible = leaf.visible_slots();
  std::uint64_t dead = 0;
  for (std::uint64_t left = leaf.taken_for(fingerprint_of(hash)) & visible; left != 0;
       left &= left - 1) {
    const int slot = __builtin_ctzll(left);
    const Entry& entry = leaf.block().entries[slot];
    const Word word = pm::load(entry.key);
    const State state = Layout::state(word);
    if (state == State::special) {
      dead |= left & -left;
    } else if (matches(word, key, hash)) {
      return {slot, pm::load(entry.value), dead};
    }
  }
  return {-1, 0, dead};
}

template <class K>
template <class Fresh>
bool EntryProtocol<K>::exchange(Entry& entry, const Word* only, pm::WordPair& old,
                                const Fresh& fresh) const {
  for (;;) {
    old.first = pm::load(entry.key);
    old.second = pm::load(entry.value);
    if (Layout::state(old.first) != State::live) return false;
    if (only != nullptr && old.second != *only) return false;
    pm::on_step("nbtree: exchange an entry");
    if (pm().compare_exchange(reinterpret_cast<pm::WordPair&>(entry), old, fresh(old))) return true;
    pm::on_step("nbtree: an entry changes before it is exchanged");
  }
}

}  // namespace perdix::detail::index::nbtree
