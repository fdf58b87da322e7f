// Iteration: the index is brought up to date first, then read in batches under its own lock.
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
  pool::as_errors([&] { core_.catch_up(), pending = this->pending(); });
  Read read{*this, pending, {}};
  std::uint64_t position = 0;
  do {
    pool::as_errors([&] {
      read.batch.clear();
      const epoch::Guard guard;
      do {
        position = core_.plugin().walk(core_.index(), position, &read, Read::add);
      } while (position != 0 && !read.batch.is_full());
      core_.report_index();
      core_.require_whole();
      pool().require_usable();  // what was read may have been there before a sync failed
    });
    if (!read.batch.show(visit, pool())) return;
  } while (position != 0);
  read.batch.clear();
  pool::as_errors([&] {
    for (const auto& [key, value] : pending)
      if (value) read.batch.add(key, *value);
  });
  read.batch.show(visit, pool());
}

/// What a plug-in shows of one batch.
template <class K, class V>
struct OrderedMap<K, V>::Read {
  const OrderedMap& map;
  CopiedPairs<K, V>& batch;
  std::size_t limit;
  bool complete = true;  // all pairs to the last one were shown
  bool ascending = true;

  static bool add(void* context, Word key, Word value) {
    auto& read = *static_cast<Read*>(context);
    if (read.batch.is_full() || read.batch.size() >= read.limit) return read.complete = false;
    const Key shown = read.map.key_of(key);
    const auto& pairs = read.batch.pairs();
    if (!pairs.empty() && !(pairs.back().first < shown)) return read.ascending = false;
    read.batch.add(shown, read.map.value_of_word(value));
    return true;
  }
};

/// Replaces pairs by what is pending for their keys, in [from, end of the batch].
template <class K, class V>
void merge(CopiedPairs<K, V>& batch, const K& from, bool to_the_end,
           const std::map<K, std::optional<V>, std::less<>>& pending) {
  std::vector<std::pair<K, V>> old;
  old.swap(batch.pairs());
  auto change = pending.lower_bound(from);
  auto pair = old.begin();
  batch.clear();
  while (pair != old.end() || (to_the_end && change != pending.end())) {
    const bool changed =
        change != pending.end() && (pair == old.end() || !(pair->first < change->first));
    if (!changed) {
      batch.add(pair->first, pair->second), ++pair;
      continue;
    }
    if (pair != old.end() && pair->first == change->first) ++pair;
    if (change->second) batch.add(change->first, *change->second);
    ++change;
  }
}

/// As scan_by_batches() wants it.
template <class K, class V>
bool OrderedMap<K, V>::read_batch(CopiedPairs<K, V>& batch, K& position, std::size_t limit,
                                  const Pending& pending) const {
  batch.clear();
  Read read{*this, batch, limit};
  {
    const epoch::Guard guard;
    const auto from = this->word_of(position);
    const Word word = from.word();
    this->core().plugin().scan(this->core().index(), &word, &read, Read::add);
    this->core().report_index();
    this->core().require_whole();
    this->pool().require_usable();  // what was read may have been there before a sync failed
  }
  if (!read.ascending || (batch.size() > 0 && batch.pairs().front().first < position))
    throw_unordered(this->pool());
  std::optional<K> next;
  if (!read.complete) next = successor(Key(batch.pairs().back().first));
  if (!pending.empty()) {
    merge(batch, position, read.complete, pending);
    if (batch.size() > limit) {
      batch.pairs().resize(limit);
      next = successor(Key(batch.pairs().back().first));
    }
  }
  if (!next) return false;
  position = std::move(*next);
  return true;
}

template <class K, class V>
void OrderedMap<K, V>::scan(Key from, Visitor<K, V> visit, std::size_t limit) const {
  Pending pending;
  pool::as_errors([&] { this->core().catch_up(), pending = this->pending(); });
  scan_by_batches<CopiedPairs<K, V>, K, V>(
      this->pool(), from, visit, limit,
      [&](CopiedPairs<K, V>& batch, K& position, std::size_t left) {
        return read_batch(batch, position, left, pending);
      });
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
