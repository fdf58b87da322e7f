#include "index/sptree/sptree.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "epoch/guard.h"
#include "index/common/limits.h"
#include "index/common/retry.h"
#include "index/sptree/check.h"
#include "index/sptree/get_many.h"
#include "index/sptree/owned.h"
#include "index/sptree/recovery.h"
#include "index/sptree/scan.h"
#include "util/hash.h"

namespace perdix::detail::index::sptree {

template <class K>
WordTree<K>::WordTree(pool::IndexHandle handle, const SpTreeOptions& options,
                      const wal::Log::Limits& log_limits)
    : handle_(std::move(handle)),
      parts_(pool(), handle_.info().value_kind, log_limits,
             [this](Key low, pm::Offset leaf) { back_up(low, leaf); }),
      structure_(parts_),
      resumer_(parts_, [this] {
        if (parts_.buffers.log() != nullptr) parts_.buffers.tidy_up(Upkeep{*this});
      }) {
  const auto start = std::chrono::steady_clock::now();
  parts_.orders.set_budget(options.scan_budget);
  if (pm::load(handle_.root()) == pm::kNull)
    retry_when_full(pool(), [&] { create(pool(), handle_.root()); });
  Root& root = this->root();
  parts_.backup.open(root.backup);
  if (has_log(pool(), root.log, options.dram_budget != 0))
    retry_when_full(pool(), [&] { open_log(pm::load(root.log), options.dram_budget); });
  resumer_.start(pm::load(root.first), options.resume_in_background);
  recovery_seconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  entry_.emplace(pool().open_indexes(), *this);
}

/// Opens the log, with buffers and hints as the budget allows.
template <class K>
void WordTree<K>::open_log(pm::Offset log, std::uint64_t budget) {
  const std::uint64_t of_hints = NodeHints<K>::share_of(budget);
  const bool unlimited = budget == kUnlimited;
  parts_.hints.set_budget(of_hints);
  parts_.buffers.open_log(pool(), log, unlimited ? budget : budget - of_hints);
}

template <class K>
void WordTree<K>::destroy(pool::PoolCore& pool, std::uint64_t& root, Kind value_kind) {
  sptree::destroy<K>(pool, root, value_kind);
}

// Inlined as a whole (flatten), except rare cases: the fewer instructions a lookup takes, the more
// of the next one the processor can begin while this one waits for memory.
template <class K>
[[gnu::flatten]] std::optional<Word> WordTree<K>::find_word(Key key) const {
  const Hash16 hash = Keys::hash16(key);
  const Found found = search().read(
      key, hash, [&](const Node& node) { return parts_.buffers.find(node, key, hash); });
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
  return search()
      .read(key, hash, [&](const Node& node) { return parts_.buffers.find(node, key, hash); })
      .present();
}

template <class K>
void WordTree<K>::find_words(std::span<const Key> keys, std::span<std::optional<Word>> out) const {
  GroupLookup<K>(parts_, search()).find(keys, out);
}

template <class K>
void WordTree<K>::scan(Key from, std::size_t limit, const PairSink<K>& show) const {
  Scans<K>(parts_, search()).scan(from, limit, show);
}

template <class K>
void WordTree<K>::find_last(Key key, bool strictly, LastPairs& last) const {
  Scans<K>(parts_, search()).find_last(key, strictly, last);
}

template <class K>
bool WordTree<K>::write(Key key, NewValue value, Mode mode, const NewValue* expected) {
  check_key(key);
  const auto attempt = [&]() __attribute__((always_inline)) {
    return try_write(key, value, mode, expected);
  };
  return retry_when_full(pool(), attempt);
}

template <class K>
bool WordTree<K>::reclaim_space() noexcept {
  return parts_.buffers.give_space_back(Upkeep{*this});
}

template <class K>
[[gnu::always_inline]] inline bool WordTree<K>::try_write(Key key, NewValue value, Mode mode,
                                                          const NewValue* expected) {
  const Hash16 hash = Keys::hash16(key);
  if (parts_.buffers.upkeep_due()) parts_.buffers.keep_short(Upkeep{*this});
  const epoch::Guard guard;
  for (;;) {
    const LockedNode<K> node = search().lock(key, hash, mode != Mode::update);
    const Found found = parts_.buffers.find(*node, key, hash);
    if (found.present()) {
      if (mode == Mode::insert || !value_is(found, expected)) return leave(*node);
      if (found.buffered >= 0 && !parts_.buffers.can_grow(*parts_.buffers.of(*node))) {
        if (!parts_.buffers.merge(*node)) structure_.split(*node, key);
        parts_.buffers.shed(*node);
        continue;
      }
      parts_.leaf_orders.unchanged(*node);
      replace(*node, found, value);
      return true;
    }
    if (mode == Mode::update) return leave(*node);
    if (add(*node, key, value, hash)) return true;
    structure_.split(*node, key);
  }
}

/// Adds a pair, to the write buffer if there is one; false if the node must be split before.
template <class K>
bool WordTree<K>::add(Node& node, Key key, NewValue value, Hash16 hash) {
  auto* const buffer = parts_.buffers.for_change(node);
  const unsigned slot = buffer != nullptr ? 0 : parts_.buffers.free_slot_of(node, hash);
  if (slot == kLeafPairs || (buffer == nullptr && !parts_.buffers.leaf_may_take(node)))
    return false;
  // A full buffer is merged: then many pairs get other places.
  const bool alone = buffer == nullptr || !buffer->full();
  // Counted and carried over before the stores: an atomic addition waits for those that came before
  // it, and they go to lines that are in no cache.
  parts_.leaves.count_pairs(1);
  if (alone) parts_.leaf_orders.added(node, buffer != nullptr ? kLeafPairs + buffer->size() : slot);
  bool added = true;
  try {
    if (buffer != nullptr) {
      added = parts_.buffers.add(node, *buffer, key, value, hash);
    } else {
      parts_.leaves.add(*node.leaf(), slot, key, value, hash);
      node.add(slot, hash);
    }
  } catch (...) {
    parts_.leaf_orders.outdate(node);
    parts_.leaves.count_pairs(-1);
    throw;
  }
  if (added) return true;
  parts_.leaf_orders.outdate(node);
  parts_.leaves.count_pairs(-1);
  return false;
}

template <class K>
[[gnu::always_inline]] inline void WordTree<K>::replace(Node& node, const Found& found,
                                                        NewValue value) {
  if (found.slot >= 0) {
    parts_.leaves.replace(*node.leaf(), static_cast<unsigned>(found.slot), value);
  } else {
    parts_.buffers.replace(*parts_.buffers.of(node), static_cast<unsigned>(found.buffered), value);
  }
}

template <class K>
[[gnu::always_inline]] inline void WordTree<K>::remove(Node& node, const Found& found) {
  const auto slot = static_cast<unsigned>(found.slot);
  parts_.leaves.count_pairs(-1);  // before the stores, as in add()
  try {
    if (found.slot < 0) return remove_buffered(node, static_cast<unsigned>(found.buffered));
    auto* const buffer = parts_.buffers.for_change(node);
    parts_.leaf_orders.removed(node, slot);
    const bool done =
        buffer != nullptr && !buffer->full() && parts_.buffers.add_tombstone(node, *buffer, slot);
    if (done) return;
    parts_.leaves.remove(*node.leaf(), slot);
    node.remove(slot);
  } catch (...) {
    parts_.leaf_orders.outdate(node);
    parts_.leaves.count_pairs(1);
    throw;
  }
}

template <class K>
void WordTree<K>::remove_buffered(Node& node, unsigned i) {
  auto& buffer = *parts_.buffers.of(node);
  parts_.leaf_orders.filled(node, kLeafPairs + i, kLeafPairs + buffer.size() - 1);
  parts_.buffers.remove(buffer, i);
}

/// Keeps the filter selective: erased keys stay in it, and a fresh filter has at most kBitsPerKey
/// bits per key.
template <class K>
void WordTree<K>::shed_stale_filter(Node& node) {
  constexpr unsigned kTolerated = 48;
  const unsigned fresh = Bloom::kBitsPerKey * node.count();
  if (node.bloom.bits_set() > fresh + kTolerated) parts_.nodes.fill_filter(node, node.slots());
}

template <class K>
bool WordTree<K>::erase(Key key, const NewValue* expected) {
  check_key(key);
  const Hash16 hash = Keys::hash16(key);
  if (parts_.buffers.upkeep_due()) parts_.buffers.keep_short(Upkeep{*this});
  const epoch::Guard guard;
  for (;;) {
    LockedNode<K> node = search().lock(key, hash, false);
    // At the same time as the line of the pair: that of the bitmap, for the commit, and those that
    // say how many pairs are left.
    if (node->buffer() == 0) __builtin_prefetch(node->leaf(), 1);
    __builtin_prefetch(&node->fingerprints[0], 1);
    __builtin_prefetch(&node->fingerprints[kLeafPairs / 2], 1);
    const Found found = parts_.buffers.find(*node, key, hash);
    if (!found.present() || !value_is(found, expected)) return leave(*node);
    // If its pairs have slots, merging needs no space; else the erasure needs none (B4).
    if (found.buffered >= 0 && !parts_.buffers.can_grow(*parts_.buffers.of(*node)) &&
        parts_.buffers.merge(*node)) {
      parts_.buffers.shed(*node);
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
    const LockedNode<K> node = search().lock(low, Keys::hash16(low), false);
    const bool there = pool().offset(node->leaf()) == leaf && Bounds<K>::view(node->low) == low;
    pm::on_step("sptree: back up a leaf");
    if (there) return parts_.backup.add(low, leaf);
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
  return static_cast<std::uint64_t>(parts_.leaves.pairs());
}

template <class K>
IndexStats WordTree<K>::stats() const {
  IndexStats stats;
  const IndexStats backup = parts_.backup->stats();
  const wal::Log* const log = parts_.buffers.log();
  stats.resumption_seconds = resumer_.seconds();
  stats.resumed = resumer_.done() ? 1 : share_of(parts_.nodes.count(), Backup<K>::leaves(backup));
  stats.pairs = static_cast<std::uint64_t>(parts_.leaves.pairs());
  stats.leaves = static_cast<std::uint64_t>(parts_.nodes.count());
  stats.pm_bytes = sizeof(Root) + stats.leaves * sizeof(Leaf) +
                   static_cast<std::uint64_t>(parts_.leaves.blob_bytes()) + backup.pm_bytes +
                   (log == nullptr ? 0 : log->pm_bytes());
  stats.dram_bytes = parts_.nodes.bytes_in_use() + parts_.arena.bytes_in_use() + backup.dram_bytes;
  stats.recovery_seconds = recovery_seconds_;
  return stats;
}

/// Calls visit(checker) when no thread of the index's own changes anything any more.
template <class K>
template <class Visit>
void WordTree<K>::with_checker(Visit visit) const {
  resumer_.require_quiet();
  parts_.backup.finish();
  const epoch::Guard guard;
  visit(Checker<K>(parts_, root()));
}

template <class K>
CheckReport WordTree<K>::check() const {
  CheckReport report;
  with_checker([&](const Checker<K>& checker) { report = checker.check(); });
  return report;
}

template <class K>
void WordTree<K>::for_each_block(const BlockVisitor& visit) const {
  ShownBlocks shown(visit);
  with_checker([&](const Checker<K>& checker) { checker.walk(shown); });
}

template class WordTree<std::uint64_t>;
template class WordTree<std::string>;

}  // namespace perdix::detail::index::sptree
