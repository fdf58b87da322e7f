#include "index/skiplist/skiplist.h"

#include <chrono>

#include "epoch/guard.h"
#include "index/common/limits.h"
#include "index/common/path_budget.h"
#include "index/common/problems.h"
#include "index/common/retry.h"
#include "index/skiplist/check.h"
#include "index/skiplist/lookups.h"
#include "index/skiplist/owned.h"
#include "index/skiplist/range_lookups.h"
#include "index/skiplist/range_writer.h"
#include "index/skiplist/recovery.h"

namespace perdix::detail::index::skiplist {

// --- Opening, and the end ---

template <class K>
WordList<K>::WordList(pool::IndexHandle handle, const SkipListOptions& options, std::uint64_t seed)
    : handle_(std::move(handle)),
      values_(pool(), info().value_kind),
      ways_(pool(), open_head(pool(), handle_.root()), path_budget(options)),
      towers_(ways_, values_, pairs_, seed),
      writer_(ways_, towers_, values_) {
  const auto start = std::chrono::steady_clock::now();
  open_buffers(options);
  ways_.start_filling(options.resume_in_background);
  if (buffers_ != nullptr) entry_.emplace(pool().open_indexes(), *this);
  recovery_seconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Opens the write buffers of a list that has a log, or is to have one.
template <class K>
void WordList<K>::open_buffers(const SkipListOptions& options) {
  std::uint64_t& log = log_of(ways_.nodes().head());
  const std::uint64_t budget = buffer_budget(options);
  if (!has_log(pool(), log, budget != 0)) return;
  const typename RangeBuffers<K>::Parts parts{ways_, towers_, writer_, values_, pairs_};
  buffers_ = std::make_unique<RangeBuffers<K>>(parts, pm::load(log), budget);
  buffers_->buffers().start_resumption(options.resume_in_background);
}

template <class K>
void WordList<K>::destroy(pool::PoolCore& pool, std::uint64_t& root, Kind value_kind) {
  skiplist::destroy<K>(pool, root, value_kind);
}

// --- Lookups ---

template <class K>
std::optional<Word> WordList<K>::find_word(Key key) const {
  const HashedKey<K> hashed(key);
  if (buffers_ != nullptr) [[unlikely]]
    return find_in_ranges(*buffers_, hashed, ways_.last_tall({key, true}));
  return find_from(ways_, ways_.descend({key}), hashed);
}

template <class K>
void WordList<K>::find_words(std::span<const Key> keys, std::span<std::optional<Word>> out) const {
  search_together(ways_, keys, [&](std::size_t i, const GroupedSearch<K>& search) {
    const HashedKey<K> key(keys[i]);
    out[i] = buffers_ != nullptr ? find_in_ranges(*buffers_, key, search.tall())
                                 : find_from(ways_, search.found(), key);
  });
}

template <class K>
void WordList<K>::find_last(Key key, bool strictly, LastPairs& last) const {
  const Bound<K> bound{key, !strictly};
  if (last.limit() > 1 && buffers_ == nullptr) collect_from_tall(ways_, bound, last);
  if (!last.empty()) return;
  const auto pair = buffers_ != nullptr ? find_last_in_ranges(*buffers_, bound)
                                        : skiplist::find_last(ways_, bound);
  if (pair) last.add(pair->key, pair->value);
}

/// As collect_nodes() and collect_ranges().
template <class K>
template <class Add>
bool WordList<K>::collect(SeenNode& at, K& position, std::size_t limit, Add add) const {
  return buffers_ != nullptr ? collect_ranges(*buffers_, at, position, limit, add)
                             : collect_nodes(ways_, at, position, limit, add);
}

template <class K>
void WordList<K>::scan(Key from, std::size_t limit, const PairSink<K>& show) const {
  using Shown = Batch<K, kShownAtOnce>;
  SeenNode at;
  const auto read = [&](Shown& batch, K& position, std::size_t left) {
    const epoch::Guard guard;
    batch.clear();
    const auto add = [&](const Node*, Word key, Word value) { batch.add(keys().view(key), value); };
    const bool more = collect(at, position, left, add);
    batch.copy_pairs(pool(), values_, left);
    pool().require_usable();  // what was read may have been there before a sync failed
    if (batch.complete()) return more;
    position = batch.next_key();
    at = {};
    return true;
  };
  scan_by_batches<Shown, K>(pool(), from, limit, show, read);
}

// --- Changes ---

template <class K>
bool WordList<K>::write(Key key, NewValue value, Mode mode, const NewValue* expected) {
  check_key(key);
  const PairWrite<K> write{HashedKey<K>(key), value, mode, expected};
  return retry_when_full(pool(), [&] { return try_write(write); });
}

template <class K>
bool WordList<K>::try_write(const PairWrite<K>& write) {
  if (buffers_ != nullptr) buffers_->buffers().keep_short();
  const epoch::Guard guard;
  Erased erased;
  for (;;) {
    const auto done =
        buffers_ == nullptr ? writer_.write(write, erased) : range_writer().write(write, erased);
    if (done) return *done;
    pm::on_step("skiplist: a write begins again");
  }
}

template <class K>
bool WordList<K>::erase(Key key, const NewValue* expected) {
  check_key(key);
  const HashedKey<K> hashed(key);
  const epoch::Guard guard;
  Erased erased;
  for (;;) {
    const auto done = buffers_ == nullptr ? writer_.erase(hashed, expected, erased)
                                          : range_writer().erase(hashed, expected, erased);
    if (done) return *done;
    pm::on_step("skiplist: an erase begins again");
  }
}

template <class K>
bool WordList<K>::reclaim_space() noexcept {
  return buffers_ != nullptr && buffers_->buffers().reclaim_space();
}

// --- What a list says of itself ---

/// Calls visit(node, key, value) for all pairs, as collect(). Under a guard.
template <class K>
template <class Visit>
void WordList<K>::for_each_pair(Visit visit) const {
  SeenNode at;
  K position{};
  while (collect(at, position, kNoLimit, visit)) {
  }
}

template <class K>
std::uint64_t WordList<K>::size() const {
  return pairs_.get([&] {
    const epoch::Guard guard;
    std::uint64_t pairs = 0;
    for_each_pair([&](const Node*, Word, Word) { ++pairs; });
    return pairs;
  });
}

template <class K>
IndexStats WordList<K>::stats() const {
  IndexStats stats;
  const epoch::Guard guard;
  std::uint64_t bytes = node_bytes(kMaxHeight);
  for_each_pair([&](const Node* node, Word key, Word value) {
    ++stats.pairs;
    if (node != nullptr) ++stats.leaves;
    bytes += (node == nullptr ? 0 : node_bytes(height_of(*node))) +
             static_cast<std::uint64_t>(keys().footprint(key) + values_.footprint(value));
  });
  stats.pm_bytes = bytes + (buffers_ == nullptr ? 0 : buffers_->buffers().log().pm_bytes());
  stats.dram_bytes =
      sizeof *this + ways_.dram_bytes() + (buffers_ == nullptr ? 0 : buffers_->dram_bytes());
  stats.recovery_seconds = recovery_seconds_;
  return stats;
}

template <class K>
CheckReport WordList<K>::check() const {
  CheckReport report;
  const ListChecker<K> checker(ways_, values_, buffers_.get());
  as_problem(report, [&] {
    require_resumed();
    const epoch::Guard guard;
    checker.check(report);
    Problems(report).expect(report.pairs == size(), "{} pairs are counted, {} are there", size(),
                            report.pairs);
  });
  audit(pool().allocator(), report, "L6", [&](Owned& owned) { checker.walk(owned); });
  return report;
}

template <class K>
void WordList<K>::for_each_block(const BlockVisitor& visit) const {
  require_resumed();
  const epoch::Guard guard;
  ShownBlocks shown(visit);
  ListChecker<K>(ways_, values_, buffers_.get()).walk(shown);
}

template class WordList<std::uint64_t>;
template class WordList<std::string>;

}  // namespace perdix::detail::index::skiplist
