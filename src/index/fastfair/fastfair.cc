#include "index/fastfair/fastfair.h"

#include <array>
#include <chrono>

#include "index/common/groups.h"
#include "index/common/limits.h"
#include "index/common/problems.h"
#include "index/common/retry.h"
#include "index/fastfair/check.h"
#include "index/fastfair/owned.h"
#include "index/fastfair/scan.h"

namespace perdix::detail::index::fastfair {

// --- Opening -------------------------------------------------------------------------------------
//
// A new tree gets its first leaf, an existing tree is inspected once, and a tree that is to have
// write buffers gets a head. The pool has resolved the allocator's log before, so the invariants of
// layout.h hold. What a crash has left unfinished (an interrupted shift, a node without an entry
// above) is valid as it is, and the next writer that meets it completes it.

template <class K>
WordTree<K>::WordTree(pool::IndexHandle handle, const FastFairOptions& options)
    : WordTree(handle.pool(), handle.root(), handle.info().value_kind, kCapacity, Latches::kBits,
               options) {
  handle_ = std::move(handle);
}

template <class K>
WordTree<K>::WordTree(pool::PoolCore& pool, std::uint64_t& root, Kind value_kind, unsigned fanout,
                      unsigned latch_bits, const FastFairOptions& options)
    : descent_(pool, root_word(pool, root, buffer_budget(options) != 0), fanout, latch_bits,
               path_budget(options)),
      head_(head_at(pool, pm::load(root))),
      store_(pool, value_kind),
      splitting_(descent_),
      buffers_(descent_, splitting_, store_),
      merging_(descent_, splitting_, buffers_) {
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t& top = nodes().root_word();
  if (pm::load(top) == pm::kNull) retry_when_full(pool, [&] { create_first_leaf(pool, top); });
  nodes().root();
  buffers_.open(head_, options);  // its thread goes by the path
  if (descent_.path() != nullptr) open_path(options);
  if (buffers_.get() != nullptr) entry_.emplace(pool.open_indexes(), *this);
  recovery_seconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Begins to fill the cached path. For a tree with one leaf it is then complete.
template <class K>
void WordTree<K>::open_path(const FastFairOptions& options) {
  if (descent_.has_one_leaf()) {
    descent_.fill_path(std::stop_token());
  } else if (options.resume_in_background) {
    filling_.start_thread([this](const std::stop_token& stop) { descent_.fill_path(stop); });
  }
}

template <class K>
void WordTree<K>::destroy(pool::PoolCore& pool, std::uint64_t& root, Kind value_kind) {
  fastfair::destroy<K>(pool, root, value_kind);
}

// --- Lookups -------------------------------------------------------------------------------------

/// What the buffer of a leaf has for the key. Returns false if the leaf must be looked for again:
/// it has changed, or its chain had to be adopted. If it returns true, a value counts; that there
/// is none counts only if the caller then finds the leaf valid.
template <class K>
[[gnu::noinline]] bool WordTree<K>::look_into_buffer(const Seen& leaf, Key key,
                                                     std::optional<Word>& value) const {
  if (!buffers_.ready(leaf)) return false;
  const auto found = buffers_->find(nodes().offset(*leaf.node), key, Keys::hash16(key));
  if (!found) return true;
  value = found.value();
  return leaf.valid();
}

/// The value's word of a key. `leaf` is from approach(), or no node. Reads the right neighbour only
/// if the leaf does not have the key. `kBuffered`: leaves may have buffers.
template <class K>
template <bool kBuffered>
std::optional<Word> WordTree<K>::find_among(Seen leaf, Key key) const {
  const Hash16 hash = Keys::hash16(key);
  for (;;) {
    if (leaf.node == nullptr) leaf = descent_.approach({key}, 0);
    if constexpr (kBuffered) {  // first: it costs no line of PM
      std::optional<Word> value;
      const bool counts = look_into_buffer(leaf, key, value);
      if (counts && value) return value;
      if (!counts) {
        leaf = {};
        continue;
      }
    }
    const unsigned after = nodes().rank(*leaf.node, {key});
    if (nodes().holds(*leaf.node, after, key, hash)) {
      const Word value = pm::load(leaf.node->entries[after - 1].value);
      if (leaf.valid()) return value;
      leaf = {};
      continue;
    }
    Node* right = nodes().right_of(*leaf.node, {key});
    const Seen following = right == nullptr ? Seen{} : nodes().look(*right);
    const bool valid = leaf.valid();
    if (valid && right == nullptr) return std::nullopt;
    leaf = valid ? following : Seen{};
  }
}

template <class K>
std::optional<Word> WordTree<K>::find_from(Seen leaf, Key key) const {
  return buffers_.get() == nullptr ? find_among<false>(leaf, key) : find_among<true>(leaf, key);
}

/// Asks for the lines of a node. The later ones the processor fetches by itself while it searches.
inline void prefetch(const Node& node) {
  constexpr unsigned kLines = 4;
  for (unsigned line = 0; line < kLines; ++line)
    __builtin_prefetch(reinterpret_cast<const char*>(&node) + line * pm::kLineSize);
}

/// A lookup waits for memory most of its time, so the keys of a group go down level by level
/// together, and their waits overlap: one step for each key in turn, until all have come to a leaf.
/// A step that a writer has overtaken begins again at the root.
template <class K>
void WordTree<K>::find_words(std::span<const Key> keys, std::span<std::optional<Word>> out) const {
  if (descent_.path() != nullptr) return find_by_path(keys, out);
  std::array<Seen, kGroup> at;
  at.fill(descent_.start());
  for (bool on_the_way = true; on_the_way;) {
    on_the_way = false;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (at[i].node == nullptr) at[i] = descent_.start();
      if (meta_of(*at[i].node).level == 0) continue;
      at[i] = descent_.step(at[i], {keys[i]});
      if (at[i].node != nullptr) prefetch(*at[i].node);
      on_the_way = true;
    }
  }
  for (std::size_t i = 0; i < keys.size(); ++i) out[i] = find_from(at[i], keys[i]);
}

/// find_words() by the cached path.
template <class K>
void WordTree<K>::find_by_path(std::span<const Key> keys,
                               std::span<std::optional<Word>> out) const {
  std::array<Node*, kGroup> leaves;
  descent_.path()->before(keys, false, leaves);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (leaves[i] != nullptr) prefetch(*leaves[i]);
  }
  for (std::size_t i = 0; i < keys.size(); ++i)
    out[i] = find_from(descent_.validated(leaves[i], {keys[i]}), keys[i]);
}

template <class K>
void WordTree<K>::scan(Key from, std::size_t limit, const PairSink<K>& show) const {
  LeafReader<K>(descent_, buffers_, values()).scan(from, limit, show);
}

/// As OrderedWordEngine wants it.
template <class K>
void WordTree<K>::find_last(Key key, bool strictly, LastPairs& last) const {
  LeafReader<K>(descent_, buffers_, values()).find_last(key, strictly, last);
}

// --- Changes -------------------------------------------------------------------------------------

template <class K>
bool WordTree<K>::write(Key key, NewValue value, Mode mode, const NewValue* expected) {
  check_key(key);
  return retry_when_full(pool(), [&] { return try_write({key, value, mode, expected}); });
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
  if (buffers_.get() != nullptr) buffers_->keep_short();
  const epoch::Guard guard;
  Node* stray = nullptr;
  std::optional<bool> done;
  while (!done) done = write_leaf(write, stray);
  if (stray != nullptr) splitting_.install(*stray);
  return *done;
}

/// Locks the leaf whose range holds the key. It needs no chain from before the restart any more.
template <class K>
void WordTree<K>::lock_leaf(Locked& leaf, Key key, Node** stray) const {
  for (;;) {
    const Seen seen = descent_.seek({key}, 0, stray);
    if (!buffers_.ready(seen)) continue;
    if (leaf.try_lock(seen)) return;
  }
}

/// One attempt. Returns nullopt if the leaf had to be merged with its buffer, freed of copies or
/// split first.
template <class K>
std::optional<bool> WordTree<K>::write_leaf(const Write& write, Node*& stray) {
  Locked leaf;
  lock_leaf(leaf, write.key, &stray);
  if (buffers_.get() != nullptr) [[unlikely]]
    return write_buffered(leaf, write, stray);
  return write_in_place(*leaf.node, write, stray);
}

/// write_leaf() of a tree with buffers. Returns nullopt if the leaf must be looked for again.
template <class K>
[[gnu::noinline]] std::optional<bool> WordTree<K>::write_buffered(Locked& leaf, const Write& write,
                                                                  Node*& stray) {
  using Added = typename LeafBuffers<K>::Buffers::Added;
  const auto& [key, value, mode, expected] = write;
  const Hash16 hash = Keys::hash16(key);
  Node& node = *leaf.node;
  if (const auto found = buffers_.find(node, key, hash)) {
    if (mode == Mode::insert) return false;
    return buffers_->replace(leaf, found, value, expected);
  }
  const bool is_new =
      mode != Mode::update && !nodes().holds(node, nodes().rank_from_right(node, {key}), key, hash);
  if (is_new) {
    const Added outcome = buffers_->add(leaf, key, value, hash);
    if (outcome == Added::added) return true;
    if (outcome == Added::merged) return std::nullopt;
    // A split would divide the pairs of the buffer.
    auto* const kept = buffers_.of(node);
    if (kept != nullptr && !kept->empty_chain() && meta_of(node).count >= nodes().fanout()) {
      buffers_->merge(leaf, *kept);
      return std::nullopt;
    }
  }
  return write_in_place(node, write, stray);
}

/// write_leaf() for a locked leaf whose buffer, if it has one, does not take the change.
template <class K>
std::optional<bool> WordTree<K>::write_in_place(Node& node, const Write& write, Node*& stray) {
  const auto& [key, value, mode, expected] = write;
  const Hash16 hash = Keys::hash16(key);
  const unsigned after = nodes().rank_from_right(node, {key});
  if (nodes().holds(node, after, key, hash)) {
    if (mode == Mode::insert || !store_.value_is(node, after - 1, expected)) return false;
    store_.replace(node, after - 1, value);
    return true;
  }
  if (mode == Mode::update) return false;
  if (meta_of(node).count < nodes().fanout()) {
    store_.add(node, after, key, value);
    return true;
  }
  if (remove_copies(pm(), node)) return std::nullopt;
  Node* right = splitting_.split(
      node, key, [&] { return buffers_.get() == nullptr ? 0 : buffers_->draw_number(); });
  if (stray == nullptr) stray = right;
  return std::nullopt;
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
    lock_leaf(leaf, key, &stray);
    if (const auto found = buffers_.find(*leaf.node, key, hash)) {
      if (!buffers_->erase(found, expected)) return false;
    } else {
      const unsigned after = nodes().rank_from_right(*leaf.node, {key});
      if (!nodes().holds(*leaf.node, after, key, hash)) return false;
      if (!store_.value_is(*leaf.node, after - 1, expected)) return false;
      if (remove_copies(pm(), *leaf.node)) continue;
      store_.remove(*leaf.node, after - 1);
    }
    left = buffers_.pairs_of(*leaf.node);
    done = true;
  }
  if (stray != nullptr) splitting_.install(*stray);
  merging_.after_erase(key, left);
  return true;
}

template <class K>
bool WordTree<K>::reclaim_space() noexcept {
  return buffers_.get() != nullptr && buffers_->reclaim_space();
}

// --- What a tree says of itself ------------------------------------------------------------------

template <class K>
CheckReport WordTree<K>::check() const {
  CheckReport report;
  as_problem(report, [&] {
    buffers_.require_resumed();
    filling_.wait_for_thread();
    const epoch::Guard guard;
    TreeChecker<K>(descent_, buffers_, values(), head_, report).check();
    Problems(report).expect(report.pairs == size(), "{} pairs are counted, {} are there", size(),
                            report.pairs);
  });
  audit(pool().allocator(), report, "F6", [&](Owned& owned) { walk(owned); });
  return report;
}

template <class K>
void WordTree<K>::for_each_block(const BlockVisitor& visit) const {
  buffers_.require_resumed();
  const epoch::Guard guard;
  ShownBlocks shown(visit);
  walk(shown);
}

template <class K>
void WordTree<K>::walk(Owned& owned) const {
  // A copy does: only a drop changes it.
  std::uint64_t word = head_ == nullptr ? pm::load(nodes().root_word()) : pool().offset(head_);
  fastfair::walk<K>(
      pool(), word, values(),
      [&](Node& leaf) { walk_buffer<K>(values(), buffers_.of(leaf), owned); }, owned);
}

template <class K>
std::uint64_t WordTree<K>::size() const {
  return store_.pairs().get([&] {
    std::uint64_t pairs = 0;
    LeafReader<K>(descent_, buffers_, values())
        .for_each_leaf([&](const Node&, const auto& snapshot) { pairs += snapshot.size; });
    return pairs;
  });
}

template <class K>
IndexStats WordTree<K>::stats() const {
  IndexStats stats;
  std::int64_t blob_bytes = 0;
  LeafReader<K>(descent_, buffers_, values())
      .for_each_leaf([&](const Node& leaf, const auto& snapshot) {
        ++stats.leaves;
        stats.pairs += snapshot.size;
        blob_bytes += keys().footprint(pm::load(leaf.low));
        for (unsigned i = 0; i < snapshot.size; ++i) {
          const Entry& entry = snapshot.entries[i];
          blob_bytes += keys().footprint(entry.key) + values().footprint(entry.value);
        }
      });
  const epoch::Guard guard;  // nodes that are merged away during the call stay what they are
  std::uint64_t count = 0;
  nodes().for_each([&](const Node&) { ++count; });
  const bool buffered = buffers_.get() != nullptr;
  stats.pm_bytes = count * sizeof(Node) + static_cast<std::uint64_t>(blob_bytes) +
                   (head_ == nullptr ? 0 : sizeof(Head)) +
                   (buffered ? buffers_->log().pm_bytes() : 0);
  stats.dram_bytes = sizeof *this + nodes().latches().bytes() +
                     (descent_.path() == nullptr ? 0 : descent_.path()->bytes()) +
                     (buffered ? buffers_->dram_bytes() : 0);
  stats.recovery_seconds = recovery_seconds_;
  return stats;
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
