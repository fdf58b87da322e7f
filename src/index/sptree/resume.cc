// Instant resumption (sptree.txt §4.6, §4.7): after a restart, an index is in use before its DRAM
// layers are back.
//
// A leaf is *warm* once it has a middle node, and *cold* before. Cold leaves are exactly as the
// crash or the close left them: whoever needs one makes it warm first, and with it the write buffer
// that its chain in the log speaks of. The cold leaves between two warm ones are a *gap*; the warm
// one to its left has no `next`, though its range ends. That is how operations find out, at no cost
// where nothing is cold.
//
// The way to the leaf that is needed: the backup leads to it, or to one left of it; the list of
// leaves leads on. A thread in the background makes all leaves warm in the order of their keys.
//
// Locks: whoever makes a leaf of a gap warm holds the lock of the node to the left of the gap, and
// so has the gap to itself:
//   G1. The warm leaf behind a gap is in the top layer, and stays there as long as the gap is: it
//       was put there before the lock was released under which it came back, and only a merge with
//       its left neighbour, which is cold, could take it out.
//   G2. So under that lock a key behind the node is in the gap unless the top layer has a node
//       between the two.
// Threads that need leaves of different gaps don't wait for each other, nor for the background: the
// key of a lookup rarely lies in the gap that the background works in. The locks of resumption.h
// come after the nodes' locks. No lock is held during a wait for a grace period.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <optional>

#include "index/sptree/leaf_at.h"
#include "index/sptree/sptree.h"

namespace perdix::index::sptree {
namespace {

/// Leaves whose chains are asked for at a time: they use a fraction of the nearest cache.
constexpr unsigned kAhead = 8;

[[noreturn]] void throw_corrupt(const pool::PoolCore& pool, pm::Offset leaf, const char* what) {
  throw Error(Errc::corrupt, fmt::format("{}: the leaf of an index at offset {:#x} {}; restore the "
                                         "pool from a copy",
                                         pool.path().string(), leaf, what));
}

}  // namespace

// --- All leaves ----------------------------------------------------------------------------------

/// Makes the first leaf warm, and sees to the others.
template <class K>
void WordTree<K>::start_resuming(bool in_background) {
  Leaf& first = leaf_at(pool(), pm::load(root().first));
  if (pm::load(first.low) != 0) throw_corrupt(pool(), pool().offset(&first), "should be the first");
  if (has_log()) resumption_.for_each_closing([&](auto& closing) { log().add(closing.chain); });
  {
    const epoch::Guard guard;
    top_.set_head(make_warm(first, NodeBounds::least()));
  }
  if (successor_of(first) == pm::kNull) {
    finish_resuming();
    if (has_log()) buffers_.tidy_up(Upkeep{*this});
    return;
  }
  if (in_background)
    resumption_.start_thread([this](const std::stop_token& stop) { resume(stop); });
}

/// Makes all leaves warm, unless it is told to stop.
template <class K>
void WordTree<K>::resume(const std::stop_token& stop) {
  K position(NodeBounds::view(NodeBounds::least()));
  for (unsigned i = 0; !stop.stop_requested(); ++i) {
    const epoch::Guard guard;
    if (i % kAhead == 0) prefetch_chains(position);
    warm(position);
    const auto high = read_node_from(top_.locate(position), position, [](const Node& node) {
      return node.high.load(std::memory_order_acquire);
    });
    if (NodeBounds::is_open(high)) {
      finish_resuming();
      break;
    }
    position = NodeBounds::after(high);
  }
  if (resumption_.done() && has_log()) buffers_.tidy_up(Upkeep{*this});  // no guard is held
}

/// Makes some leaves warm, in the order of their keys, from where it stopped the last time: so a
/// log that is written to comes to be resumed, whatever becomes of the thread. The caller holds the
/// maintenance's lock, and no other.
template <class K>
void WordTree<K>::resume_some(unsigned leaves) {
  for (unsigned i = 0; i < leaves && !resumption_.done(); ++i) {
    const epoch::Guard guard;
    const Key position = resumed_until_;
    warm(position);
    const auto high = read_node_from(top_.locate(position), position, [](const Node& node) {
      return node.high.load(std::memory_order_acquire);
    });
    pm::on_step("sptree: resume one leaf for the log");
    if (NodeBounds::is_open(high)) return finish_resuming();
    resumed_until_ = NodeBounds::after(high);
  }
}

/// Brings the chains of the next leaves in the key's gap into the cache, if the key is in one. The
/// caller holds a guard, so leaves behind the gap may be looked at, too: they may be merged away,
/// but their links lead on. Throws corrupt, as it would when the damaged leaf's turn came.
template <class K>
void WordTree<K>::prefetch_chains(Key key) {
  if (!has_log()) return;
  const LockedNode left = lock_before_gap(key);
  if (!left) return;
  std::array<wal::Position, kAhead> chains{};
  const Leaf* leaf = left->leaf();
  for (wal::Position& chain : chains) {
    leaf = next_leaf(*leaf);
    if (leaf == nullptr) break;
    chain = log().surviving(sptree::owner_of(pool().offset(leaf)));
  }
  log().prefetch(chains);
}

/// Nothing is cold any more: the log may forget what was before the restart.
template <class K>
void WordTree<K>::finish_resuming() {
  hints_.grow();
  const std::lock_guard lock(resumption_.finishing);
  if (resumption_.done()) return;
  pm::on_step("sptree: all leaves are warm");
  if (has_log()) log().resumed();
  resumption_.set_done();
}

/// For calls that need all leaves: waits for the background, which would only be slower if it
/// shared the work, and does what it doesn't.
template <class K>
void WordTree<K>::require_resumed() const {
  resumption_.wait_for_thread();
  if (!resumption_.done()) const_cast<WordTree*>(this)->resume(std::stop_token());
}

/// For calls that nothing may run beside: the thread in the background has nothing left to do,
/// either.
template <class K>
void WordTree<K>::require_quiet() const {
  require_resumed();
  resumption_.wait_for_end();
}

// --- One leaf ------------------------------------------------------------------------------------

/// Makes the key's leaf warm. The caller holds a guard and no lock.
template <class K>
void WordTree<K>::warm(Key key) {
  while (const LockedNode left = lock_before_gap(key)) warm_one(*left, key);
}

/// Locks the node to the left of the gap in which the key's leaf is; none if the leaf is warm. That
/// a node before the key has no `next` does not tell: the key's leaf may be warm, or cold, behind
/// this gap and others. So the top layer is asked, and once more under the lock (G2).
template <class K>
auto WordTree<K>::lock_before_gap(Key key) -> LockedNode {
  for (Node* node = top_.locate_surely(key);;) {
    const Version version = node->lock.read_begin();
    if (Node::Lock::obsolete(version)) {
      node = top_.locate_surely(key);
    } else if (node->covers(key)) {
      if (node->lock.read_validate(version)) return LockedNode(nullptr);
    } else if (Node* next = nodes_.next_of(*node); next != nullptr) {
      if (node->lock.read_validate(version)) node = next;
    } else if (node->lock.try_upgrade(version)) {
      pm::on_step("sptree: lock a gap");
      LockedNode left(node);
      node = top_.locate_surely(key);
      if (!(NodeBounds::view(left->low) < NodeBounds::view(node->low))) return left;
      pm::on_step("sptree: a warm leaf lies before the key");
    }
  }
}

/// Makes the key's leaf warm, or one that must be before it: a leaf to the left of it with a stale
/// chain, which speaks of pairs that may have moved here (L7).
template <class K>
void WordTree<K>::warm_one(Node& left, Key key) {
  const auto high = left.high.load(std::memory_order_relaxed);
  Leaf* const first = next_leaf(*left.leaf());
  if (first == nullptr || low_of(*first) != NodeBounds::after(high))
    throw_corrupt(pool(), pool().offset(left.leaf()), "is not followed by the one it was");
  Leaf* leaf = &last_cold(*first, key, false);
  while (has_log() && leaf != first) {
    Leaf& before = last_cold(*first, low_of(*leaf), true);
    const auto survivor = survivor_of(pool(), keys(), log(), before);
    if (!survivor || !survivor->replay.stale) break;
    pm::on_step("sptree: a stale chain at the left comes first");
    leaf = &before;
  }
  if (leaf != first) {
    const auto low = nodes_.make_bound(low_of(*leaf));
    try {
      make_warm(*leaf, low);
    } catch (...) {
      nodes_.release_bound(low);
      throw;
    }
  } else {
    Node* node = make_warm(*leaf, NodeBounds::successor(high));
    nodes_.set_next(left, node);
  }
}

/// A cold leaf's low bound. Throws corrupt: nobody has looked at the leaf yet, and the DRAM layers
/// hold bounds of the size of a key.
template <class K>
auto WordTree<K>::low_of(const Leaf& leaf) const -> Key {
  const Key low = keys().view(pm::load(leaf.low));
  if constexpr (!Keys::kInline) {
    if (low.size() > art::kMaxKeySize)
      throw_corrupt(pool(), pool().offset(&leaf), "begins at a bound that is longer than a key");
  }
  return low;
}

/// The last leaf of a gap that begins at or below the key, or only below it. `first` is the gap's
/// first, and does.
template <class K>
Leaf& WordTree<K>::last_cold(Leaf& first, Key key, bool strictly_below) const {
  const auto reached = [&](const Leaf& leaf) {
    return strictly_below ? low_of(leaf) < key : !(key < low_of(leaf));
  };
  Leaf* leaf = &first;
  if (Leaf* next = next_leaf(first); next == nullptr || !reached(*next)) return first;
  if (const auto near = backup_->last(key, strictly_below)) {
    Leaf& candidate = leaf_at(pool(), *near);
    if (!reached(candidate)) throw_corrupt(pool(), *near, "is not where the backup has it");
    if (low_of(first) < low_of(candidate)) leaf = &candidate;
  }
  for (;;) {
    Leaf* next = next_leaf(*leaf);
    if (next == nullptr || !reached(*next)) return *leaf;
    leaf = next;
  }
}

/// The successor of a leaf that nobody changes meanwhile; nullptr if there is none. Its low bound
/// is greater, so that a damaged list can't lead round in a circle.
template <class K>
Leaf* WordTree<K>::next_leaf(const Leaf& leaf) const {
  const pm::Offset offset = successor_of(leaf);
  if (offset == pm::kNull) return nullptr;
  Leaf& next = leaf_at(pool(), offset);
  if (!(low_of(leaf) < low_of(next)))
    throw_corrupt(pool(), offset, "begins no further than its predecessor");
  return &next;
}

/// Makes the middle node of a cold leaf, and its write buffer, known to all. `low` is its low
/// bound, which the node owns from now on. If it throws, the leaf is as cold as before. The caller
/// holds the lock of the node before the gap.
template <class K>
auto WordTree<K>::make_warm(Leaf& leaf, typename NodeBounds::Low low) -> Node* {
  std::optional<Survivor> survivor;
  if (has_log()) survivor = survivor_of(pool(), keys(), log(), leaf);
  // Or there is no budget for its buffer, and none is needed.
  const bool beyond = buffers_.budget_is_used_up();
  if (survivor &&
      (survivor->replay.stale || (beyond && without_slot(survivor->replay, leaf) == 0))) {
    pm::on_step("sptree: close a chain");
    close_chain(leaf, *survivor);
    survivor.reset();
  }
  const bool is_listed = pm::load(leaf.low) != 0;  // all leaves but the first (L1, L2)
  std::uint32_t buffer = 0;
  Node* node = new_cold_node(leaf, low);
  try {
    if (survivor) buffer = buffer_for(*node, *survivor);
    if (is_listed && !top_.add(*node))
      throw_corrupt(pool(), pool().offset(&leaf), "begins where another does");
  } catch (...) {
    if (survivor && survivor->adoption) log().cancel_adoption(*survivor->adoption);
    if (buffer != 0) buffers_.release(buffer);
    delete_cold_node(node);
    throw;
  }
  pm::on_step("sptree: make a leaf warm");
  const LockedNode locked(node);
  SlotSet slots = slots_of(leaf);
  if (survivor) {
    pm::on_step("sptree: adopt a chain");
    adopt(*node, *survivor, buffer);
    slots = slots - survivor->replay.erased;
  }
  fill_filter(*node, slots);
  count_pairs(*node);
  if (is_listed) backup_.add(*node);
  hints_.note(*node);
  return node;
}

/// The middle node of a cold leaf, locked until it is complete, which nobody knows yet.
template <class K>
auto WordTree<K>::new_cold_node(Leaf& leaf, typename NodeBounds::Low low) -> Node* {
  const Leaf* following = next_leaf(leaf);
  Node* next = following == nullptr ? nullptr : top_.find(low_of(*following));
  const bool makes_bound = following != nullptr && next == nullptr;
  auto high = NodeBounds::open();
  if (following != nullptr) {
    prefetch_pairs(*following);  // the background needs it next
    high = NodeBounds::end_at(next != nullptr ? next->low : nodes_.make_bound(low_of(*following)));
  }
  try {
    Node* node = nodes_.make(leaf, low, high);
    nodes_.set_next(*node, next);
    node->lock.lock();
    return node;
  } catch (...) {
    if (makes_bound) nodes_.release_bound(NodeBounds::successor(high));
    throw;
  }
}

/// Undoes new_cold_node().
template <class K>
void WordTree<K>::delete_cold_node(Node* node) {
  const auto high = node->high.load(std::memory_order_relaxed);
  const bool made_bound = nodes_.next_of(*node) == nullptr && !NodeBounds::is_open(high);
  if (made_bound) nodes_.release_bound(NodeBounds::successor(high));
  nodes_.release(node);
}

// --- What the log says of it ---------------------------------------------------------------------

/// A buffer for the chain, and what else must not fail later.
template <class K>
std::uint32_t WordTree<K>::buffer_for(const Node& node, Survivor& survivor) {
  const Replay& chain = survivor.replay;
  if (chain.pairs.size() + chain.erased.count() > kBufferPairs)
    throw_corrupt(pool(), pool().offset(node.leaf()), "has too much in the log");
  const unsigned sure = sptree::without_slot(chain, *node.leaf());
  if (sure > kBufferPairs)
    throw_corrupt(pool(), pool().offset(node.leaf()), "has no room for its log");
  const std::uint32_t number = buffers_.acquire_beyond_budget(buffers_.own_number(node));
  try {
    survivor.adoption =
        log().prepare_adoption(survivor.owner, survivor.head, static_cast<std::uint8_t>(sure));
  } catch (...) {
    buffers_.release(number);
    throw;
  }
  return number;
}

/// Gives a node the buffer, with what the chain says.
template <class K>
void WordTree<K>::adopt(Node& node, const Survivor& survivor, std::uint32_t number) {
  const Replay& chain = survivor.replay;
  Buffer& buffer = buffers_.at(number);
  buffers_.give(node, number);
  log().adopt(buffer, *survivor.adoption);
  buffer.records = static_cast<std::uint8_t>(std::min(chain.records, kChainRecords));
  buffer.set_erased(chain.erased);
  for (const auto& [key, value] : chain.pairs) buffer.push(key, value, Keys::hash16_of_word(key));
}

/// Ends a chain whose pairs had reached the leaf, or the next one, when its END was lost; or for
/// which there is no buffer. Pairs that had not reached the leaf, be it since a split was
/// interrupted, do now.
template <class K>
void WordTree<K>::close_chain(Leaf& leaf, const Survivor& survivor) {
  const Replay& chain = survivor.replay;
  auto& [lock, closing] = resumption_.closing();
  const std::lock_guard closes(lock);
  if (chain.pairs.size() > kBufferPairs)
    throw_corrupt(pool(), pool().offset(&leaf), "has too much in the log");
  const wal::Log::Adoption adoption = log().prepare_adoption(survivor.owner, survivor.head);
  const Placed placed = leaves_.place(leaf, slots_of(leaf),
                                      static_cast<unsigned>(chain.pairs.size()), [&](unsigned i) {
                                        return Pair{chain.pairs[i].first, chain.pairs[i].second};
                                      });
  if (!placed.complete) {
    log().cancel_adoption(adoption);
    throw_corrupt(pool(), pool().offset(&leaf), "has no room for its log");
  }
  publish_slots(pm(), leaf, placed.taken - chain.erased);  // before the END
  log().adopt(closing, adoption);
  log().end(closing);
}

/// Adds the node's pairs to the statistics.
template <class K>
void WordTree<K>::count_pairs(const Node& node) {
  nodes_.count(1);
  leaves_.count_bytes(keys().footprint(pm::load(node.leaf()->low)));
  leaves_.count_pairs(buffers_.count(node));
  if (!leaves_.all_inline()) {
    for (const unsigned slot : node.slots()) {
      const Pair& pair = pair_at(*node.leaf(), slot);
      leaves_.count_blobs(pm::load(pair.key), pm::load(pair.value), +1);
    }
    const Buffer* buffer = buffers_.of(node);
    for (unsigned i = 0; buffer != nullptr && i < buffer->size(); ++i)
      leaves_.count_blobs(buffer->key(i), buffer->value(i), +1);
  }
}

template void WordTree<std::uint64_t>::start_resuming(bool);
template void WordTree<std::uint64_t>::require_resumed() const;
template void WordTree<std::uint64_t>::require_quiet() const;
template void WordTree<std::uint64_t>::warm(Key);
template void WordTree<std::uint64_t>::resume_some(unsigned);
template void WordTree<std::string>::start_resuming(bool);
template void WordTree<std::string>::require_resumed() const;
template void WordTree<std::string>::require_quiet() const;
template void WordTree<std::string>::warm(Key);
template void WordTree<std::string>::resume_some(unsigned);

}  // namespace perdix::index::sptree
