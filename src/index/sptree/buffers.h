// The write buffers of the middle nodes (Zhao et al. 2024, sections 4.1, 4.4 and 4.7): new pairs
// and erased slots go into a node's buffer and the log, a line each near the one before, and reach
// the leaf in batches.
//
// The record is the commit. For an integer whose insert finds the buffer full, the commit is the
// batch's. As in the paper, new keys, their changes while they are in the buffer, and tombstones
// are buffered. A tombstone names the slot of the leaf's pair, not its key, so that after a crash
// nothing needs the key's bytes, which are free by then.
//
// Merging writes the pairs, then the bitmap, then END (two-phase insertion, and the end of the
// chain). A crash between the last two leaves a chain all of whose records have been applied. It is
// closed when the leaf is used again, before a slot or a blob that it names can get another meaning
// (L7).
//
// The parts that do not depend on pairs are in index/common: write_buffers.h, buffer_exchange.h,
// and write_buffer.h with invariants B1 to B4. Changes are made by the holder of the node's lock;
// readers validate the node's version.
#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <optional>

#include "alloc/session.h"
#include "index/common/buffer_exchange.h"
#include "index/common/pair_records.h"
#include "index/common/write_buffers.h"
#include "index/sptree/buffer_shape.h"
#include "index/sptree/leaf_store.h"
#include "index/sptree/middle_nodes.h"
#include "index/sptree/replay.h"
#include "wal/log.h"

namespace perdix::detail::index::sptree {

/// Where a pair lies: in a slot of the leaf, or in the write buffer; and its value.
struct Found {
  int slot = -1;
  int buffered = -1;
  Word value = 0;

  bool present() const { return slot >= 0 || buffered >= 0; }
};

/// Which node has which buffer: a node keeps the number of its own.
template <class Node>
class NumberedBuffers : public WriteBuffers<BufferShape<Node>> {
  using Base = WriteBuffers<BufferShape<Node>>;

 public:
  using Base::Base;
  using Base::of;
  using Place = Node*;  ///< as buffer_exchange.h has it
  using Lock = typename Node::Lock;

  static Node* place_of(const typename Base::Buffer& buffer) {
    return buffer.node.load(std::memory_order_acquire);
  }
  static Lock& lock_at(Node* node) { return node->lock; }
  typename Base::Buffer* of(Node* node) const { return of(*node); }
  typename Base::Number take(typename Base::Buffer& buffer) {
    return this->take_buffer(*buffer.node.load(std::memory_order_relaxed));
  }
};

template <class K>
class NodeBuffers : public BufferExchange<NumberedBuffers<Mnode<K>>> {
  using Base = BufferExchange<NumberedBuffers<Mnode<K>>>;

 public:
  using Node = Mnode<K>;
  using Buffer = typename Base::Buffer;
  using Key = View<K>;
  using Keys = Codec<K>;
  using Base::any;
  using Base::at;
  using Base::budget;
  using Base::log;
  using Base::of;
  using Base::shed;

  NodeBuffers(pool::PoolCore& pool, util::Arena& arena, const wal::Log::Limits& limits,
              LeafStore<K>& leaves, const MiddleNodes<K>& nodes)
      : Base(arena, limits),
        pool_(pool),
        leaves_(leaves),
        nodes_(nodes),
        records_(pool, leaves.keys(), leaves.values()) {}

  wal::Owner owner_of(const Node& node) const {
    return sptree::owner_of(pool_.offset(node.leaf()));
  }

  /// The number of the buffer that the node has, if nothing kept it from getting that one: a
  /// function of the node's address, for callers that have not read the node yet. 0: the node gets
  /// any. The budget bounds it, so that a small one takes no more memory than its buffers.
  std::uint32_t preferred_number(const Node& node) const {
    const std::uint64_t index = nodes_.number_of(node);
    return index < budget() ? static_cast<std::uint32_t>(index) + 1 : 0;
  }

  // --- Lookups: the result counts only under the node's lock, or if its version is validated ---

  Found find(const Node& node, Key key, Hash16 hash) const;

  /// The leaf's bitmap in PM.
  SlotSet taken_slots(const Node& node) const {
    const Buffer* buffer = of(node);
    return buffer == nullptr ? node.slots() : node.slots() | buffer->erased_slots();
  }

  /// Pairs in the leaf and in the buffer.
  unsigned count(const Node& node) const {
    const Buffer* buffer = of(node);
    return node.count() + (buffer == nullptr ? 0 : buffer->size());
  }

  /// Where the leaf takes a new key with this hash; kLeafPairs if it is full.
  unsigned free_slot_of(const Node& node, Hash16 hash) const;

  /// Whether the locked node's leaf may take a pair into a free slot: not the last ones if the
  /// pairs of the buffer need them (B4).
  bool leaf_may_take(const Node& node) const {
    const Buffer* buffer = of(node);
    return buffer == nullptr || buffer->without_slot(taken_slots(node).count(), 1) <= buffer->sure;
  }

  // --- Changes of the locked node's buffer ---

  /// The buffer that takes the next change of the locked node, and has room in the log for it;
  /// nullptr if the change must go to the leaf.
  Buffer* for_change(Node& node);

  /// Adds a pair to the buffer of the locked node, or, if the buffer is full, to the batch that is
  /// merged then. False, and no pair has changed, if the leaf must be split before.
  bool add(Node& node, Buffer& buffer, Key key, NewValue value, Hash16 hash);

  void replace(Buffer& buffer, unsigned i, NewValue value);

  /// Needs no room that may not be there: if the buffer can't be merged, its chain has some (B4).
  void remove(Buffer& buffer, unsigned i);

  /// Erases a pair of the leaf by a tombstone. Its bit stays set in PM until the buffer is merged.
  /// False, and nothing has changed, if the log has no room for that: other threads took its free
  /// buffers in between.
  bool add_tombstone(Node& node, Buffer& buffer, unsigned slot);

  /// Moves the content of the locked node's buffer into the leaf, and closes the chain. False, and
  /// nothing changes, if the leaf has no room: it must be split. A node without a buffer is merged.
  /// `another`: a new pair for a full buffer, which joins the batch instead of the log. The batch's
  /// commit is its own, too.
  bool merge(Node& node, std::optional<Pair> another = std::nullopt);

  /// As shed() of the buffer that the locked node has, if any.
  void shed(Node& node) {
    if (Buffer* buffer = of(node)) shed(*buffer);
  }

 private:
  Found find_buffered(const Buffer& buffer, Key key, Hash16 hash) const;
  void push(Buffer& buffer, Key key, NewValue value, Hash16 hash);
  void log_tombstone(const Node& node, Buffer& buffer, unsigned slot);
  bool attach(Node& node);

  /// For how many records a chain is promised room that begins when `taken` slots of the leaf are
  /// used: as many as its buffer can hold pairs for which the leaf has no slot (B4).
  static std::uint8_t sure_of(unsigned taken) {
    const unsigned all = taken + kBufferPairs;
    return static_cast<std::uint8_t>(all > kLeafPairs ? all - kLeafPairs : 0);
  }

  const pm::Persister& pm() const { return pool_.pm(); }

  pool::PoolCore& pool_;
  LeafStore<K>& leaves_;
  const MiddleNodes<K>& nodes_;
  const PairRecords<K> records_;
};

template <class K>
[[gnu::always_inline]] inline Found NodeBuffers<K>::find(const Node& node, Key key,
                                                         Hash16 hash) const {
  for (const unsigned slot : node.candidates(hash)) {
    const Pair& pair = pair_at(*node.leaf(), slot);
    if (leaves_.keys().equal(pm::load(pair.key), key, hash))
      return {static_cast<int>(slot), -1, pm::load(pair.value)};
  }
  const Buffer* buffer = of(node);  // read once: another node may get it at any time
  return buffer == nullptr ? Found{} : find_buffered(*buffer, key, hash);
}

template <class K>
[[gnu::noinline]] Found NodeBuffers<K>::find_buffered(const Buffer& buffer, Key key,
                                                      Hash16 hash) const {
  for (unsigned left = buffer.candidates(hash); left != 0; left &= left - 1) {
    const int i = std::countr_zero(left);
    const Word word = buffer.key(static_cast<unsigned>(i));
    if (leaves_.keys().equal(word, key, hash))
      return {-1, i, buffer.value(static_cast<unsigned>(i))};
  }
  return {};
}

template <class K>
unsigned NodeBuffers<K>::free_slot_of(const Node& node, Hash16 hash) const {
  if (node.buffer() == 0) {  // so no slot is erased but taken
    const unsigned slot = node.free_slot_near(hash);
    if (slot != kLeafPairs) [[likely]]
      return slot;
  }
  return free_slot(taken_slots(node), hash);
}

template <class K>
auto NodeBuffers<K>::for_change(Node& node) -> Buffer* {
  if (!any()) return nullptr;
  if (node.buffer() == 0 && !attach(node)) return nullptr;
  Buffer* buffer = of(node);
  buffer->hot.store(true, std::memory_order_relaxed);
  buffer->prefetch_next_pair();
  return this->admitted() ? buffer : nullptr;
}

template <class K>
[[gnu::noinline]] bool NodeBuffers<K>::add(Node& node, Buffer& buffer, Key key, NewValue value,
                                           Hash16 hash) {
  if (buffer.full()) {
    if (leaves_.all_inline()) {
      const bool added = merge(node, Pair{leaves_.inline_word(key), value.word()});
      if (added) shed(node);
      return added;
    } else if (!merge(node)) {
      return false;
    }
  }
  const unsigned taken = taken_slots(node).count();
  if (buffer.empty_chain()) buffer.sure = sure_of(taken);
  if (buffer.without_slot(taken, 1) > buffer.sure) return false;
  push(buffer, key, value, hash);
  return true;
}

template <class K>
void NodeBuffers<K>::push(Buffer& buffer, Key key, NewValue value, Hash16 hash) {
  records_.add(*log(), buffer, key, value, hash);
  if (leaves_.all_inline()) return;
  const unsigned added = buffer.size() - 1;
  leaves_.count_blobs(buffer.key(added), buffer.value(added), +1);
}

template <class K>
[[gnu::noinline]] void NodeBuffers<K>::replace(Buffer& buffer, unsigned i, NewValue value) {
  const ValueCodec& values = leaves_.values();
  if (values.is_inline()) return records_.replace(*log(), buffer, i, value);
  const std::int64_t old_bytes = values.footprint(buffer.value(i));
  records_.replace(*log(), buffer, i, value);
  leaves_.count_bytes(values.footprint(buffer.value(i)) - old_bytes);
}

}  // namespace perdix::detail::index::sptree
