// Iteration: the index is brought up to date first, then read in batches. Under the lock of the
// plug-in words are taken only; what they refer to stays for as long as the Guard, and is copied
// without the lock.
#include <algorithm>

#include "epoch/guard.h"
#include "index/tips/map.h"

namespace perdix::detail::index::tips {

template <class K, class V>
auto Map<K, V>::pending() const -> Pending {
  Pending pending;
  core_.for_each_pending([&](const Entry& entry) {
    std::optional<V> value;
    if (entry.operation() == Operation::put) value = V(Raw<V>::view(entry.value()));
    pending.insert_or_assign(K(Raw<K>::view(entry.key())), std::move(value));
  });
  return pending;
}

/// The pairs of one range of hashes after the other, then what is pending.
template <class K, class V>
void Map<K, V>::for_each(Visitor<K, V> visit) const {
  struct Read {
    const Map& map;
    const Pending& pending;
    CopiedPairs<K, V> batch;
    static bool add(void* context, Word key, Word value) {
      auto& read = *static_cast<Read*>(context);
      if (read.pending.find(read.map.key_of(key)) == read.pending.end())
        read.batch.add(read.map.key_of(key), read.map.value_of_word(value));
      return true;
    }
  };
  Pending pending;
  pool::as_errors(pool(), [&] { core_.catch_up(), pending = this->pending(); });
  Read read{*this, pending, {}};
  std::uint64_t position = 0;
  std::size_t shown = 0;
  do {
    pool::as_errors(pool(), [&] {
      read.batch.clear();
      const epoch::Guard guard;
      do {
        position = core_.plugin().walk(core_.index(), position, &read, Read::add);
      } while (position != 0 && !read.batch.is_full());
      core_.report_index();
      core_.require_whole();
      pool().require_usable();  // what was read may have been there before a sync failed
    });
    if (!read.batch.show(visit, pool(), shown)) return;
  } while (position != 0);
  read.batch.clear();
  pool::as_errors([&] {
    for (const auto& [key, value] : pending)
      if (value) read.batch.add(key, *value);
  });
  read.batch.show(visit, pool(), shown);
}

/// What a plug-in shows of one batch.
template <class K, class V>
struct OrderedMap<K, V>::Read {
  CopiedPairs<K, V>& batch;
  std::size_t limit;
  bool complete = true;  // all pairs to the last one were shown

  static bool add(void* context, Word key, Word value) {
    auto& read = *static_cast<Read*>(context);
    if (read.batch.size() == read.limit) return read.complete = false;
    read.batch.take(key, value);
    return true;
  }
};

template <class K, class V>
void OrderedMap<K, V>::require_order(const CopiedPairs<K, V>& batch, Key position) const {
  bool ascending = batch.size() == 0 || !(batch.key(0) < position);
  for (std::size_t i = 1; i < batch.size(); ++i) ascending &= batch.key(i - 1) < batch.key(i);
  if (!ascending) throw_unordered(this->pool());
}

/// Returns where the pair behind the batch begins, if there is one.
template <class K, class V>
std::optional<K> OrderedMap<K, V>::read_index(CopiedPairs<K, V>& batch, Key position,
                                              std::size_t limit) const {
  batch.clear(limit);
  Read read{batch, std::min(limit, batch.kMaxPairs)};
  const epoch::Guard guard;
  const auto from = this->word_of(position);
  const Word word = from.word();
  this->core().plugin().scan(this->core().index(), &word, &read, Read::add);
  this->core().report_index();
  this->core().require_whole();
  this->pool().require_usable();  // what was read may have been there before a sync failed
  const bool copied = batch.copy_pairs(this->core());
  require_order(batch, position);
  if (copied && read.complete) return std::nullopt;
  return successor(batch.key(batch.size() - 1));
}

/// Pairs with what is pending for their keys in its place: from `from` to the last pair, or to the
/// end.
template <class K, class V>
CopiedPairs<K, V> merged(const CopiedPairs<K, V>& pairs, const K& from, bool to_the_end,
                         const std::map<K, std::optional<V>, std::less<>>& pending) {
  CopiedPairs<K, V> merged;
  merged.clear(pairs.size());
  auto change = pending.lower_bound(from);
  for (std::size_t i = 0; i < pairs.size() || (to_the_end && change != pending.end());) {
    const bool is_pair = i < pairs.size();
    if (change == pending.end() || (is_pair && pairs.key(i) < change->first)) {
      merged.add(pairs.key(i), pairs.value(i)), ++i;
      continue;
    }
    if (is_pair && pairs.key(i) == change->first) ++i;
    if (change->second) merged.add(change->first, *change->second);
    ++change;
  }
  return merged;
}

/// Fills a batch from a position on, which it moves behind it. False if nothing comes after that.
template <class K, class V>
bool OrderedMap<K, V>::read_batch(CopiedPairs<K, V>& batch, K& position, std::size_t limit,
                                  const Pending& pending) const {
  std::optional<K> next = read_index(batch, position, limit);
  if (!pending.empty()) {
    batch = merged(batch, position, !next, pending);
    if (batch.size() > limit) {
      batch.shrink(limit);
      next = successor(batch.key(limit - 1));
    }
  }
  if (!next) return false;
  position = std::move(*next);
  return true;
}

/// The first batch is as long as the last scan was, since what is read beyond the end is in vain.
template <class K, class V>
void OrderedMap<K, V>::scan(Key from, Visitor<K, V> visit, std::size_t limit) const {
  Pending pending;
  K position = pool::as_errors(this->pool(), [&] {
    this->core().catch_up(), pending = this->pending();
    return K(from);
  });
  const std::size_t expected = expected_.load(std::memory_order_relaxed);
  std::size_t most = expected, shown = 0;
  CopiedPairs<K, V> batch;
  for (bool more = true; more && shown < limit; most = std::min(2 * most, batch.kMaxPairs)) {
    more = pool::as_errors(this->pool(), [&] {
      return read_batch(batch, position, std::min(limit - shown, most), pending);
    });
    if (!batch.show(visit, this->pool(), shown)) break;
  }
  constexpr std::size_t kFewest = 8;
  const std::size_t next = std::clamp(shown, kFewest, batch.kMaxPairs);
  if (next != expected) expected_.store(next, std::memory_order_relaxed);
}

template <class K, class V>
auto OrderedMap<K, V>::last_in_index(Key bound, bool strictly) const -> std::optional<Pair> {
  const epoch::Guard guard;
  const auto wanted = this->word_of(bound);
  Word key = 0, value = 0;
  const Core& core = this->core();
  const bool found = core.plugin().find_last(core.index(), wanted.word(), strictly, &key, &value);
  core.report_index();
  if (!found) return std::nullopt;
  return Pair(this->key_of(key), this->value_of_word(value));
}

/// The greater one of what the index has and what is pending.
template <class K, class V>
auto OrderedMap<K, V>::find_last(Key bound, bool strictly) const -> std::optional<Pair> {
  this->core().catch_up();
  const Pending pending = this->pending();
  std::optional<Pair> pair = last_in_index(bound, strictly);
  if (pending.empty()) return pair;
  while (pair) {
    const auto change = pending.find(pair->first);
    if (change == pending.end() || change->second) break;
    pair = last_in_index(pair->first, true);
  }
  for (auto at = strictly ? pending.lower_bound(bound) : pending.upper_bound(bound);
       at != pending.begin();) {
    --at;
    if (pair && at->first < pair->first) break;
    if (at->second) return Pair(at->first, *at->second);
  }
  return pair;
}

template class Map<std::uint64_t, std::uint64_t>;
template class Map<std::uint64_t, std::string>;
template class Map<std::string, std::uint64_t>;
template class Map<std::string, std::string>;
template class OrderedMap<std::uint64_t, std::uint64_t>;
template class OrderedMap<std::uint64_t, std::string>;
template class OrderedMap<std::string, std::uint64_t>;
template class OrderedMap<std::string, std::string>;

}  // namespace perdix::detail::index::tips
