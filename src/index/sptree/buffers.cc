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

/// Gives the locked node a buffer: one that is left, or now and then a cold one of another node,
/// whose memory stays, since the caller's guard holds.
template <class K>
bool NodeBuffers<K>::attach(Node& node) {
  const std::uint32_t number =
      this->obtain(preferred_number(node), node.lock.version(),
                   [&](const auto& cold, Buffer&) { return merge(*cold.place); });
  if (number == 0) return false;  // the leaf takes the change
  this->give_buffer(node, number);
  at(number).assign(owner_of(node));
  return true;
}

template class NodeBuffers<std::uint64_t>;
template class NodeBuffers<std::string>;

}  // namespace perdix::detail::index::sptree
