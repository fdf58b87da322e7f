// Pairs in PM: how pairs of a leaf are added, changed and removed by FAST (shift.h). Knows one leaf
// at a time, and neither the tree nor write buffers: the caller holds the leaf's latch, and says at
// which entry.
//
// Each change is durable when its call returns, and commits by one 8-byte store. Where words refer
// to strings, blocks are allocated and freed by that commit. If a call throws, nothing has changed.
//
// Thread-safe.
#pragma once

#include "alloc/session.h"
#include "index/common/pair_count.h"
#include "index/common/value_codec.h"
#include "index/fastfair/shift.h"

namespace perdix::detail::index::fastfair {

template <class K>
class LeafStore {
 public:
  using Key = View<K>;
  using Keys = Codec<K>;

  LeafStore(pool::PoolCore& pool, Kind value_kind)
      : pool_(pool), keys_(pool), values_(pool, value_kind) {}

  const Keys& keys() const { return keys_; }
  const ValueCodec& values() const { return values_; }
  PairCount& pairs() { return pairs_; }
  const PairCount& pairs() const { return pairs_; }

  /// Whether the value of entry `at` is `expected`, or this is null.
  bool value_is(const Node& leaf, unsigned at, const NewValue* expected) const {
    return expected == nullptr || values_.equal(pm::load(leaf.entries[at].value), *expected);
  }

  /// Adds a pair, which becomes entry `at` of a leaf with room.
  void add(Node& leaf, unsigned at, Key key, NewValue value) {
    if (all_inline()) {
      if constexpr (Keys::kInline) insert_entry(pm(), leaf, at, {key, value.word()});
    } else {
      add_strings(leaf, at, key, value);
    }
    pairs_.add();
  }

  /// Replaces a value; its word is the commit.
  void replace(Node& leaf, unsigned at, NewValue value) {
    Word& word = leaf.entries[at].value;
    if (values_.is_inline()) {
      pm().publish(word, value.word());  // the commit; the key is durable already
    } else {
      alloc::Session session = pool_.allocator().session();
      const Word old_word = pm::load(word);
      const Word new_word = values_.write(session, value);
      if (new_word == old_word) return;  // both empty: nothing to change
      values_.free(session, old_word);
      session.commit(pm::set_word(word, new_word));  // the new blob is durable before
    }
  }

  /// Removes entry `at` of a leaf without copies.
  void remove(Node& leaf, unsigned at) {
    all_inline() ? remove_entry(pm(), leaf, at) : remove_strings(leaf, at);
    pairs_.remove();
  }

 private:
  bool all_inline() const { return Keys::kInline && values_.is_inline(); }

  void add_strings(Node& leaf, unsigned at, Key key, NewValue value) {
    alloc::Session session = pool_.allocator().session();
    const PairWords words = write_pair(session, keys_, values_, key, Keys::hash16(key), value);
    const Entry entry{words.key, words.value};
    const Commit commit = commit_of_insert(leaf, at, entry);
    if (pm().commits_as_one())
      return session.commit_as_one(insertion_changes(leaf, at, entry).all());
    stage_insert(pm(), leaf, at, entry);
    session.commit_when(commit.word, ~Word{0}, commit.value);
    session.log();  // blobs and the staged entry are durable before anything refers to them
    commit_insert(pm(), leaf, at, entry);
    session.finish();
  }

  void remove_strings(Node& leaf, unsigned at) {
    const bool last = at + 1 == meta_of(leaf).count;
    const Entry entry = load_entry(leaf, at);
    const Commit commit = commit_of_removal(leaf, at);
    alloc::Session session = pool_.allocator().session();
    Keys::free(session, entry.key);
    values_.free(session, entry.value);
    if (pm().commits_as_one()) return session.commit_as_one(removal_changes(leaf, at).all());
    session.commit(pm::set_word(commit.word, commit.value));
    if (!last) close_gap(pm(), leaf, at);
  }

  const pm::Persister& pm() const { return pool_.pm(); }

  pool::PoolCore& pool_;
  const Keys keys_;
  const ValueCodec values_;
  PairCount pairs_;
};

}  // namespace perdix::detail::index::fastfair
