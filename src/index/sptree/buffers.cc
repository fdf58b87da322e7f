#include "index/sptree/buffers.h"

#include <cassert>

namespace perdix::detail::index::sptree {

template <class K>
void NodeBuffers<K>::remove(Buffer& buffer, unsigned i) {
  if (leaves_.all_inline()) return records_.remove(*log(), buffer, i);
  const std::int64_t bytes = leaves_.bytes_of(buffer.key(i), buffer.value(i));
  records_.remove(*log(), buffer, i);
  leaves_.count_bytes(-bytes);
}

template <class K>
bool NodeBuffers<K>::add_tombstone(Node& node, Buffer& buffer, unsigned slot) {
  if (buffer.empty_chain()) buffer.sure = sure_of(taken_slots(node).count());
  try {
    log_tombstone(node, buffer, slot);
  } catch (const Error& error) {
    if (error.code() != Errc::out_of_space) throw;
    pm::on_step("sptree: no room for a tombstone");
    return false;
  }
  pm::on_step("sptree: add a tombstone");
  node.remove(slot);
  buffer.set_erased(buffer.erased_slots() | SlotSet::of(slot));
  ++buffer.records;
  return true;
}

template <class K>
void NodeBuffers<K>::log_tombstone(const Node& node, Buffer& buffer, unsigned slot) {
  if (leaves_.all_inline()) {
    log()->append(buffer, wal::Type::erase_slot, slot, 0);
  } else {
    const Pair& pair = pair_at(*node.leaf(), slot);
    const std::int64_t bytes = leaves_.bytes_of(pair.key, pair.value);
    alloc::Session session = pool_.allocator().session();
    Keys::free(session, pm::load(pair.key));
    leaves_.values().free(session, pm::load(pair.value));
    log()->append(buffer, wal::Type::erase_slot, slot, 0, session);
    leaves_.count_bytes(-bytes);
  }
}

template <class K>
bool NodeBuffers<K>::merge(Node& node, std::optional<Pair> another) {
  Buffer* buffer = of(node);
  if (buffer == nullptr || buffer->empty_chain()) {
    assert(!another);
    return true;
  }
  const unsigned buffered = buffer->size(), count = buffered + (another ? 1 : 0);
  Leaf& leaf = *node.leaf();
  const Placed placed = leaves_.place(leaf, taken_slots(node), count, [&](unsigned i) {
    return i < buffered ? Pair{buffer->key(i), buffer->value(i)} : *another;
  });
  if (!placed.complete) return false;
  const SlotSet slots = placed.taken - buffer->erased_slots();
  publish_slots(pm(), leaf, slots);  // phase 2: durable before the chain that says the same ends
  // Before the END, whose lock waits for what has been published.
  for (unsigned i = 0; i < count; ++i) node.add(placed.slots[i], placed.hashes[i]);
  pm::on_step("sptree: a merge ends a chain");
  records_.end(*log(), *buffer);  // has room, so nothing throws behind the commit
  return true;
}

/// Gives the locked node a buffer: one that is left, or now and then a cold one of another node.
template <class K>
bool NodeBuffers<K>::attach(Node& node) {
  std::uint32_t number = this->acquire(preferred_number(node));
  if (number == 0 && this->may_take(node.lock.version())) number = take_cold_buffer();
  if (number == 0) return false;  // the leaf takes the change
  this->give_buffer(node, number);
  at(number).assign(owner_of(node));
  return true;
}

/// The buffer of a node that is not written to any more, merged and taken away from it; 0 if there
/// is none at hand. Waits for no lock, since the caller holds one.
template <class K>
std::uint32_t NodeBuffers<K>::take_cold_buffer() {
  const std::uint32_t number = this->cold();
  if (number == 0) return 0;
  Node* owner = at(number).node.load(std::memory_order_acquire);
  pm::on_step("sptree: a buffer that another node may give");
  if (owner == nullptr || !owner->lock.try_lock()) return 0;
  const LockedNode<K> locked(owner);  // its memory stays: the caller's guard holds
  if (owner->lock.is_obsolete() || owner->buffer() != number || !merge(*owner)) return 0;
  pm::on_step("sptree: take the buffer of another node");
  return this->take_buffer(*owner);
}

template class NodeBuffers<std::uint64_t>;
template class NodeBuffers<std::string>;

}  // namespace perdix::detail::index::sptree
