#include "index/sptree/resumer.h"

#include <algorithm>
#include <array>

#include "index/sptree/leaf_at.h"

namespace perdix::detail::index::sptree {
namespace {

/// Leaves whose chains are prefetched at a time: they use a fraction of the nearest cache.
constexpr unsigned kAhead = 8;

}  // namespace

// --- All leaves ----------------------------------------------------------------------------------

template <class K>
void Resumer<K>::start(pm::Offset first_leaf, bool in_background) {
  Leaf& first = leaf_at(parts_.pool, first_leaf);
  if (pm::load(first.low) != 0)
    throw_bad_leaf(parts_.pool, parts_.pool.offset(&first), "should be the first");
  if (has_log()) resumption_.for_each_closing([&](auto& closing) { log().add(closing.chain); });
  {
    const epoch::Guard guard;
    parts_.top.set_head(make_warm(first, NodeBounds::least()));
  }
  if (successor_of(first) == pm::kNull) {
    finish();
    all_warm_();
    return;
  }
  if (in_background)
    resumption_.start_thread([this](const std::stop_token& stop) { resume(stop); });
}

/// Makes all leaves warm, unless it is told to stop.
template <class K>
void Resumer<K>::resume(const std::stop_token& stop) {
  K position(NodeBounds::view(NodeBounds::least()));
  for (unsigned i = 0; !stop.stop_requested(); ++i) {
    const epoch::Guard guard;
    if (i % kAhead == 0) prefetch_chains(position);
    const High high = warm(position);
    if (NodeBounds::is_open(high)) {
      finish();
      break;
    }
    position = NodeBounds::after(high);
  }
  if (resumption_.done()) all_warm_();  // no guard is held
}

template <class K>
void Resumer<K>::resume_some(unsigned leaves) {
  for (unsigned i = 0; i < leaves && !resumption_.done(); ++i) {
    const epoch::Guard guard;
    const Key position = resumed_until_;
    const High high = warm(position);
    pm::on_step("sptree: resume one leaf for the log");
    if (NodeBounds::is_open(high)) return finish();
    resumed_until_ = NodeBounds::after(high);
  }
}

/// Prefetches the chains of the next leaves in the key's cold range, if the key is in one. The
/// caller holds a guard, so leaves behind the range may be read, too: they may be merged away, but
/// their links lead on. Throws corrupt where making the damaged leaf warm would.
template <class K>
void Resumer<K>::prefetch_chains(Key key) {
  if (!has_log()) return;
  High high{};
  const LockedNode left = lock_before_cold_range(key, high);
  if (!left) return;
  std::array<wal::Position, kAhead> chains{};
  const Leaf* leaf = left->leaf();
  for (wal::Position& chain : chains) {
    leaf = next_leaf(*leaf);
    if (leaf == nullptr) break;
    chain = log().surviving(sptree::owner_of(parts_.pool.offset(leaf)));
  }
  log().prefetch(chains);
}

/// Called when no leaf is cold any more: tells the log, which may then free the records from before
/// the restart.
template <class K>
void Resumer<K>::finish() {
  parts_.hints.grow();
  const std::lock_guard lock(resumption_.finishing);
  if (resumption_.done()) return;
  pm::on_step("sptree: all leaves are warm");
  if (has_log()) log().resumed();
  resumption_.set_done();
}

// --- One leaf ------------------------------------------------------------------------------------

/// Locks the node at the left of the cold range that has the key's leaf. Returns none if the leaf
/// is warm: then `high` becomes the end of its range. A node before the key that has no `next`
/// proves nothing: the key's leaf may be warm, or cold and behind this cold range and others. So
/// the top layer is asked, and once more under the lock (C2).
template <class K>
auto Resumer<K>::lock_before_cold_range(Key key, High& high) -> LockedNode {
  for (Node* node = parts_.top.locate_surely(key);;) {
    const Version version = node->lock.read_begin();
    if (Node::Lock::obsolete(version)) {
      node = parts_.top.locate_surely(key);
    } else if (node->covers(key)) {
      high = node->high.load(std::memory_order_acquire);
      if (node->lock.read_validate(version)) return LockedNode(nullptr);
    } else if (Node* next = parts_.nodes.next_of(*node); next != nullptr) {
      if (node->lock.read_validate(version)) node = next;
    } else if (node->lock.try_upgrade(version)) {
      pm::on_step("sptree: lock a cold range");
      LockedNode left(node);
      node = parts_.top.locate_surely(key);
      if (!(NodeBounds::view(left->low) < NodeBounds::view(node->low))) return left;
      pm::on_step("sptree: a warm leaf lies before the key");
    }
  }
}

/// Makes the key's leaf warm, or a leaf that must be made warm before: one at its left with a stale
/// chain, which may name pairs that have moved to the key's leaf (L7).
template <class K>
void Resumer<K>::warm_one(Node& left, Key key) {
  const High high = left.high.load(std::memory_order_relaxed);
  Leaf* const first = next_leaf(*left.leaf());
  if (first == nullptr || low_of(*first) != NodeBounds::after(high))
    throw_bad_leaf(parts_.pool, parts_.pool.offset(left.leaf()),
                   "is not followed by the one it was");
  Leaf* leaf = &last_cold(*first, key, false);
  while (has_log() && leaf != first) {
    Leaf& before = last_cold(*first, low_of(*leaf), true);
    const auto survivor = survivor_of(parts_.pool, parts_.leaves.keys(), log(), before);
    if (!survivor || !survivor->replay.stale) break;
    pm::on_step("sptree: a stale chain at the left comes first");
    leaf = &before;
  }
  if (leaf != first) {
    const auto low = parts_.nodes.make_bound(low_of(*leaf));
    try {
      make_warm(*leaf, low);
    } catch (...) {
      parts_.nodes.release_bound(low);
      throw;
    }
  } else {
    Node* node = make_warm(*leaf, NodeBounds::successor(high));
    parts_.nodes.set_next(left, node);
  }
}

/// A cold leaf's low bound. Throws corrupt if it is longer than a key: the leaf was not validated
/// yet, and the DRAM layers cannot hold such a bound.
template <class K>
auto Resumer<K>::low_of(const Leaf& leaf) const -> Key {
  const Key low = parts_.leaves.keys().view(pm::load(leaf.low));
  if constexpr (!Keys::kInline) {
    if (low.size() > art::kMaxKeySize)
      throw_bad_leaf(parts_.pool, parts_.pool.offset(&leaf),
                     "begins at a bound that is longer than a key");
  }
  return low;
}

/// The last leaf of a cold range that begins at or below the key, or only below it. `first`, the
/// first leaf of the range, does.
template <class K>
Leaf& Resumer<K>::last_cold(Leaf& first, Key key, bool strictly_below) const {
  const auto reached = [&](const Leaf& leaf) {
    return strictly_below ? low_of(leaf) < key : !(key < low_of(leaf));
  };
  Leaf* leaf = &first;
  if (Leaf* next = next_leaf(first); next == nullptr || !reached(*next)) return first;
  if (const auto near = parts_.backup->last(key, strictly_below)) {
    Leaf& candidate = leaf_at(parts_.pool, near->second);
    if (!reached(candidate))
      throw_bad_leaf(parts_.pool, near->second, "is not where the backup has it");
    if (low_of(first) < low_of(candidate)) leaf = &candidate;
  }
  for (;;) {
    Leaf* next = next_leaf(*leaf);
    if (next == nullptr || !reached(*next)) return *leaf;
    leaf = next;
  }
}

/// The successor of a leaf that no thread changes during the call; nullptr if there is none. Throws
/// corrupt if its low bound is not greater, so that a damaged list cannot lead round in a circle.
template <class K>
Leaf* Resumer<K>::next_leaf(const Leaf& leaf) const {
  const pm::Offset offset = successor_of(leaf);
  if (offset == pm::kNull) return nullptr;
  Leaf& next = leaf_at(parts_.pool, offset);
  if (!(low_of(leaf) < low_of(next)))
    throw_bad_leaf(parts_.pool, offset, "begins no further than its predecessor");
  return &next;
}

/// Gives a cold leaf its middle node and its write buffer, and adds the node to the top layer.
/// `low` is the leaf's low bound, which the node owns from now on. If it throws, the leaf is still
/// cold and the caller owns `low`. The caller holds the lock of the node before the cold range.
template <class K>
auto Resumer<K>::make_warm(Leaf& leaf, Low low) -> Node* {
  std::optional<Survivor> survivor;
  if (has_log()) survivor = survivor_of(parts_.pool, parts_.leaves.keys(), log(), leaf);
  // A chain is closed if it is stale, and also if the budget has no buffer for it and the leaf has
  // room for all of its pairs.
  const bool beyond = parts_.buffers.budget_is_used_up();
  if (survivor &&
      (survivor->replay.stale || (beyond && pairs_without_slot(survivor->replay, leaf) == 0))) {
    pm::on_step("sptree: close a chain");
    close_chain(leaf, *survivor);
    survivor.reset();
  }
  const bool is_listed = pm::load(leaf.low) != 0;  // all leaves but the first (L1, L2)
  std::uint32_t buffer = 0;
  Node* node = new_cold_node(leaf, low);
  try {
    if (survivor) buffer = buffer_for(*node, *survivor);
    if (is_listed && !parts_.top.add(*node))
      throw_bad_leaf(parts_.pool, parts_.pool.offset(&leaf), "begins where another does");
  } catch (...) {
    if (survivor && survivor->adoption) log().cancel_adoption(*survivor->adoption);
    if (buffer != 0) parts_.buffers.release(buffer);
    delete_cold_node(node);
    throw;
  }
  pm::on_step("sptree: make a leaf warm");
  const LockedNode locked(node);
  SlotSet slots = slots_of(leaf);
  if (survivor) {
    pm::on_step("sptree: adopt a chain");
    give_buffer(*node, *survivor, buffer);
    slots = slots - survivor->replay.erased;
  }
  parts_.nodes.fill_filter(*node, slots);
  count_pairs(*node);
  if (is_listed) parts_.backup.add(*node);
  parts_.hints.note(*node);
  return node;
}

/// Makes the middle node of a cold leaf, which no other thread knows yet. It is locked: the caller
/// unlocks it when it is complete.
template <class K>
auto Resumer<K>::new_cold_node(Leaf& leaf, Low low) -> Node* {
  const Leaf* following = next_leaf(leaf);
  Node* next = following == nullptr ? nullptr : parts_.top.find(low_of(*following));
  const bool makes_bound = following != nullptr && next == nullptr;
  auto high = NodeBounds::open();
  if (following != nullptr) {
    prefetch_pairs(*following);  // the background makes it warm next
    high = NodeBounds::end_at(next != nullptr ? next->low
                                              : parts_.nodes.make_bound(low_of(*following)));
  }
  try {
    Node* node = parts_.nodes.make(leaf, low, high);
    parts_.nodes.set_next(*node, next);
    node->lock.lock();
    return node;
  } catch (...) {
    if (makes_bound) parts_.nodes.release_bound(NodeBounds::successor(high));
    throw;
  }
}

/// Undoes new_cold_node().
template <class K>
void Resumer<K>::delete_cold_node(Node* node) {
  const auto high = node->high.load(std::memory_order_relaxed);
  const bool made_bound = parts_.nodes.next_of(*node) == nullptr && !NodeBounds::is_open(high);
  if (made_bound) parts_.nodes.release_bound(NodeBounds::successor(high));
  parts_.nodes.release(node);
}

// --- The chain of a leaf -------------------------------------------------------------------------

/// Acquires a buffer for a chain, and prepares the chain's adoption, so that give_buffer() cannot
/// fail. Returns the number of the buffer. Throws corrupt and bad_alloc.
template <class K>
std::uint32_t Resumer<K>::buffer_for(const Node& node, Survivor& survivor) {
  const Replay& chain = survivor.replay;
  if (chain.pairs.size() + chain.erased.count() > kBufferPairs)
    throw_bad_leaf(parts_.pool, parts_.pool.offset(node.leaf()), "has too much in the log");
  const unsigned sure = pairs_without_slot(chain, *node.leaf());
  if (sure > kBufferPairs)
    throw_bad_leaf(parts_.pool, parts_.pool.offset(node.leaf()), "has no room for its log");
  const std::uint32_t number =
      parts_.buffers.acquire_beyond_budget(parts_.buffers.preferred_number(node));
  try {
    survivor.adoption =
        log().prepare_adoption(survivor.owner, survivor.head, static_cast<std::uint8_t>(sure));
  } catch (...) {
    parts_.buffers.release(number);
    throw;
  }
  return number;
}

/// Gives a node the buffer, continues the chain in it, and fills it with the pairs of the chain.
template <class K>
void Resumer<K>::give_buffer(Node& node, const Survivor& survivor, std::uint32_t number) {
  const Replay& chain = survivor.replay;
  Buffer& buffer = parts_.buffers.at(number);
  parts_.buffers.give_buffer(node, number);
  log().adopt(buffer, *survivor.adoption);
  buffer.records = static_cast<std::uint8_t>(std::min(chain.records, kChainRecords));
  buffer.set_erased(chain.erased);
  for (const auto& [key, value] : chain.pairs) buffer.push(key, value, Keys::hash16_of_word(key));
}

/// Ends a chain that gets no buffer: a stale one, whose pairs have reached the leaf or the next
/// one, or one for which there is no budget. Pairs that are in neither leaf, for example because a
/// crash has interrupted a split, are added to the leaf before.
template <class K>
void Resumer<K>::close_chain(Leaf& leaf, const Survivor& survivor) {
  const Replay& chain = survivor.replay;
  auto& [lock, closing] = resumption_.closing();
  const std::lock_guard closes(lock);
  if (chain.pairs.size() > kBufferPairs)
    throw_bad_leaf(parts_.pool, parts_.pool.offset(&leaf), "has too much in the log");
  const wal::Log::Adoption adoption = log().prepare_adoption(survivor.owner, survivor.head);
  const Placed placed = parts_.leaves.place(
      leaf, slots_of(leaf), static_cast<unsigned>(chain.pairs.size()), [&](unsigned i) {
        return Pair{chain.pairs[i].first, chain.pairs[i].second};
      });
  if (!placed.complete) {
    log().cancel_adoption(adoption);
    throw_bad_leaf(parts_.pool, parts_.pool.offset(&leaf), "has no room for its log");
  }
  publish_slots(pm(), leaf, placed.taken - chain.erased);  // before the END
  log().adopt(closing, adoption);
  log().end(closing);
}

/// Adds the node, its pairs and their strings to the statistics.
template <class K>
void Resumer<K>::count_pairs(const Node& node) {
  parts_.nodes.count(1);
  parts_.leaves.count_bytes(parts_.leaves.keys().footprint(pm::load(node.leaf()->low)));
  parts_.leaves.count_pairs(parts_.buffers.count(node));
  if (!parts_.leaves.all_inline()) {
    for (const unsigned slot : node.slots()) {
      const Pair& pair = pair_at(*node.leaf(), slot);
      parts_.leaves.count_blobs(pm::load(pair.key), pm::load(pair.value), +1);
    }
    const Buffer* buffer = parts_.buffers.of(node);
    for (unsigned i = 0; buffer != nullptr && i < buffer->size(); ++i)
      parts_.leaves.count_blobs(buffer->key(i), buffer->value(i), +1);
  }
}

template class Resumer<std::uint64_t>;
template class Resumer<std::string>;

}  // namespace perdix::detail::index::sptree
