// Blocks that a crash left named in the ledger, until it is known which of them the index reaches.
//
// A block that is reached loses its name, durably, before it can be unlinked again: otherwise the
// name might outlive the block's freedom, and a second crash would free it under its next owner.
// What still has a name when everything has been reached has no owner, and is freed.
//
// Thread-safety: add() by one thread before all else; reached() by any thread, also for one block
// by several. No other part writes the words until they are resolved.
#pragma once

#include <bitset>
#include <cstddef>
#include <unordered_map>

#include "index/common/codec.h"
#include "index/common/value_codec.h"
#include "index/nbtree/layout.h"
#include "pm/access.h"
#include "pm/persist.h"

namespace perdix::detail::index::nbtree {

class UnresolvedBlocks {
 public:
  explicit UnresolvedBlocks(const pm::Persister& pm) : pm_(pm) {}

  enum class Kind { first_claim, claim, unlinked };

  /// A word that names a block. One name of each block is enough, and no more may be, since it is
  /// freed once.
  void add(pm::Offset block, pm::Offset& word, Kind kind) {
    filter_.set(filter_bit(block));
    if (!names_.try_emplace(block, Name{&word, kind}).second) drop(word, kind);
  }

  bool empty() const { return names_.empty(); }
  bool names(pm::Offset block) const { return may_name(block) && names_.contains(block); }

  /// Calls visit(name) for all that was named.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [block, name] : names_) visit(block);
  }

  /// The index reaches a block.
  void reached(pm::Offset block) {
    if (!may_name(block)) return;
    const auto found = names_.find(block);
    if (found == names_.end()) return;
    const auto& [word, kind] = found->second;
    if (pm::load(*word) == block) drop(*word, kind);
  }

  /// The index reaches the blobs of an entry.
  template <class K>
  void reached_entry(const ValueCodec& values, Word key, Word value) {
    reached_key<K>(key);
    if (values.blobs(value) != 0) reached(blob_offset(value));
  }
  /// The index reaches a leaf: its anchor, the anchor's bound, and the block.
  template <class K>
  void reached_leaf(pm::Offset anchor, Word low, pm::Offset block) {
    reached(anchor | kAnchorTag);
    reached(block);
    reached_key<K>(low);
  }
  template <class K>
  void reached_key(Word key) {
    if (Codec<K>::blobs(key) != 0) reached(blob_offset(key));
  }

  /// Calls visit(word) for all words that still name something that was unlinked.
  template <class Visit>
  void for_each_unlinked(Visit visit) {
    for (const auto& [block, name] : names_) {
      if (name.kind == Kind::unlinked && pm::load(*name.word) == block) visit(*name.word);
    }
  }

 private:
  struct Name {
    pm::Offset* word;
    Kind kind;
  };

  /// False for nearly all blocks that are not named: each leaf that becomes warm asks, and the
  /// filter stays in the nearest cache.
  bool may_name(pm::Offset block) const { return filter_.test(filter_bit(block)); }
  static std::size_t filter_bit(pm::Offset block) {
    return block * 0x9e37'79b9'7f4a'7c15 >> (64 - kFilterBits);  // multiplicative hashing
  }

  /// Durable when it returns.
  void drop(pm::Offset& word, Kind kind) {
    pm_.publish(word, kind == Kind::first_claim ? kNoBlock : pm::kNull);
  }

  static constexpr unsigned kFilterBits = 16;

  const pm::Persister& pm_;
  std::bitset<std::size_t{1} << kFilterBits> filter_;
  std::unordered_map<pm::Offset, Name> names_;
};

}  // namespace perdix::detail::index::nbtree
