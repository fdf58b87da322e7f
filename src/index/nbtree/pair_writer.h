// Changes one pair of a leaf that a search has found: an entry is added, gets another value or
// dies, and the strings that it owns come and go with it.
//
// A change that returns false has not been made: another thread was first, or the leaf was frozen,
// and is replaced by now. Its caller searches again.
//
// Thread-safe. The caller holds a guard, and checks afterwards neither leaf nor position. What
// throws out_of_space or std::bad_alloc has changed no pair.
#pragma once

#include <cstdint>
#include <optional>

#include "index/common/codec.h"
#include "index/common/value_codec.h"
#include "index/nbtree/entry_protocol.h"
#include "index/nbtree/leaf.h"
#include "index/nbtree/leaf_memory.h"
#include "index/nbtree/ledger.h"
#include "index/nbtree/smo.h"
#include "pm/probe.h"

namespace perdix::detail::index::nbtree {

template <class K>
class PairWriter {
 public:
  using Key = View<K>;

  PairWriter(pool::PoolCore& pool, const EntryProtocol<K>& entries, LeafMemory<K>& memory,
             Structure<K>& structure, Ledger& ledger, Counts& counts)
      : pm_(pool.pm()),
        entries_(entries),
        memory_(memory),
        structure_(structure),
        ledger_(ledger),
        counts_(counts) {}

  /// The words of the key and the value of a write, and the claims of the blocks that they own. It
  /// is kept while a write searches again, and goes under the guard of the write.
  struct NewPair {
    std::optional<Ledger::StripeLease> lease;
    bool has_key = false;
    bool has_value = false;
    Word key = 0;
    Word value = 0;
  };

  /// The entry that an update or an erase has found. `only`: the value that it may change, null if
  /// it may be any.
  struct Target {
    const LeafRef<K>& place;
    const Lookup& found;
    const Word* only;
  };

  /// Adds a key that the leaf does not have. Replaces the leaf if it is full or closing, and
  /// returns false.
  bool add(const LeafRef<K>& place, Key key, Hash16 hash, NewValue value, NewPair& pair);

  /// Replaces a value in place.
  bool replace(const Target& target, NewValue value, NewPair& pair);

  /// Erases an entry. `pairs` becomes the number of pairs that are left in the leaf.
  bool remove(const Target& target, unsigned& pairs);

 private:
  using Keys = Codec<K>;
  using Layout = EntryLayout<K>;
  using StripeLease = Ledger::StripeLease;

  template <class Prepare>
  bool exchange_value(const Target& target, Word value, pm::WordPair& old, const Prepare& prepare);
  template <class Prepare>
  bool exchange_key(const Target& target, unsigned& pairs, pm::WordPair& old,
                    const Prepare& prepare);
  bool replace_string(const Target& target, NewValue value, NewPair& pair, pm::WordPair& old);
  bool remove_strings(const Target& target, unsigned& pairs, pm::WordPair& old);
  void name_replaced_blob(NewPair& pair, Word value);
  void load_strings(NewPair& pair, const Key* key, Hash16 hash, NewValue value);
  void free_lost_blobs(const LeafRef<K>& place, unsigned slot, NewPair& pair);

  const ValueCodec& values() const { return entries_.values(); }

  /// The block of a value; kNull if it has none of its own.
  pm::Offset blob_of(Word value) const {
    return values().blobs(value) == 0 ? pm::kNull : blob_offset(value);
  }
  const pm::Persister& pm() const { return pm_; }

  const pm::Persister& pm_;
  const EntryProtocol<K>& entries_;
  LeafMemory<K>& memory_;  // of which it carries over the orders
  Structure<K>& structure_;
  Ledger& ledger_;
  Counts& counts_;
};

template <class K>
[[gnu::always_inline]] inline bool PairWriter<K>::replace(const Target& target, NewValue value,
                                                          NewPair& pair) {
  pm::WordPair old{};
  const bool done = values().is_inline()
                        ? exchange_value(target, value.word(), old, [](const pm::WordPair&) {})
                        : replace_string(target, value, pair, old);
  if (!done && Layout::state(old.first) == State::frozen) {
    pm::on_step("nbtree: an update meets a frozen entry");
    structure_.replace_leaf(target.place, nullptr);
  }
  return done;
}

/// The exchange of a replacement, of integers and of strings: stores `value` durably, and calls
/// prepare(old) before each attempt. `old` becomes the entry as it was.
template <class K>
template <class Prepare>
[[gnu::always_inline]] inline bool PairWriter<K>::exchange_value(const Target& target, Word value,
                                                                 pm::WordPair& old,
                                                                 const Prepare& prepare) {
  Leaf<K>& leaf = *target.place.leaf;
  Entry& entry = leaf.block().entries[target.found.slot];
  entries_.begin_unpersisted(leaf);  // before the value can be seen
  const bool done = entries_.exchange(entry, target.only, old, [&](const pm::WordPair& now) {
    prepare(now);
    return pm::WordPair{now.first, value};
  });
  pm::on_step("nbtree: an update may not be durable");
  if (done) pm().persist(&entry.value, sizeof entry.value);  // the commit
  entries_.end_unpersisted(leaf);
  return done;
}

template <class K>
[[gnu::always_inline]] inline bool PairWriter<K>::remove(const Target& target, unsigned& pairs) {
  pm::WordPair old{};
  const bool done = entries_.all_inline()
                        ? exchange_key(target, pairs, old, [](const pm::WordPair&) {})
                        : remove_strings(target, pairs, old);
  if (!done && Layout::state(old.first) == State::frozen) {
    pm::on_step("nbtree: an erase meets a frozen entry");
    structure_.replace_leaf(target.place, nullptr);
  }
  if (done) {
    memory_.slot_hidden(*target.place.leaf, static_cast<unsigned>(target.found.slot));
    counts_.pairs.add(-1);
  }
  return done;
}

/// The exchange of an erase, of integers and of strings: makes the entry dead, durably, and calls
/// prepare(old) before each attempt. `old` becomes the entry as it was.
template <class K>
template <class Prepare>
[[gnu::always_inline]] inline bool PairWriter<K>::exchange_key(const Target& target,
                                                               unsigned& pairs, pm::WordPair& old,
                                                               const Prepare& prepare) {
  Leaf<K>& leaf = *target.place.leaf;
  const auto slot = static_cast<unsigned>(target.found.slot);
  Entry& entry = leaf.block().entries[slot];
  entries_.begin_unpersisted(leaf);  // before the key can be missed
  const bool done = entries_.exchange(entry, target.only, old, [&](const pm::WordPair& now) {
    prepare(now);
    return pm::WordPair{Layout::kDead, now.second};
  });
  pm::on_step("nbtree: an erase may not be durable");
  if (done) {
    pm().persist(&entry.key, sizeof entry.key);  // the commit
    pairs = leaf.hide(slot);
  }
  entries_.end_unpersisted(leaf);
  return done;
}

}  // namespace perdix::detail::index::nbtree
