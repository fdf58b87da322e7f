// Which of the blocks that the ledger names after a crash are in use. One thread.
#pragma once

#include <utility>

#include "index/common/word.h"
#include "index/nbtree/ledger.h"

namespace perdix::index::nbtree {

template <class K, class V>
class Census {
 public:
  explicit Census(Reached named) : named_(std::move(named)) {}

  /// False: nothing is named, so nothing needs to be noted.
  bool needed() const { return !named_.empty(); }

  /// The index reaches a block.
  void note(pm::Offset block) {
    if (named_.contains(block)) reached_.insert(block);
  }

  /// The index reaches the blobs of an entry.
  void note_entry(Word key, Word value) {
    if (Words<K>::blobs(key) != 0) note(blob_offset(key));
    if (Words<V>::blobs(value) != 0) note(blob_offset(value));
  }

  const Reached& reached() const { return reached_; }

 private:
  Reached named_;
  Reached reached_;
};

}  // namespace perdix::index::nbtree
