#include "index/skiplist/skiplist.h"

#include "index/common/limits.h"
#include "index/common/retry.h"
#include "index/skiplist/buffer_merge.h"
#include "index/skiplist/buffers.h"
#include "index/skiplist/check.h"
#include "index/skiplist/destroy.h"
#include "index/skiplist/get_many.h"
#include "index/skiplist/ranges.h"
#include "index/skiplist/recovery.h"
#include "index/skiplist/scan.h"
#include "index/skiplist/search.h"
#include "index/skiplist/shortcut.h"
#include "index/skiplist/tower.h"

namespace perdix::detail::index::skiplist {

template <class K>
bool WordList<K>::write(Key key, NewValue value, Mode mode, const NewValue* expected) {
  check_key(key);
  return retry_when_full(pool_, [&] { return try_write({key, value, mode, expected}); });
}

template <class K>
bool WordList<K>::try_write(const Write& write) {
  if (buffers_ != nullptr) buffers_->keep_short();
  const epoch::Guard guard;
  Erased erased;
  for (;;) {
    const auto done = buffers_ == nullptr ? write_node(write, erased) : write_range(write, erased);
    if (done) return *done;
    pm::on_step("skiplist: a write begins again");
  }
}

/// One attempt. Returns nullopt if another thread has changed the nodes that were found. That
/// thread has done its operation, so the threads cannot all repeat their attempts without end.
template <class K>
std::optional<bool> WordList<K>::write_node(const Write& write, Erased& erased) {
  const Key key = write.key;
  const unsigned wanted = wanted_height(key);
  const Path path = trace(key, wanted >= kTall);
  if (has_key(path.at[0].next, key, Keys::hash16(key)))
    return replace(*path.at[0].next, write, erased);
  if (write.mode == Mode::update)
    return were_adjacent(path.at[0], erased) ? std::optional(false) : std::nullopt;
  const unsigned height = std::min(wanted, path.levels);
  TowerLatches latches;
  lock_tower(latches, path, height, latch_of_key(key));
  if (!is_unchanged(path, height, erased)) return std::nullopt;
  insert_node(path, height, key, write.value);
  return true;
}

/// Writes to a node that has the key. Returns nullopt if the node was erased.
template <class K>
std::optional<bool> WordList<K>::replace(Node& node, const Write& write, Erased& erased) const {
  std::array latch = {&latch_of(node)};
  LatchSet latches;
  latches.lock_all(latch);
  if (is_gone(node, erased)) return std::nullopt;
  if (write.mode == Mode::insert || !value_is(node, write.expected)) return false;
  set_value(node, write.value);
  return true;
}

/// Replaces a value; its word is the commit.
template <class K>
void WordList<K>::set_value(Node& node, NewValue value) const {
  if (codec_.is_inline()) {
    pm().publish(node.value, value.word());  // the commit; the node is durable already
  } else {
    alloc::Session session = pool_.allocator().session();
    const Word old_word = pm::load(node.value);
    const Word new_word = codec_.write(session, value);
    if (new_word == old_word) return;  // both empty: nothing to change
    codec_.free(session, old_word);
    session.commit(pm::set_word(node.value, new_word));  // the new blob is durable before
  }
}

template <class K>
bool WordList<K>::erase(Key key, const NewValue* expected) {
  check_key(key);
  const epoch::Guard guard;
  Erased erased;
  for (;;) {
    const auto done = buffers_ == nullptr ? erase_node(key, expected, erased)
                                          : erase_in_range(key, expected, erased);
    if (done) return *done;
    pm::on_step("skiplist: an erase begins again");
  }
}

/// One attempt. Returns nullopt as write_node() does.
template <class K>
std::optional<bool> WordList<K>::erase_node(Key key, const NewValue* expected,
                                            Erased& erased) const {
  Path path = trace(key, false);
  Node* const node = path.at[0].next;
  if (!has_key(node, key, Keys::hash16(key)))
    return were_adjacent(path.at[0], erased) ? std::optional(false) : std::nullopt;
  const unsigned height = height_of(*node);
  if (height >= kTall && path_ != nullptr) {
    path = trace(key, true);
    if (path.at[0].next != node) return std::nullopt;
  }
  const unsigned known = std::min(height, path.levels);
  TowerLatches latches;
  lock_tower(latches, path, known, latch_of(*node));
  if (is_gone(*node, erased) || !is_unchanged(path, known, erased)) return std::nullopt;
  // The node is on no level that the list did not have. But levels may have come since the search.
  if (known < height && known < levels()) return std::nullopt;
  if (!value_is(*node, expected)) return false;
  const bool had_pair = !is_hollow(*node);
  remove_node(path, linked_levels(path, height));
  if (had_pair) pairs_.remove();
  return true;
}

template class WordList<std::uint64_t>;
template class WordList<std::string>;

}  // namespace perdix::detail::index::skiplist
