// Visits of a whole table: verification of every invariant that layout.h states (H1-H9), the list
// of all blocks that the table reaches, how many pairs it has, and statistics.
#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <perdix/error.h>
#include <perdix/types.h>

#include "epoch/guard.h"
#include "index/cceh/owned.h"
#include "index/cceh/search.h"
#include "index/common/pair_count.h"
#include "index/common/problems.h"
#include "pool/open_index.h"

namespace perdix::detail::index::cceh {

template <class K>
class Survey {
 public:
  using Key = View<K>;

  /// All outlive this. `pairs`: of the table.
  Survey(const SegmentSearch<K>& search, const PairCount& pairs)
      : search_(search),
        segments_(search.segments()),
        pool_(segments_.pool()),
        root_(segments_.root()),
        pairs_(pairs) {}

  CheckReport check() {
    as_problem(report_, [&] {
      search_.require_resumed();
      const epoch::Guard guard;
      check_directory();
      std::vector<std::uint64_t> numbers;
      search_.for_each_segment([&](const SeenSegment& seen, KeyHash) {
        check_segment(seen);
        numbers.push_back(pm::load(segments_.head_of(seen.entry).number));
        return true;
      });
      check_numbers(std::move(numbers));
      check_zero();
      const std::uint64_t counted = size();
      expect(report_.pairs == counted, "{} pairs are counted, {} are there", counted,
             report_.pairs);
      if (search_.buffers() != nullptr) search_.buffers()->log().check(report_);
    });
    audit(pool_.allocator(), report_, "H8", [&](Owned& owned) { walk(owned); });
    return report_;
  }

  void for_each_block(const pool::BlockVisitor& visit) const {
    search_.require_resumed();
    const epoch::Guard guard;
    ShownBlocks shown(visit);
    walk(shown);
  }

  std::uint64_t size() const {
    return pairs_.get([&] {
      const epoch::Guard guard;
      std::uint64_t pairs = search_.find_zero() ? 1 : 0;
      std::vector<Pair> found;
      search_.for_each_segment([&](const SeenSegment& seen, KeyHash from) {
        search_.collect(seen, from, found);
        if (!seen.valid()) return false;
        pairs += found.size();
        return true;
      });
      return pairs;
    });
  }

  /// Without what the table takes besides the search, and without the time of its recovery.
  IndexStats stats() const {
    IndexStats stats;
    const epoch::Guard guard;
    const Router& router = search_.router();
    std::uint64_t bytes = sizeof(Root) + router.directory().bytes();
    const auto count = [&](const Pair& pair) {
      ++stats.pairs;
      bytes += static_cast<std::uint64_t>(segments_.keys().footprint(pair.key) +
                                          segments_.values().footprint(pair.value));
    };
    std::vector<Pair> found;
    search_.for_each_segment([&](const SeenSegment& seen, KeyHash from) {
      search_.collect(seen, from, found);
      const std::uint64_t of_overflow = segments_.overflow_of(seen.entry).size_bytes();
      if (!seen.valid()) return false;
      ++stats.leaves;
      bytes += segments_.shape().segment_bytes() + of_overflow;
      for (const Pair& pair : found) count(pair);
      return true;
    });
    if (const std::optional<Word> value = search_.find_zero()) count({0, *value});
    stats.pm_bytes = bytes;
    stats.dram_bytes = router.latches().bytes() + router.directory().dram_bytes();
    if (const auto* const buffers = search_.buffers()) {
      stats.pm_bytes += buffers->log().pm_bytes();
      stats.dram_bytes += buffers->dram_bytes();
    }
    stats.load_factor = static_cast<double>(stats.pairs) /
                        static_cast<double>(stats.leaves * segments_.shape().slots());
    return stats;
  }

 private:
  void walk(Owned& owned) const {
    std::uint64_t word = pool_.offset(&root_);  // a copy does: only a drop changes it
    const auto walk_buffered = [&](const Entry& segment, HashRange) {
      if (search_.buffers() != nullptr)
        walk_buffer<K>(segments_.values(), search_.buffers()->of(segment.offset()), owned);
    };
    cceh::walk<K>(segments_, word, walk_buffered, owned);
  }

  void check_directory() {
    const Directory& directory = search_.router().directory();
    for (std::uint64_t i = 0; i < directory.bytes() / sizeof(std::uint64_t); ++i)
      expect(directory.sound_entry(i), "entry {} of the directory is no leader (H3)", i);
  }

  void check_segment(const SeenSegment& seen) {
    const pm::Offset segment = seen.entry.offset();
    const SegmentHead& head = segments_.head_of(seen.entry);
    expect(pm::load(head.magic) == SegmentHead::kMagic, "segment {:#x} has no mark", segment);
    const Reference overflow = Reference::unpack(pm::load(head.overflow));
    expect(overflow.offset == pm::kNull || seen.entry.crowded(),
           "segment {:#x} has an overflow and is not marked as crowded (H6)", segment);
    std::vector<Word> found;
    segments_.for_each_slot(seen.entry, [&](const Pair& pair) {
      if (!segments_.counts(pm::load(pair.key), seen.range)) return false;
      found.push_back(pair.key);
      check_pair(seen, pair);
      return false;
    });
    check_buffer(seen, found);
    check_keys(std::move(found));
  }

  /// A pair that counts: its strings are there, and it lies where its hash says (H4, H5, H8).
  void check_pair(const SeenSegment& seen, const Pair& pair) {
    const pm::Offset segment = seen.entry.offset();
    const Shape& shape = segments_.shape();
    if (!sound_pair(segments_.keys(), segments_.values(), pair.key, pair.value)) {
      expect(false, "segment {:#x}: a pair refers to a string that is not there (H8)", segment);
      return;
    }
    const KeyHash hash = segments_.hash_of_word(pair.key);
    expect(segments_.tag_of(pair.key) == hash.tag(), "segment {:#x}: a key has another one's tag",
           segment);
    expect(hash.prefix(seen.range.depth) == seen.range.prefix,
           "segment {:#x}: a pair belongs to another segment (H4)", segment);
    const std::ptrdiff_t slot = &pair - segments_.slots_of(seen.entry);
    if (slot >= 0 && slot < static_cast<std::ptrdiff_t>(shape.slots())) {
      const auto bucket = static_cast<unsigned>(slot) / kBucketPairs;
      const auto its = hash.buckets_of(shape.buckets);
      expect(bucket == its[0] || bucket == its[1],
             "segment {:#x}: the pair in slot {} is in neither of its buckets (H5)", segment, slot);
    }
    ++report_.pairs;
  }

  /// The keys of a segment's pairs differ (H5).
  void check_keys(std::vector<Word> found) {
    const Codec<K>& keys = segments_.keys();
    std::erase_if(found, [&](Word word) { return !keys.sound(word); });
    std::sort(found.begin(), found.end(),
              [&](Word a, Word b) { return keys.view(a) < keys.view(b); });
    const auto twice = std::adjacent_find(
        found.begin(), found.end(), [&](Word a, Word b) { return keys.view(a) == keys.view(b); });
    expect(twice == found.end(), "a segment has two pairs of one key (H5)");
  }

  /// The buffer of a segment says what the log does (buffers.h, B1).
  void check_buffer(const SeenSegment& seen, std::vector<Word>& found) {
    const auto* const buffer = search_.buffer_of(seen);
    if (buffer == nullptr) return;
    const pm::Offset segment = seen.entry.offset();
    for (unsigned i = 0; i < buffer->size(); ++i) {
      const Pair pair{buffer->key(i), buffer->value(i)};
      found.push_back(pair.key);
      check_pair(seen, pair);
    }
    expect(buffer->owner == pm::load(segments_.head_of(seen.entry).number),
           "segment {:#x}: its buffer is another one's (B1)", segment);
    expect(search_.buffers()->agrees_with_chain(*buffer),
           "segment {:#x}: the log and the write buffer disagree (B1)", segment);
  }

  /// Numbers of segments differ, and were drawn (H9).
  void check_numbers(std::vector<std::uint64_t> numbers) {
    std::erase(numbers, 0);
    std::sort(numbers.begin(), numbers.end());
    expect(std::adjacent_find(numbers.begin(), numbers.end()) == numbers.end(),
           "two segments have one number (H9)");
    expect(numbers.empty() || numbers.back() <= pm::load(root_.numbers),
           "a segment has a number that was not drawn (H9)");
  }

  void check_zero() {
    const std::optional<Word> value = search_.find_zero();
    if (!value) return;
    expect(segments_.values().sound(*value), "the pair of the root block has no value (H7)");
    ++report_.pairs;
  }

  template <class... Args>
  void expect(bool holds, fmt::format_string<Args...> format, Args&&... args) {
    Problems(report_).expect(holds, format, std::forward<Args>(args)...);
  }

  const SegmentSearch<K>& search_;
  const Segments<K>& segments_;
  pool::PoolCore& pool_;
  const Root& root_;
  const PairCount& pairs_;
  CheckReport report_;  // what check() has found so far
};

}  // namespace perdix::detail::index::cceh
