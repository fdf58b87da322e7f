// Ordered iteration: node by node along level 0.
#pragma once

#include "index/common/batch.h"
#include "index/skiplist/skiplist.h"

namespace perdix::detail::index::skiplist {

/// The first node whose key is not below `from`, at a moment when it was; none if there is none.
template <class K>
auto WordList<K>::first_from(Key from) const -> Seen {
  Erased erased;
  for (;;) {
    const Neighbours neighbours = descend({from});
    const Seen before = look(*neighbours.before);
    if (is_gone(*before.node, erased)) continue;
    if (load_link(*before.node, 0).node != offset_of(neighbours.next)) continue;
    const Seen found = neighbours.next == nullptr ? Seen{} : look(*neighbours.next);
    if (before.valid()) return found;
  }
}

/// Calls add(node, value) for `most` nodes from `at` on, each at a moment when it was in the list
/// and the one after it was the next. `at` is then behind them.
template <class K>
template <class Add>
void WordList<K>::collect(Seen& at, std::size_t most, Add add) const {
  for (std::size_t added = 0; at.node != nullptr && added < most;) {
    const Word value = pm::load(at.node->value);
    Node* const next = next_of(*at.node, 0);
    const Seen following = next == nullptr ? Seen{} : look(*next);
    if (!at.valid()) {  // it may be gone, and a node that came between it and the next was not seen
      at = first_from(key_of(*at.node));
      continue;
    }
    if (next != nullptr) require_ascending(*at.node, *next);
    add(*at.node, value);
    ++added;
    at = following;
  }
}

inline constexpr unsigned kShownAtOnce = 64;  ///< at least kPairsAtOnce

template <class K>
struct WordList<K>::ScanBatch : Batch<K, kShownAtOnce> {};

/// As scan_by_batches() wants it. `at` is the first node at or behind the position, if it is valid:
/// it was found under an earlier guard and may be freed by now, but as long as its version is the
/// same it is in the list, and if it is so under this guard, it stays readable until the guard
/// ends.
template <class K>
bool WordList<K>::read_batch(ScanBatch& batch, Seen& at, K& position, std::size_t limit) const {
  if (buffers_ != nullptr) return read_ranges(batch, at, position, limit);
  const epoch::Guard guard;
  if (at.node == nullptr || !at.valid()) at = first_from(position);
  batch.clear();
  collect(at, std::min<std::size_t>(limit, kShownAtOnce),
          [&](const Node& node, Word value) { batch.add(key_of(node), value); });
  batch.copy_pairs(pool_, codec_, limit);
  pool_.require_usable();  // what was read may have been there before a sync failed
  if (!batch.complete()) {
    position = batch.next_key();
    at = {};
    return true;
  }
  if (at.node == nullptr) return false;
  if (batch.size() < limit) position = key_of(*at.node);
  return true;
}

/// The same for a list with write buffers: `at` is the owner of the position's range.
template <class K>
bool WordList<K>::read_ranges(ScanBatch& batch, Seen& at, K& position, std::size_t limit) const {
  const epoch::Guard guard;
  batch.clear();
  const bool more = collect_ranges(at, position, limit, [&](const Node*, Word key, Word value) {
    batch.add(keys_.view(key), value);
  });
  batch.copy_pairs(pool_, codec_, limit);
  pool_.require_usable();  // what was read may have been there before a sync failed
  if (batch.complete()) return more;
  position = batch.next_key();
  at = {};
  return true;
}

template <class K>
void WordList<K>::scan(Key from, std::size_t limit, const PairSink<K>& show) const {
  Seen at;
  scan_by_batches<ScanBatch, K>(pool_, from, limit, show,
                                [&](ScanBatch& batch, K& position, std::size_t left) {
                                  return read_batch(batch, at, position, left);
                                });
}

}  // namespace perdix::detail::index::skiplist
