// The way to a segment, and point lookups: get, contains.
//
// A lookup takes a Seen, reads, and then asks whether the Seen is still valid(): only then what was
// read counts. The caller holds an epoch::Guard.
#pragma once

#include "index/cceh/cceh.h"

namespace perdix::detail::index::cceh {

/// The segment that is responsible for a hash, as long as the result is valid.
template <class K>
[[gnu::always_inline]] inline auto WordTable<K>::look(KeyHash hash) const -> Seen {
  for (;;) {
    const Directory::Route route = directory_.find(hash);
    Latch& latch = latches_.of(route.entry.offset);
    const std::uint64_t version = latch.read_begin();
    const HashRange range{hash.prefix(route.entry.depth), route.entry.depth};
    if (!directory_.current(route)) [[unlikely]]
      continue;
    return {route.entry, range, &latch, version};
  }
}

/// As look(); and the chain of the segment in the log is adopted.
template <class K>
auto WordTable<K>::locate(KeyHash hash) const -> Seen {
  for (;;) {
    const Seen seen = look(hash);
    if (buffers_ == nullptr || buffers_->ready(seen)) [[likely]]
      return seen;
  }
}

/// The root block, which has the pair of the key whose word is 0 (H7).
template <class K>
auto WordTable<K>::see_root() const -> Seen {
  Latch& latch = latches_.of(pool_.offset(&root_));
  return {{}, {}, &latch, latch.read_begin()};
}

/// Calls visit(pair) for the slots of the buckets of a hash, until it returns true. Returns whether
/// it did.
template <class K>
template <class Visit>
[[gnu::always_inline]] inline bool WordTable<K>::for_each_near(const Entry& entry, KeyHash hash,
                                                               Visit visit) const {
  Pair* const slots = slots_of(entry);
  unsigned bucket = hash.bucket(shape_.buckets);
  for (unsigned i = 0; i < kProbe; ++i) {
    for (unsigned at = 0; at < kBucketPairs; ++at) {
      if (visit(slots[bucket * kBucketPairs + at])) return true;
    }
    if (++bucket == shape_.buckets) bucket = 0;
  }
  return false;
}

/// The same for all slots of a segment, those of its overflow last.
template <class K>
template <class Visit>
bool WordTable<K>::for_each_slot(const Entry& entry, Visit visit) const {
  for (Pair& pair : std::span(slots_of(entry), shape_.slots())) {
    if (visit(pair)) return true;
  }
  for (Pair& pair : overflow_of(entry)) {
    if (visit(pair)) return true;
  }
  return false;
}

/// The slot that has the key, null if none has. The key belongs to the segment, so a pair that a
/// split has moved (H4) has another key and another tag. Its string, which may be freed, is not
/// read.
template <class K>
Pair* WordTable<K>::find_in(const Seen& seen, Key key, KeyHash hash) const {
  if (seen.entry.offset == pm::kNull) return pm::load(root_.zero.key) != 0 ? &root_.zero : nullptr;
  const Hash16 tag = hash.tag();
  Pair* found = nullptr;
  const auto visit = [&](Pair& pair) {
    if (!keys_.equal(pm::load(pair.key), key, tag)) return false;
    found = &pair;
    return true;
  };
  if (for_each_near(seen.entry, hash, visit) || !seen.entry.crowded) [[likely]]
    return found;
  for (Pair& pair : overflow_of(seen.entry)) {
    if (visit(pair)) break;
  }
  return found;
}

/// The value's word. Reads the segment that was seen, and locates the key's segment again whenever
/// a writer has changed what was read.
template <class K>
std::optional<Word> WordTable<K>::find_from(Seen seen, Key key, KeyHash hash) const {
  for (;; seen = see(key, hash)) {
    std::optional<Word> value;
    if (const auto found = find_buffered(seen, key, hash)) {  // first: it costs no line of PM
      value = found.value();
    } else if (const Pair* pair = find_in(seen, key, hash)) {
      value = pm::load(pair->value);
    }
    if (seen.valid()) return value;
  }
}

template <class K>
std::optional<Word> WordTable<K>::find_word(Key key) const {
  const KeyHash hash = hash_of(key);
  return find_from(see(key, hash), key, hash);
}

template <class K>
std::optional<Word> WordTable<K>::find_zero() const {
  return find_from(see_root(), Key{}, {});
}

/// Locks the segment of a key, or the root block.
template <class K>
void WordTable<K>::lock(Locked& locked, Key key, KeyHash hash) const {
  while (!locked.try_lock(see(key, hash))) {
  }
}

/// What the segment has of the key. A free slot is one whose pair does not count (H4).
template <class K>
auto WordTable<K>::search(const Locked& locked, Key key, KeyHash hash) const -> Slots {
  Slots slots;
  slots.found = find_in(locked, key, hash);
  if (slots.found != nullptr) return slots;
  if (is_zero(key)) {
    slots.free = &root_.zero;
    return slots;
  }
  const auto first_free = [&](Pair*& free) {
    return [&](Pair& pair) {
      if (counts(pm::load(pair.key), locked.range)) return false;
      free = &pair;
      return true;
    };
  };
  for_each_near(locked.entry, hash, first_free(slots.free));
  if (slots.free != nullptr) return slots;
  for (Pair& pair : overflow_of(locked.entry)) {
    if (first_free(slots.free_in_overflow)(pair)) break;
  }
  return slots;
}

/// The segment may begin below `from`: it may have been joined since the caller has seen it.
template <class K>
void WordTable<K>::collect(const Seen& seen, KeyHash from, std::vector<Pair>& pairs) const {
  pairs.clear();
  const bool all = seen.range.first().bits >= from.bits;
  for_each_slot(seen.entry, [&](const Pair& pair) {
    const Pair words{pm::load(pair.key), pm::load(pair.value)};
    if (counts(words.key, seen.range) && (all || hash_of_word(words.key).bits >= from.bits))
      pairs.push_back(words);
    return false;
  });
  const Buffer* buffer = buffer_of(seen);
  for (unsigned i = 0; buffer != nullptr && i < buffer->size(); ++i) {
    const Pair words{buffer->key(i), buffer->value(i)};
    if (all || hash_of_word(words.key).bits >= from.bits) pairs.push_back(words);
  }
}

}  // namespace perdix::detail::index::cceh
