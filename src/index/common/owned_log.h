// The log of write buffers as a part of what an index owns (owned.h): its blocks, and the strings
// of pairs that are in it and not yet in the index. A live index has such pairs in buffers. When an
// index is dropped no buffer has them: the drop first moves those of each home's chain into the
// home.
#pragma once

#include <cassert>
#include <optional>
#include <utility>
#include <vector>

#include "index/common/home_buffers.h"
#include "index/common/owned.h"
#include "wal/log.h"

namespace perdix::detail::index {

/// Tells of all blocks of the log that a word leads to, if it leads to one.
inline void walk_log(pool::PoolCore& pool, std::uint64_t& word, Owned& owned) {
  if (pm::load(word) == pm::kNull) return;
  wal::for_each_owner(pool, word, [&](std::uint64_t& at, std::uint64_t bytes) {
    owned.release(pm::set_word(at, pm::kNull),
                  OwnedBlocks(pm::load(at), bytes, "a block of the log"));
  });
}

/// Tells of the strings of a buffer's pairs, which records of the log lead to. Only of a live
/// index.
template <Storable K, class Buffer>
void walk_buffer(const ValueCodec& values, const Buffer* buffer, Owned& owned) {
  assert(!owned.drops());
  for (unsigned i = 0; buffer != nullptr && i < buffer->size(); ++i)
    owned.release({}, blobs_of<K>(values, buffer->key(i), buffer->value(i)));
}

/// The log of an index that is being dropped: chains leave it one by one. Touches no PM when it is
/// destroyed, so that the log may be gone before.
class DroppedLog {
 public:
  using Pairs = std::vector<std::pair<Word, Word>>;

  /// `log`: kNull if there is none, or only a part of it may be left. Throws corrupt.
  DroppedLog(pool::PoolCore& pool, pm::Offset log) {
    if (log == pm::kNull) return;
    log_.emplace(pool, log, wal::Log::Limits{~std::uint64_t{0}});
    log_->add(chain_);
  }

  /// Null if there is none.
  wal::Log* get() { return log_ ? &*log_ : nullptr; }

  /// Adopts a chain, as prepare_adoption() has it, and returns it until its end().
  wal::Chain& adopt(wal::Owner owner, wal::Position head, std::uint16_t sure = 0) {
    log_->adopt(chain_, log_->prepare_adoption(owner, head, sure));
    return chain_;
  }
  void end() { log_->end(chain_); }

  /// Moves the pairs of an owner's chain into its home, if it has a chain. A crash before the END
  /// leaves pairs in both. `has(word)`: whether the home has a key with this word. `empty()`
  /// releases what the home had before, so that there is room; it is not called if some of the
  /// chain are in the home, since all had their room before. `fill(pairs)`: durably.
  template <class Has, class Empty, class Fill>
  void move_pairs(wal::Owner owner, Has has, Empty empty, Fill fill) {
    const bool possible = log_ && owner != 0 && owner <= wal::kMaxOwner;
    const wal::Position head = possible ? log_->surviving(owner) : 0;
    if (head == 0) return;
    Pairs pairs = read_chain(*log_, owner, head).pairs;
    if (std::erase_if(pairs, [&](const auto& pair) { return has(pair.first); }) == 0) empty();
    fill(std::as_const(pairs));  // before the END
    adopt(owner, head);
    end();
  }

 private:
  std::optional<wal::Log> log_;
  wal::Chain chain_;
};

}  // namespace perdix::detail::index
