// Writes and erases in a list with write buffers: attempts as those of NodeWriter, range by range.
// A new pair goes into the buffer of its range. If there is no room, or no buffer, the list gets
// it.
#pragma once

#include <new>
#include <optional>

#include <perdix/types.h>

#include "index/skiplist/buffers.h"
#include "index/skiplist/node_writer.h"

namespace perdix::detail::index::skiplist {

template <class K>
class RangeWriter {
 public:
  /// All outlive this.
  RangeWriter(RangeBuffers<K>& ranges, NodeWriter<K>& writer, const Towers<K>& towers,
              PairCount& pairs)
      : ranges_(ranges), writer_(writer), towers_(towers), pairs_(pairs) {}

  std::optional<bool> write(const PairWrite<K>& write, Erased& erased) {
    LockedRange range;
    if (!ranges_.lock(range, write.key.key)) return std::nullopt;
    if (const auto found = ranges_.find(*range.node, write.key)) {
      if (write.mode == Mode::insert) return false;
      return ranges_.buffers().replace(range, found, write.value, write.expected);
    }
    return write_to_list(range, write, erased);
  }

  std::optional<bool> erase(const HashedKey<K>& key, const NewValue* expected, Erased& erased) {
    LockedRange range;
    if (!ranges_.lock(range, key.key)) return std::nullopt;
    if (const auto found = ranges_.find(*range.node, key))
      return erase_buffered(range, found, expected);
    const Node* const node = ranges_.ranges().find(*range.node, key);
    if (node == nullptr || is_hollow(*node)) return false;
    if (node == range.node) return erase_owner(range, key, expected, erased);
    return writer_.erase(key, expected, erased);
  }

 private:
  using Buffers = typename RangeBuffers<K>::Buffers;
  using Buffer = typename RangeBuffers<K>::Buffer;

  /// write() for a key that the buffer of the locked range does not have.
  std::optional<bool> write_to_list(LockedRange& range, const PairWrite<K>& write, Erased& erased) {
    Node* const node = ranges_.ranges().find(*range.node, write.key);
    if (node == nullptr) {
      if (write.mode == Mode::update) return false;
      return write_new(range, write, erased);
    }
    if (!is_hollow(*node)) return writer_.replace(*node, write, erased);
    if (write.mode == Mode::update) return false;
    if (node != range.node) {
      ranges_.remove_node(write.key);  // a crash has kept it from being removed (L7)
    } else {
      range.latches.release();
      ranges_.remove_hollow(write.key);
    }
    return std::nullopt;
  }

  /// write() for a key that the locked range does not have: adds it.
  std::optional<bool> write_new(LockedRange& range, const PairWrite<K>& write, Erased& erased) {
    using Added = typename Buffers::Added;
    const HashedKey<K>& key = write.key;
    const Added outcome = ranges_.buffers().add(range, key.key, write.value, key.hash);
    if (outcome == Added::added) return true;
    if (outcome == Added::merged) return std::nullopt;
    // A tall node would divide the pairs of the buffer.
    Buffer* const buffer = ranges_.of(*range.node);
    if (buffer != nullptr && !buffer->empty_chain() && towers_.wanted_height(key.key) >= kTall) {
      ranges_.buffers().merge(range, *buffer);
      return std::nullopt;
    }
    return writer_.write({key, write.value, Mode::insert, nullptr}, erased);
  }

  /// Erases a pair of the buffer of a locked range, and a hollow owner with the last one.
  bool erase_buffered(LockedRange& range, const typename Buffers::Found& found,
                      const NewValue* expected) {
    if (!ranges_.buffers().erase(found, expected)) return false;
    if (found.buffer->size() == 0 && is_hollow(*range.node)) {
      range.latches.release();
      try {
        // The last pair that needed it is gone.
        ranges_.remove_hollow(ranges_.nodes().hashed_key_of(*range.node));
      } catch (const std::bad_alloc&) {
        // The next merge of the range removes it.
      }
    }
    return true;
  }

  /// Erases the pair of the owner of a locked range. While the range's buffer has pairs the node
  /// stays, hollow (L7).
  std::optional<bool> erase_owner(LockedRange& range, const HashedKey<K>& key,
                                  const NewValue* expected, Erased& erased) {
    Node& owner = *range.node;
    if (!writer_.value_is(owner, expected)) return false;
    Buffer* const buffer = ranges_.of(owner);
    if (buffer != nullptr && buffer->size() == 0) ranges_.buffers().end_chain(*buffer);
    if (buffer == nullptr || buffer->empty_chain()) {
      range.latches.release();
      return erase_bare_owner(key, expected, erased);
    }
    const Meta meta{.hollow = true, .height = height_of(owner)};
    ranges_.nodes().pm().publish(owner.meta, meta.pack());  // the commit
    pairs_.remove();
    return true;
  }

  /// Erases an owner without a chain: its range becomes part of the one before.
  std::optional<bool> erase_bare_owner(const HashedKey<K>& key, const NewValue* expected,
                                       Erased& erased) {
    LatchSet held;
    const std::optional<Node*> owner = ranges_.lock_with_before(held, key);
    if (!owner.has_value() || *owner == nullptr || is_hollow(**owner)) return std::nullopt;
    if (!writer_.value_is(**owner, expected)) return false;
    if (Buffer* const buffer = ranges_.of(**owner)) {
      if (!buffer->empty_chain()) return std::nullopt;  // begun before the latches were held
      ranges_.buffers().take_from(ranges_.nodes().pool().offset(*owner));
    }
    return writer_.erase(key, expected, erased);
  }

  RangeBuffers<K>& ranges_;
  NodeWriter<K>& writer_;
  const Towers<K>& towers_;
  PairCount& pairs_;
};

}  // namespace perdix::detail::index::skiplist
