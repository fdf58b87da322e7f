// Batches of lookups. A lookup waits for memory most of its time (a radix node, the middle node,
// the line of the pair), so the keys of a group take each step together, and their waits overlap.
#pragma once

#include <array>
#include <bit>
#include <optional>
#include <span>

#include "index/common/groups.h"
#include "index/sptree/search.h"

namespace perdix::detail::index::sptree {

/// Made for each call; the caller holds an epoch::Guard.
template <class K>
class GroupLookup {
 public:
  using Key = View<K>;

  GroupLookup(const Parts<K>& parts, const Search<K>& search) : parts_(parts), search_(search) {}

  /// The values of at most kGroup keys.
  void find(std::span<const Key> keys, std::span<std::optional<Word>> out) const;

 private:
  using Node = Mnode<K>;
  using Buffer = typename NodeBuffers<K>::Buffer;
  using Keys = Codec<K>;

  struct Pending {
    typename TopLayer<K>::Lookahead way;
    Hash16 hash;
    Node* start;           // where the search for the key's node begins
    const Buffer* buffer;  // where the pair may be; nullptr: in the leaf, or nowhere
  };

  void find_nodes(std::span<const Key> keys, std::span<Pending> group) const;
  const Buffer* prefetch_pair(const Node& node, Hash16 hash) const;
  void prefetch_blobs(const Pending& pending) const;

  const Parts<K>& parts_;
  const Search<K> search_;
};

template <class K>
void GroupLookup<K>::find(std::span<const Key> keys, std::span<std::optional<Word>> out) const {
  std::array<Pending, kGroup> pending_keys;
  const std::span group = std::span(pending_keys).first(keys.size());
  find_nodes(keys, group);
  for (Pending& pending : group) pending.buffer = prefetch_pair(*pending.start, pending.hash);
  for (const Pending& pending : group) {
    if (pending.buffer != nullptr) pending.buffer->prefetch_pair(pending.hash);
  }
  if (!parts_.leaves.all_inline()) {
    for (const Pending& pending : group) prefetch_blobs(pending);
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const Found found = search_.read_from(group[i].start, keys[i], [&](const Node& node) {
      return parts_.buffers.find(node, keys[i], group[i].hash);
    });
    out[i] = found.present() ? std::optional(found.value) : std::nullopt;
  }
}

/// All keys go down the top layer, one node each in turn.
template <class K>
void GroupLookup<K>::find_nodes(std::span<const Key> keys, std::span<Pending> group) const {
  for (std::size_t i = 0; i < keys.size(); ++i)
    group[i] = {parts_.top.look_ahead(keys[i]), Keys::hash16(keys[i]), nullptr, nullptr};
  for (bool on_the_way = true; on_the_way;) {
    on_the_way = false;
    for (std::size_t i = 0; i < keys.size(); ++i) on_the_way |= group[i].way.step();
  }
  for (std::size_t i = 0; i < keys.size(); ++i) {
    group[i].start = parts_.top.start_at(group[i].way, keys[i]);
    group[i].start->prefetch_fingerprints(group[i].hash);
  }
}

/// Asks for the line of the slot where the key may be; else for that of the node's write buffer
/// which says where it may be there, and returns the buffer.
template <class K>
auto GroupLookup<K>::prefetch_pair(const Node& node, Hash16 hash) const -> const Buffer* {
  const SlotSet candidates = node.candidates(hash);
  if (!candidates.empty()) {
    __builtin_prefetch(&pair_at(*node.leaf(), candidates.first()));
    return nullptr;
  }
  const Buffer* buffer = parts_.buffers.of(node);
  if (buffer != nullptr) buffer->prefetch_for_lookup();
  return buffer;
}

/// Asks for the bytes of the key and the value that may be the ones.
template <class K>
void GroupLookup<K>::prefetch_blobs(const Pending& pending) const {
  if (pending.buffer != nullptr) {
    const unsigned alike = pending.buffer->candidates(pending.hash);
    if (alike == 0) return;
    const auto i = static_cast<unsigned>(std::countr_zero(alike));
    parts_.leaves.keys().prefetch(pending.buffer->key(i));
    parts_.leaves.values().prefetch(pending.buffer->value(i));
    return;
  }
  const SlotSet candidates = pending.start->candidates(pending.hash);
  if (candidates.empty()) return;
  const Pair& pair = pair_at(*pending.start->leaf(), candidates.first());
  parts_.leaves.keys().prefetch(pm::load(pair.key));
  parts_.leaves.values().prefetch(pm::load(pair.value));
}

}  // namespace perdix::detail::index::sptree
