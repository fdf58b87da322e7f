// The way to a pair, through a segment and its write buffer; point lookups and batches of them; the
// segments in their order.
//
// A lookup takes a SeenSegment, reads, and then asks whether the SeenSegment is still valid(): only
// then what was read counts. The caller holds an epoch::Guard.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <perdix/cceh.h>

#include "index/cceh/buffers.h"
#include "index/cceh/router.h"
#include "index/cceh/segments.h"
#include "index/common/groups.h"
#include "index/common/path_budget.h"

namespace perdix::detail::index::cceh {

template <class K>
class SegmentSearch {
 public:
  using Key = View<K>;
  using Buffer = typename SegmentBuffers<K>::Buffer;

  SegmentSearch(pool::PoolCore& pool, Root& root, const Shape& shape, Kind value_kind)
      : segments_(pool, root, shape, value_kind), router_(pool, root, shape) {}

  /// Opens the copy of the directory, and the write buffers of a table that has a log or is to have
  /// one; once, before other threads use this. `pairs`: of the table.
  void open(const CcehOptions& options, PairCount& pairs) {
    Root& root = segments_.root();
    const std::uint64_t budget = buffer_budget(options);
    if (path_budget(options) != 0) router_.directory().open_copy(path_budget(options));
    if (!has_log(segments_.pool(), root.log, budget != 0)) return;
    auto buffers =
        std::make_unique<SegmentBuffers<K>>(segments_, router_, pairs, options.technique);
    buffers->open(pm::load(root.log), budget, &root.numbers);
    buffers_ = std::move(buffers);
    buffers_->start_resumption(options.resume_in_background);
  }

  const Segments<K>& segments() const { return segments_; }
  Router& router() { return router_; }
  const Router& router() const { return router_; }

  /// Null if the index never had any.
  SegmentBuffers<K>* buffers() const { return buffers_.get(); }

  /// The segment of a hash, as long as the result is valid. Its chain in the log is adopted.
  SeenSegment locate(KeyHash hash) const {
    for (;;) {
      const SeenSegment seen = router_.look(hash);
      if (buffers_ == nullptr || buffers_->ready(seen)) [[likely]]
        return seen;
    }
  }

  /// The segment of a key, or the root block.
  SeenSegment see(Key key, KeyHash hash) const {
    return segments_.is_zero(key) ? router_.look_at_root() : locate(hash);
  }
  void lock(LockedSegment& locked, Key key, KeyHash hash) const {
    while (!locked.try_lock(see(key, hash))) {
    }
  }

  Buffer* buffer_of(const SeenSegment& seen) const {
    return buffers_ == nullptr ? nullptr : buffers_->of(seen.entry.offset());
  }
  typename SegmentBuffers<K>::Found find_buffered(const SeenSegment& seen, Key key,
                                                  KeyHash hash) const {
    if (buffers_ == nullptr) return {};
    return buffers_->find(seen.entry.offset(), key, hash.tag());
  }

  bool holds_pairs(const SeenSegment& seen) const {
    const Buffer* buffer = buffer_of(seen);
    if (buffer != nullptr && !buffer->empty_chain()) return true;
    return segments_.for_each_slot(seen.entry, [&](const Pair& pair) {
      return segments_.counts(pm::load(pair.key), seen.range);
    });
  }

  /// The word of a key's value. In line as far as a table without write buffers goes: so that a
  /// lookup is short, and the processor begins the next one while this waits for memory.
  [[gnu::always_inline]] inline std::optional<Word> find(Key key) const {
    const KeyHash hash = segments_.hash_of(key);
    if (buffers_ != nullptr || segments_.is_zero(key)) [[unlikely]]
      return find_from(see(key, hash), key, hash);
    for (;;) {
      const SeenSegment seen = router_.look(hash);
      const Pair* const pair = segments_.find(seen.entry, key, hash);
      const Word value = pair == nullptr ? 0 : pm::load(pair->value);
      if (seen.valid()) [[likely]]
        return pair == nullptr ? std::nullopt : std::optional(value);
    }
  }

  /// Finds the values of a group of keys. A lookup waits for memory most of its time, so the keys
  /// take each step together, and their waits overlap: locates the segments of all keys and
  /// prefetches both buckets of each, and then reads the buckets.
  void find(std::span<const Key> keys, std::span<std::optional<Word>> out) const {
    std::array<KeyHash, kGroup> hashes;
    std::array<SeenSegment, kGroup> seen;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      hashes[i] = segments_.hash_of(keys[i]);
      seen[i] = see(keys[i], hashes[i]);
      if (seen[i].entry.offset() == pm::kNull) continue;
      const NearSlots near = segments_.near(seen[i].entry, hashes[i]);
      __builtin_prefetch(&near[0]);
      __builtin_prefetch(&near[kBucketPairs]);
    }
    for (std::size_t i = 0; i < keys.size(); ++i) out[i] = find_from(seen[i], keys[i], hashes[i]);
  }

  /// The word of the value of the key whose word is 0 (H7).
  std::optional<Word> find_zero() const { return find_from(router_.look_at_root(), Key{}, {}); }

  /// Collects the pairs of a segment that count, and whose hash is not below `from`; as they were
  /// at one moment, if it is still valid. The segment may begin below `from`: it may have been
  /// joined since the caller has seen it.
  void collect(const SeenSegment& seen, KeyHash from, std::vector<Pair>& pairs) const {
    pairs.clear();
    const bool all = seen.range.first().bits >= from.bits;
    const auto add = [&](const Pair& words) {
      if (all || segments_.hash_of_word(words.key).bits >= from.bits) pairs.push_back(words);
    };
    segments_.for_each_slot(seen.entry, [&](const Pair& pair) {
      const Pair words{pm::load(pair.key), pm::load(pair.value)};
      if (segments_.counts(words.key, seen.range)) add(words);
      return false;
    });
    const Buffer* buffer = buffer_of(seen);
    for (unsigned i = 0; buffer != nullptr && i < buffer->size(); ++i)
      add({buffer->key(i), buffer->value(i)});
  }

  /// Calls visit(seen, from) for all segments in the order of their hashes. A part of the hashes
  /// that was shown is not shown again, but that the segment may have been joined with one that
  /// was: its pairs are new from the hash `from` on. A visit that returns false is repeated.
  template <class Visit>
  void for_each_segment(Visit visit) const {
    KeyHash at;
    do {
      SeenSegment seen = locate(at);
      while (!visit(seen, at)) seen = locate(at);
      at.bits = seen.range.end();
    } while (at.bits != 0);
  }

  void require_resumed() const {
    if (buffers_ != nullptr) buffers_->require_resumed();
  }

 private:
  /// Reads the segment that was seen, and locates the key's segment again whenever a writer has
  /// changed what was read.
  [[gnu::noinline]] std::optional<Word> find_from(SeenSegment seen, Key key, KeyHash hash) const {
    for (;; seen = see(key, hash)) {
      std::optional<Word> value;
      if (const auto found = find_buffered(seen, key, hash)) {  // first: it costs no line of PM
        value = found.value();
      } else if (const Pair* pair = segments_.find(seen.entry, key, hash)) {
        value = pm::load(pair->value);
      }
      if (seen.valid()) return value;
    }
  }

  const Segments<K> segments_;
  Router router_;
  std::unique_ptr<SegmentBuffers<K>> buffers_;  // behind all that its thread uses
};

}  // namespace perdix::detail::index::cceh
