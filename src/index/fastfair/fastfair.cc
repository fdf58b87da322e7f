#include "index/fastfair/fastfair.h"

#include "index/common/limits.h"
#include "index/common/retry.h"
#include "index/fastfair/anew.h"
#include "index/fastfair/buffers.h"
#include "index/fastfair/check.h"
#include "index/fastfair/destroy.h"
#include "index/fastfair/get_many.h"
#include "index/fastfair/node_merge.h"
#include "index/fastfair/recovery.h"
#include "index/fastfair/scan.h"
#include "index/fastfair/search.h"
#include "index/fastfair/shortcut.h"
#include "index/fastfair/smo.h"

namespace perdix::detail::index::fastfair {

template <class K>
bool WordTree<K>::write(Key key, NewValue value, Mode mode, const NewValue* expected) {
  check_key(key);
  return retry_when_full(pool_, [&] { return try_write({key, value, mode, expected}); });
}

template <class K>
bool WordTree<K>::insert_at_once(Key key, NewValue value) {
  check_key(key);
  return try_write({key, value, Mode::insert, nullptr});
}

/// A node that this write or an earlier one has split off may have no entry above it. It gets the
/// entry after the write, which holds no latch any more.
template <class K>
bool WordTree<K>::try_write(const Write& write) {
  if (buffers_ != nullptr) buffers_->keep_short();
  const epoch::Guard guard;
  Node* stray = nullptr;
  std::optional<bool> done;
  while (!done) done = write_leaf(write, stray);
  if (stray != nullptr) install(*stray);
  return *done;
}

/// One attempt. Returns nullopt if the leaf had to be merged with its buffer, freed of copies or
/// split first.
template <class K>
std::optional<bool> WordTree<K>::write_leaf(const Write& write, Node*& stray) {
  Locked leaf;
  lock_node(leaf, write.key, 0, &stray);
  if (buffers_ != nullptr) [[unlikely]]
    return write_buffered(leaf, write, stray);
  return write_in_place(*leaf.node, write, stray);
}

/// write_leaf() for a locked leaf whose buffer, if it has one, does not take the change.
template <class K>
std::optional<bool> WordTree<K>::write_in_place(Node& node, const Write& write, Node*& stray) {
  const auto& [key, value, mode, expected] = write;
  const Hash16 hash = Keys::hash16(key);
  const unsigned after = rank_from_right(node, {key});
  if (holds(node, after, key, hash)) {
    if (mode == Mode::insert || !value_is(node, after - 1, expected)) return false;
    replace(node, after - 1, value);
    return true;
  }
  if (mode == Mode::update) return false;
  if (meta_of(node).count < fanout_) {
    add(node, after, key, value);
    return true;
  }
  if (remove_copies(pm(), node)) return std::nullopt;
  Node* right = split(node, key);
  if (stray == nullptr) stray = right;
  return std::nullopt;
}

/// Adds a pair to a leaf with room: FAST.
template <class K>
void WordTree<K>::add(Node& leaf, unsigned at, Key key, NewValue value) {
  if (all_inline()) {
    if constexpr (Keys::kInline) insert_entry(pm(), leaf, at, {key, value.word()});
  } else {
    alloc::Session session = pool_.allocator().session();
    const Word key_word = keys_.write(session, key, Keys::hash16(key));
    const Entry entry{key_word, codec_.write(session, value)};
    const Commit commit = commit_of_insert(leaf, at, entry);
    if (pm().commits_as_one()) {
      session.commit_as_one(insertion_changes(leaf, at, entry).all());
      pairs_.add();
      return;
    }
    stage_insert(pm(), leaf, at, entry);
    session.commit_when(commit.word, ~Word{0}, commit.value);
    session.log();  // blobs and the staged entry are durable before anything refers to them
    commit_insert(pm(), leaf, at, entry);
    session.finish();
  }
  pairs_.add();
}

/// Replaces a value; its word is the commit.
template <class K>
void WordTree<K>::replace(Node& leaf, unsigned at, NewValue value) {
  Word& word = leaf.entries[at].value;
  if (codec_.is_inline()) {
    pm().publish(word, value.word());  // the commit; the key is durable already
  } else {
    alloc::Session session = pool_.allocator().session();
    const Word old_word = pm::load(word);
    const Word new_word = codec_.write(session, value);
    if (new_word == old_word) return;  // both empty: nothing to change
    codec_.free(session, old_word);
    session.commit(pm::set_word(word, new_word));  // the new blob is durable before
  }
}

/// Removes a pair: FAST, to the left.
template <class K>
void WordTree<K>::remove(Node& leaf, unsigned at) {
  if (all_inline()) {
    remove_entry(pm(), leaf, at);
  } else {
    const bool last = at + 1 == meta_of(leaf).count;
    const Entry entry = load_entry(leaf, at);
    const Commit commit = commit_of_removal(leaf, at);
    alloc::Session session = pool_.allocator().session();
    Keys::free(session, entry.key);
    codec_.free(session, entry.value);
    if (pm().commits_as_one()) {
      session.commit_as_one(removal_changes(leaf, at).all());
    } else {
      session.commit(pm::set_word(commit.word, commit.value));
      if (!last) close_gap(pm(), leaf, at);
    }
  }
  pairs_.remove();
}

template <class K>
bool WordTree<K>::erase(Key key, const NewValue* expected) {
  check_key(key);
  const Hash16 hash = Keys::hash16(key);
  const epoch::Guard guard;
  Node* stray = nullptr;
  unsigned left = 0;
  for (bool done = false; !done;) {
    Locked leaf;
    lock_node(leaf, key, 0, &stray);
    if (const auto found = find_buffered(*leaf.node, key, hash)) {
      if (!buffers_->erase(found, expected)) return false;
    } else {
      const unsigned after = rank_from_right(*leaf.node, {key});
      if (!holds(*leaf.node, after, key, hash)) return false;
      if (!value_is(*leaf.node, after - 1, expected)) return false;
      if (remove_copies(pm(), *leaf.node)) continue;
      remove(*leaf.node, after - 1);
    }
    left = pairs_of(*leaf.node);
    done = true;
  }
  if (stray != nullptr) install(*stray);
  if (sparse(left)) merge_around(key);
  if (merges_due()) [[unlikely]]
    make_up_for_merges();
  return true;
}

template class WordTree<std::uint64_t>;
template class WordTree<std::string>;

}  // namespace perdix::detail::index::fastfair

namespace perdix::detail::index {

template class WordEngine<fastfair::WordTree<std::uint64_t>, std::uint64_t>;
template class WordEngine<fastfair::WordTree<std::string>, std::string>;
template class OrderedWordEngine<fastfair::WordTree<std::uint64_t>, std::uint64_t>;
template class OrderedWordEngine<fastfair::WordTree<std::string>, std::string>;

}  // namespace perdix::detail::index
