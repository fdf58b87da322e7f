#include "index/sptree/sptree.h"

#include <algorithm>

#include "alloc/session.h"
#include "index/common/limits.h"
#include "index/common/retry.h"
#include "index/sptree/check.h"
#include "index/sptree/destroy.h"
#include "index/sptree/get_many.h"
#include "index/sptree/recovery.h"
#include "index/sptree/scan.h"
#include "util/hash.h"

namespace perdix::detail::index::sptree {

template <class K>
[[gnu::flatten]] auto WordTree<K>::lock_node(Key key, Hash16 hash, bool may_add) -> LockedNode {
  prefetch_by_hint(key, hash);  // while the top layer is searched
  Node* node = top_.locate(key);
  prefetch_node(node, hash);
  for (unsigned steps = 0;;) {
    const Version version = node->lock.read_begin();
    if (Node::Lock::obsolete(version)) {
      pm::on_step("sptree: a writer meets a node that is gone");
      node = top_.locate(key);
      continue;
    }
    if (!node->covers(key)) {
      node = go_right(node, version, key, steps);
      continue;
    }
    pm::on_step("sptree: lock a node");
    prefetch_for_write(*node, hash, may_add);
    if (node->lock.try_upgrade(version)) return LockedNode(node);
  }
}

/// Asks for the lines that a write needs of the key's node, if there is a hint.
template <class K>
void WordTree<K>::prefetch_by_hint(Key key, Hash16 hash) const {
  if (const Node* node = hints_.of(key)) prefetch_node(node, hash);
}

/// Asks for the lines of a node that a write needs, and of the buffer that the node has unless
/// something kept it from getting that one. Reads nothing: there may be no node any more.
template <class K>
void WordTree<K>::prefetch_node(const Node* node, Hash16 hash) const {
  __builtin_prefetch(node, 1);
  node->prefetch_fingerprints(hash);
  if (const std::uint32_t number = buffers_.preferred_number(*node)) buffers_.prefetch(number);
}

/// Asks for the lines that a write goes to, so that they are on their way while the fingerprints
/// are. Those of a new pair only where the filter says that the key is new: a pair that is present
/// stays where it is, and the line of a free slot would be read for nothing.
template <class K>
void WordTree<K>::prefetch_for_write(const Node& node, Hash16 hash, bool may_add) const {
  if (const Buffer* buffer = buffers_.of(node)) return buffer->prefetch_for_change();
  if (!may_add || node.bloom.may_contain(hash)) return;
  const Leaf& leaf = *node.leaf();
  __builtin_prefetch(&leaf, 1);
  __builtin_prefetch(&pair_at(leaf, node.free_slot_near(hash) % kLeafPairs), 1);
}

// Inlined as a whole (flatten), except rare cases: the fewer instructions a lookup takes, the more
// of the next one the processor can begin while this one waits for memory.
template <class K>
[[gnu::flatten]] std::optional<Word> WordTree<K>::find_word(Key key) const {
  const Hash16 hash = Keys::hash16(key);
  const Found found =
      read_node(key, hash, [&](const Node& node) { return buffers_.find(node, key, hash); });
  return found.present() ? std::optional(found.value) : std::nullopt;
}

template <class K>
[[gnu::flatten]] bool WordTree<K>::find(Key key, std::uint64_t& value) const {
  const epoch::Guard guard;
  const std::optional<Word> word = find_word(key);
  if (word) value = *word;
  return word.has_value();
}

template <class K>
[[gnu::flatten]] bool WordTree<K>::contains(Key key) const {
  const Hash16 hash = Keys::hash16(key);
  const epoch::Guard guard;
  return read_node(key, hash, [&](const Node& node) { return buffers_.find(node, key, hash); })
      .present();
}

template <class K>
bool WordTree<K>::write(Key key, NewValue value, Mode mode, const NewValue* expected) {
  check_key(key);
  const auto attempt = [&]() __attribute__((always_inline)) {
    return try_write(key, value, mode, expected);
  };
  return retry_when_full(pool(), attempt);
}

/// Gives back space that the log no longer needs.
template <class K>
bool WordTree<K>::reclaim_space() noexcept {
  try {
    return has_log() && buffers_.give_space_back(Upkeep{*this});
  } catch (const std::exception&) {
    return false;  // a call that needs the damaged part throws the error
  }
}

template <class K>
[[gnu::always_inline]] inline bool WordTree<K>::try_write(Key key, NewValue value, Mode mode,
                                                          const NewValue* expected) {
  const Hash16 hash = Keys::hash16(key);
  if (buffers_.upkeep_due()) buffers_.keep_short(Upkeep{*this});
  const epoch::Guard guard;
  for (;;) {
    const LockedNode node = lock_node(key, hash, mode != Mode::update);
    const Found found = buffers_.find(*node, key, hash);
    if (found.present()) {
      if (mode == Mode::insert || !value_is(found, expected)) return false;
      if (found.buffered >= 0 && !buffers_.can_grow(*buffers_.of(*node))) {
        if (!buffers_.merge(*node)) structure_.split(*node, key);
        buffers_.shed(*node);
        continue;
      }
      replace(*node, found, value);
      return true;
    }
    if (mode == Mode::update) return false;
    if (add(*node, key, value, hash)) return true;
    structure_.split(*node, key);
  }
}

/// Adds a pair, to the write buffer if there is one; false if the node must be split before.
template <class K>
bool WordTree<K>::add(Node& node, Key key, NewValue value, Hash16 hash) {
  Buffer* const buffer = buffers_.for_change(node);
  const unsigned slot = buffer != nullptr ? 0 : buffers_.free_slot_of(node, hash);
  if (slot == kLeafPairs || (buffer == nullptr && !buffers_.leaf_may_take(node))) return false;
  // Counted before the stores: an atomic addition waits for those that came before it, and they go
  // to lines that are in no cache.
  leaves_.count_pairs(1);
  bool added = true;
  try {
    if (buffer != nullptr) {
      added = buffers_.add(node, *buffer, key, value, hash);
    } else {
      leaves_.add(*node.leaf(), slot, key, value, hash);
      node.add(slot, hash);
    }
  } catch (...) {
    leaves_.count_pairs(-1);
    throw;
  }
  if (!added) leaves_.count_pairs(-1);
  return added;
}

template <class K>
[[gnu::always_inline]] inline void WordTree<K>::replace(Node& node, const Found& found,
                                                        NewValue value) {
  if (found.slot >= 0) {
    leaves_.replace(*node.leaf(), static_cast<unsigned>(found.slot), value);
  } else {
    buffers_.replace(*buffers_.of(node), static_cast<unsigned>(found.buffered), value);
  }
}

template <class K>
[[gnu::always_inline]] inline void WordTree<K>::remove(Node& node, const Found& found) {
  const auto slot = static_cast<unsigned>(found.slot);
  leaves_.count_pairs(-1);  // before the stores, as in add()
  try {
    if (found.slot < 0)
      return buffers_.remove(*buffers_.of(node), static_cast<unsigned>(found.buffered));
    Buffer* buffer = buffers_.for_change(node);
    const bool done =
        buffer != nullptr && !buffer->full() && buffers_.add_tombstone(node, *buffer, slot);
    if (done) return;
    leaves_.remove(*node.leaf(), slot);
    node.remove(slot);
  } catch (...) {
    leaves_.count_pairs(1);
    throw;
  }
}

/// Keeps the filter selective: erased keys stay in it, and a fresh filter has at most kBitsPerKey
/// bits per key.
template <class K>
void WordTree<K>::shed_stale_filter(Node& node) {
  constexpr unsigned kTolerated = 48;
  const unsigned fresh = Bloom::kBitsPerKey * node.count();
  if (node.bloom.bits_set() > fresh + kTolerated) nodes_.fill_filter(node, node.slots());
}

template <class K>
bool WordTree<K>::erase(Key key, const NewValue* expected) {
  check_key(key);
  const Hash16 hash = Keys::hash16(key);
  if (buffers_.upkeep_due()) buffers_.keep_short(Upkeep{*this});
  const epoch::Guard guard;
  for (;;) {
    LockedNode node = lock_node(key, hash, false);
    // At the same time as the line of the pair: that of the bitmap, for the commit, and those that
    // say how many pairs are left.
    if (node->buffer() == 0) __builtin_prefetch(node->leaf(), 1);
    __builtin_prefetch(&node->fingerprints[0], 1);
    __builtin_prefetch(&node->fingerprints[kLeafPairs / 2], 1);
    const Found found = buffers_.find(*node, key, hash);
    if (!found.present() || !value_is(found, expected)) return false;
    // If its pairs have slots, merging needs no space; else the erasure needs none (B4).
    if (found.buffered >= 0 && !buffers_.can_grow(*buffers_.of(*node)) && buffers_.merge(*node)) {
      buffers_.shed(*node);
      continue;
    }
    remove(*node, found);
    shed_stale_filter(*node);
    structure_.merge_around(std::move(node));
    return true;
  }
}

/// Adds a leaf to the backup that was linked some time ago, unless it has been merged away since.
/// The lock keeps it in the list during the call (L8).
template <class K>
void WordTree<K>::back_up(Key low, pm::Offset leaf) noexcept {
  try {
    const epoch::Guard guard;
    const LockedNode node = lock_node(low, Keys::hash16(low), false);
    const bool there = pool().offset(node->leaf()) == leaf && NodeBounds::view(node->low) == low;
    pm::on_step("sptree: back up a leaf");
    if (there) return backup_.add(low, leaf);
    pm::on_step("sptree: a leaf on its way to the backup is gone");
  } catch (const std::exception&) {
    // The backup lags behind. A call that needs the damaged part throws the error itself.
  }
}

/// Part of the whole, as far as the two are known; at most 1.
static double share_of(std::int64_t part, std::uint64_t whole) {
  return std::min(1.0, static_cast<double>(part) / static_cast<double>(whole));
}

template <class K>
std::uint64_t WordTree<K>::size() const {
  resumer_.require_resumed();
  return static_cast<std::uint64_t>(leaves_.pairs());
}

template <class K>
IndexStats WordTree<K>::stats() const {
  IndexStats stats;
  const IndexStats backup = backup_->stats();
  stats.resumption_seconds = resumer_.seconds();
  stats.resumed = resumer_.done() ? 1 : share_of(nodes_.count(), Backup<K>::leaves(backup));
  stats.pairs = static_cast<std::uint64_t>(leaves_.pairs());
  stats.leaves = static_cast<std::uint64_t>(nodes_.count());
  stats.pm_bytes = sizeof(Root) + stats.leaves * sizeof(Leaf) +
                   static_cast<std::uint64_t>(leaves_.blob_bytes()) + backup.pm_bytes +
                   (!has_log() ? 0 : log().pm_bytes());
  stats.dram_bytes = nodes_.bytes_in_use() + arena_.bytes_in_use() + backup.dram_bytes;
  stats.recovery_seconds = recovery_seconds_;
  return stats;
}

/// Calls visit(checker) when no thread of the index's own changes anything any more.
template <class K>
template <class Visit>
void WordTree<K>::with_checker(Visit visit) const {
  resumer_.require_quiet();
  backup_.finish();
  const epoch::Guard guard;
  visit(Checker<K>(pool(), root(), leaves_, nodes_, buffers_, top_, backup_, leaf_orders_));
}

template <class K>
CheckReport WordTree<K>::check() const {
  CheckReport report;
  with_checker([&](const Checker<K>& checker) { report = checker.check(); });
  return report;
}

template <class K>
void WordTree<K>::for_each_block(const BlockVisitor& visit) const {
  with_checker([&](const Checker<K>& checker) { checker.for_each_block(visit); });
}

template <class K>
bool WordTree<K>::hinted(Key key) const {
  const epoch::Guard guard;
  return hints_.of(key) == top_.locate(key);
}

template <class K>
unsigned WordTree<K>::steps_right(Key key) const {
  const epoch::Guard guard;
  unsigned steps = 0;
  for (Node* node = top_.locate(key);;) {
    const Version version = node->lock.read_begin();
    const bool gone = Node::Lock::obsolete(version);
    if (!gone && node->covers(key)) return steps;
    node = gone ? top_.locate(key) : go_right(node, version, key, steps);
  }
}

template <class K>
bool WordTree<K>::order_kept(Key key) const {
  const epoch::Guard guard;
  return read_node_from(top_.locate(key), key, [&](const Node& node) {
    Order order;
    leaf_orders_.read(node, order);
    return order.kept;
  });
}

template class WordTree<std::uint64_t>;
template class WordTree<std::string>;

}  // namespace perdix::detail::index::sptree
