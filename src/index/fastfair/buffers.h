// Leaves with write buffers: the homes of index/common/buffered.h, whose invariants are B1 to B3
// here, too.
//   B4. A chain begins with a note of the leaf's low bound. While the log may have chains from
//       before the restart, no leaf's low bound is freed, so the note of each chain can be read.
//
// A merge in place inserts pair by pair, each by FAST. One out of place writes a new leaf, or two:
// anew.h.
#pragma once

#include <algorithm>

#include "index/fastfair/fastfair.h"

namespace perdix::detail::index::fastfair {

// --- Lookups: they count under the latch, or if its version is validated ---

/// What the buffer of a leaf has for the key. Returns false if the leaf must be looked for again:
/// it has changed, or its chain had to be adopted. If it returns true, a value counts; that there
/// is none counts only if the caller then finds the leaf valid.
template <class K>
[[gnu::noinline]] bool WordTree<K>::look_into_buffer(const Seen& leaf, Key key,
                                                     std::optional<Word>& value) const {
  if (!ready(leaf)) return false;
  const auto found = buffers_->find(pool_.offset(leaf.node), key, Keys::hash16(key));
  if (!found) return true;
  value = found.value();
  return leaf.valid();
}

/// collect() of a tree with buffers: the pairs of leaf and buffer in one order.
template <class K>
template <class Add>
[[gnu::noinline]] bool WordTree<K>::collect_with_buffer(const Seen& leaf, Key from,
                                                        std::size_t limit, Seen& following,
                                                        Add add) const {
  if (!ready(leaf)) return false;
  const Node& node = *leaf.node;
  const auto buffered = sort_buffered(node, from);
  const unsigned count = meta_of(node).count;
  std::size_t added = 0;
  unsigned next = 0;
  const auto add_below = [&](const Key* bound) {
    for (; next < buffered.size && added <= limit; ++next, ++added) {
      const Entry& entry = buffered.pairs[next];
      if (bound != nullptr && !(keys_.view(entry.key) < *bound)) return;
      add(entry);
    }
  };
  for (unsigned i = rank(node, {from, true}); i < count && added <= limit; ++i) {
    const Entry entry = load_entry(node, i);
    if (i + 1 < count && pm::load(node.entries[i + 1].key) == entry.key) continue;  // F3
    const Key key = keys_.view(entry.key);
    add_below(&key);
    if (added > limit) break;
    add(entry);
    ++added;
  }
  add_below(nullptr);
  if (added > limit) return leaf.valid();
  Node* right = after(node);
  following = right == nullptr ? Seen{} : look(*right);
  return leaf.valid();
}

// --- Changes ---

/// write_leaf() of a tree with buffers. Returns nullopt if the leaf must be looked for again.
template <class K>
[[gnu::noinline]] std::optional<bool> WordTree<K>::write_buffered(Locked& leaf, const Write& write,
                                                                  Node*& stray) {
  using Added = typename Buffers::Added;
  const auto& [key, value, mode, expected] = write;
  const Hash16 hash = Keys::hash16(key);
  Node& node = *leaf.node;
  if (const auto found = find_buffered(node, key, hash)) {
    if (mode == Mode::insert) return false;
    return buffers_->replace(leaf, found, value, expected);
  }
  const bool is_new = mode != Mode::update && !holds(node, rank_from_right(node, {key}), key, hash);
  if (is_new) {
    const Added outcome = buffers_->add(leaf, key, value, hash);
    if (outcome == Added::added) return true;
    if (outcome == Added::merged) return std::nullopt;
    // A split would divide the pairs of the buffer.
    Buffer* const kept = buffer_of(node);
    if (kept != nullptr && !kept->empty_chain() && meta_of(node).count >= fanout_) {
      buffers_->merge(leaf, *kept);
      return std::nullopt;
    }
  }
  return write_in_place(node, write, stray);
}

// --- Merging ---

/// Each pair as its insert would (the paper's in-place update), but with one fence for all where a
/// fence is a sync. Their order does not matter, since the chain has all of them until its END.
template <class K>
template <class End>
bool WordTree<K>::Homes::merge_in_place(const Seen& leaf, const WriteBuffer<Shape>& buffer,
                                        End end) const {
  const pm::Persister& pm = tree.pm();
  Node& node = *leaf.node;
  remove_copies(pm, node);
  if (meta_of(node).count + buffer.size() > tree.fanout_) return false;
  if (pm.commits_as_one()) {
    pm.commit(tree.changes_to(node, tree.all_pairs(node)).all());
  } else {
    for (unsigned i = 0; i < buffer.size(); ++i) {
      const unsigned at = tree.rank_from_right(node, {tree.keys_.view(buffer.key(i))});
      insert_entry(pm, node, at, {buffer.key(i), buffer.value(i)});
    }
  }
  end();
  return true;
}

/// The changes by which a leaf without copies comes to hold just these pairs.
template <class K>
pm::Changes WordTree<K>::changes_to(Node& leaf, const Run& run) const {
  pm::Changes changes;
  for (unsigned i = 0; i < run.size; ++i) {
    const Entry& entry = run.entries[i];
    if (pm::load(leaf.entries[i].key) != entry.key) changes.set(leaf.entries[i].key, entry.key);
    if (pm::load(leaf.entries[i].value) != entry.value)
      changes.set(leaf.entries[i].value, entry.value);
  }
  changes.set(leaf.meta, meta_with(leaf, run.size));
  return changes;
}

/// The new leaves have another latch, and need those of what leads to them, which a thread without
/// a latch takes.
template <class K>
void WordTree<K>::Homes::rewrite(Locked& leaf, WriteBuffer<Shape>&, bool) const {
  const Word low = note(leaf);
  leaf.latches.release();
  while (!tree.write_anew(tree.keys_.view(low))) {
  }
}

template <class K>
bool WordTree<K>::Homes::has_word(const Seen& leaf, Word key) const {
  const auto begin = leaf.node->entries.begin();
  return std::any_of(begin, begin + meta_of(*leaf.node).count,
                     [&](const Entry& entry) { return pm::load(entry.key) == key; });
}

// --- Opening ---

/// Opens the write buffers of a tree that has a log, or is to have one.
template <class K>
void WordTree<K>::open_buffers(const FastFairOptions& options) {
  const std::uint64_t budget = buffer_budget(options);
  if (head_ == nullptr || !has_log(pool_, head_->log, budget != 0)) return;
  const typename Buffers::Parts parts{pool_, keys_, codec_, latches_, pairs_};
  auto buffers = std::make_unique<Buffers>(Homes{*this}, parts, options.technique);
  buffers->open(pm::load(head_->log), budget, &head_->numbers);
  buffers_ = std::move(buffers);
  buffers_->start_resumption(options.resume_in_background);
}

template <class K>
bool WordTree<K>::reclaim_space() noexcept {
  return buffers_ != nullptr && buffers_->reclaim_space();
}

}  // namespace perdix::detail::index::fastfair
