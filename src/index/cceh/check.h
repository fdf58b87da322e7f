// Verification of every invariant that layout.h states (H1-H9), the list of all blocks that a table
// reaches, and how many pairs it has.
#pragma once

#include <algorithm>
#include <vector>

#include "index/cceh/cceh.h"
#include "index/cceh/search.h"
#include "index/common/problems.h"

namespace perdix::detail::index::cceh {

/// What check() has found so far.
template <class K>
struct WordTable<K>::Checked {
  CheckReport report;

  template <class... Args>
  void expect(bool holds, fmt::format_string<Args...> format, Args&&... args) {
    Problems(report).expect(holds, format, std::forward<Args>(args)...);
  }
};

/// Calls visit(seen) for all segments in the order of their hashes. A part of the hashes that was
/// shown is not shown again, but that the segment may have been joined with one that was: the
/// second argument is the hash from which on its pairs are new. A visit that returns false is
/// repeated. Under a guard.
template <class K>
template <class Visit>
void WordTable<K>::for_each_segment(Visit visit) const {
  KeyHash at;
  do {
    Seen seen = locate(at);
    while (!visit(seen, at)) seen = locate(at);
    at.bits = seen.range.end();
  } while (at.bits != 0);
}

/// A pair that counts: its strings are there, and it lies where its hash says (H4, H5, H8).
template <class K>
void WordTable<K>::check_pair(const Seen& seen, const Pair& pair, Checked& checked) const {
  const pm::Offset segment = seen.entry.offset;
  if (!keys_.sound(pair.key) || !codec_.sound(pair.value)) {
    checked.expect(false, "segment {:#x}: a pair refers to a string that is not there (H8)",
                   segment);
    return;
  }
  const Key key = keys_.view(pair.key);
  const KeyHash hash = hash_of(key);
  checked.expect(KnownHash<K>::of(pair.key, hash_).tag() == hash.tag(),
                 "segment {:#x}: a key has another one's tag", segment);
  checked.expect(hash.prefix(seen.range.depth) == seen.range.prefix,
                 "segment {:#x}: a pair belongs to another segment (H4)", segment);
  const std::ptrdiff_t slot = &pair - slots_of(seen.entry);
  if (slot >= 0 && slot < static_cast<std::ptrdiff_t>(shape_.slots())) {
    const auto bucket = static_cast<unsigned>(slot) / kBucketPairs;
    const unsigned home = hash.bucket(shape_.buckets);
    checked.expect((bucket + shape_.buckets - home) % shape_.buckets < kProbe,
                   "segment {:#x}: the pair in slot {} is too far from its bucket (H5)", segment,
                   slot);
  }
  checked.report.blocks += Keys::blobs(pair.key) + codec_.blobs(pair.value);
  ++checked.report.pairs;
}

/// The keys of a segment's pairs differ (H5).
template <class K>
void WordTable<K>::check_keys(std::vector<Word> found, Checked& checked) const {
  std::erase_if(found, [&](Word word) { return !keys_.sound(word); });
  std::sort(found.begin(), found.end(),
            [&](Word a, Word b) { return keys_.view(a) < keys_.view(b); });
  const auto twice = std::adjacent_find(
      found.begin(), found.end(), [&](Word a, Word b) { return keys_.view(a) == keys_.view(b); });
  checked.expect(twice == found.end(), "a segment has two pairs of one key (H5)");
}

template <class K>
void WordTable<K>::check_segment(const Seen& seen, Checked& checked) const {
  const pm::Offset segment = seen.entry.offset;
  ++checked.report.blocks;
  checked.expect(pool_.allocator().validate_block(segment, shape_.segment_bytes()),
                 "segment {:#x} lies in free memory (H8)", segment);
  const SegmentHead& head = head_of(seen.entry);
  checked.expect(pm::load(head.magic) == SegmentHead::kMagic, "segment {:#x} has no mark", segment);
  const Reference overflow = Reference::unpack(pm::load(head.overflow));
  checked.expect(overflow.offset == pm::kNull || seen.entry.crowded,
                 "segment {:#x} has an overflow and is not marked as crowded (H6)", segment);
  if (seen.entry.crowded && overflow.offset != pm::kNull) {
    ++checked.report.blocks;
    checked.expect(
        pool_.allocator().validate_block(overflow.offset, overflow_of(seen.entry).size_bytes()),
        "segment {:#x}: its overflow lies in free memory (H8)", segment);
  }
  std::vector<Word> found;
  for_each_slot(seen.entry, [&](const Pair& pair) {
    if (!counts(pm::load(pair.key), seen.range)) return false;
    found.push_back(pair.key);
    check_pair(seen, pair, checked);
    return false;
  });
  check_buffer(seen, found, checked);
  check_keys(std::move(found), checked);
}

/// The buffer of a segment says what the log does (buffers.h, B1).
template <class K>
void WordTable<K>::check_buffer(const Seen& seen, std::vector<Word>& found,
                                Checked& checked) const {
  const Buffer* buffer = buffer_of(seen);
  if (buffer == nullptr) return;
  const pm::Offset segment = seen.entry.offset;
  for (unsigned i = 0; i < buffer->size(); ++i) {
    const Pair pair{buffer->key(i), buffer->value(i)};
    found.push_back(pair.key);
    check_pair(seen, pair, checked);
  }
  checked.expect(buffer->owner == pm::load(head_of(seen.entry).number),
                 "segment {:#x}: its buffer is another one's (B1)", segment);
  checked.expect(buffers_->agrees_with_chain(*buffer),
                 "segment {:#x}: the log and the write buffer disagree (B1)", segment);
}

/// Numbers of segments differ, and were drawn (H9).
template <class K>
void WordTable<K>::check_numbers(std::vector<std::uint64_t> numbers, Checked& checked) const {
  std::erase(numbers, 0);
  std::sort(numbers.begin(), numbers.end());
  checked.expect(std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end(),
                 "two segments have one number (H9)");
  checked.expect(numbers.empty() || numbers.back() <= pm::load(root_.numbers),
                 "a segment has a number that was not drawn (H9)");
}

template <class K>
void WordTable<K>::check_directory(Checked& checked) const {
  checked.expect(pool_.allocator().validate_block(directory_.block(), directory_.bytes()),
                 "the directory lies in free memory (H8)");
  for (std::uint64_t i = 0; i < directory_.bytes() / sizeof(std::uint64_t); ++i)
    checked.expect(directory_.sound_entry(i), "entry {} of the directory is no leader (H3)", i);
  checked.report.blocks += 2;  // with the root block
}

template <class K>
CheckReport WordTable<K>::check() const {
  Checked checked;
  try {
    require_resumed();
    const epoch::Guard guard;
    checked.expect(pool_.allocator().validate_block(pool_.offset(&root_), sizeof(Root)),
                   "the root block lies in free memory (H8)");
    check_directory(checked);
    std::vector<std::uint64_t> numbers;
    for_each_segment([&](const Seen& seen, KeyHash) {
      check_segment(seen, checked);
      numbers.push_back(pm::load(head_of(seen.entry).number));
      return true;
    });
    check_numbers(std::move(numbers), checked);
    if (const std::optional<Word> value = find_zero()) {
      checked.expect(codec_.sound(*value), "the pair of the root block has no value (H7)");
      checked.report.blocks += codec_.blobs(*value);
      ++checked.report.pairs;
    }
    checked.expect(checked.report.pairs == size(), "{} pairs are counted, {} are there", size(),
                   checked.report.pairs);
    if (buffers_ != nullptr) buffers_->log().check(checked.report);
  } catch (const Error& error) {
    checked.expect(false, "{}", error.what());
  }
  return checked.report;
}

template <class K>
void WordTable<K>::for_each_block(const BlockVisitor& visit) const {
  require_resumed();
  const epoch::Guard guard;
  if (buffers_ != nullptr) buffers_->log().for_each_block(visit);
  visit(pool_.offset(&root_));
  visit(directory_.block());
  if (const std::optional<Word> value = find_zero(); value && codec_.blobs(*value) != 0)
    visit(blob_offset(*value));
  for_each_segment([&](const Seen& seen, KeyHash) {
    visit(seen.entry.offset);
    const Reference overflow = overflow_reference(seen.entry);
    if (overflow.offset != pm::kNull) visit(overflow.offset);
    std::vector<Pair> pairs;
    collect(seen, {}, pairs);
    for (const Pair& pair : pairs) {
      if (Keys::blobs(pair.key) != 0) visit(blob_offset(pair.key));
      if (codec_.blobs(pair.value) != 0) visit(blob_offset(pair.value));
    }
    return true;
  });
}

template <class K>
std::uint64_t WordTable<K>::size() const {
  return pairs_.get([&] {
    const epoch::Guard guard;
    std::uint64_t pairs = find_zero() ? 1 : 0;
    std::vector<Pair> found;
    for_each_segment([&](const Seen& seen, KeyHash from) {
      collect(seen, from, found);
      if (!seen.valid()) return false;
      pairs += found.size();
      return true;
    });
    return pairs;
  });
}

template <class K>
IndexStats WordTable<K>::stats() const {
  IndexStats stats;
  const epoch::Guard guard;
  std::uint64_t bytes = sizeof(Root) + directory_.bytes();
  const auto count = [&](const Pair& pair) {
    ++stats.pairs;
    bytes += static_cast<std::uint64_t>(keys_.footprint(pair.key) + codec_.footprint(pair.value));
  };
  std::vector<Pair> found;
  for_each_segment([&](const Seen& seen, KeyHash from) {
    collect(seen, from, found);
    const std::uint64_t of_overflow = overflow_of(seen.entry).size_bytes();
    if (!seen.valid()) return false;
    ++stats.leaves;
    bytes += shape_.segment_bytes() + of_overflow;
    for (const Pair& pair : found) count(pair);
    return true;
  });
  if (const std::optional<Word> value = find_zero()) count({0, *value});
  stats.pm_bytes = bytes + (buffers_ == nullptr ? 0 : buffers_->log().pm_bytes());
  stats.dram_bytes = sizeof *this + latches_.bytes() + directory_.dram_bytes() +
                     (buffers_ == nullptr ? 0 : buffers_->dram_bytes());
  stats.load_factor =
      static_cast<double>(stats.pairs) / static_cast<double>(stats.leaves * shape_.slots());
  stats.recovery_seconds = recovery_seconds_;
  return stats;
}

}  // namespace perdix::detail::index::cceh
