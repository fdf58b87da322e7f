// Iteration: the index is brought up to date first, then read in batches. Under the lock of the
// plug-in words are taken only; what they refer to stays for as long as the Guard, and is copied
// without the lock.
#include <algorithm>
#include <array>

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
struct OrderedMap<K, V>::Shown {
  struct Pair {
    Word key, value;
  };
  std::array<Pair, CopiedPairs<K, V>::kMostPairs> pairs;
  std::size_t limit;
  std::size_t size = 0;
  bool complete = true;  // all pairs to the last one were shown

  static bool add(void* context, Word key, Word value) {
    auto& shown = *static_cast<Shown*>(context);
    if (shown.size == shown.limit) return shown.complete = false;
    if constexpr (std::is_same_v<K, std::string>) prefetch(key);
    if constexpr (std::is_same_v<V, std::string>) prefetch(value);
    shown.pairs[shown.size++] = {key, value};
    return true;
  }

 private:
  static void prefetch(Word string) { __builtin_prefetch(reinterpret_cast<const void*>(string)); }
};

/// In a Guard.
template <class K, class V>
auto OrderedMap<K, V>::show_from(Key position, std::size_t limit) const -> Shown {
  Shown shown;
  shown.limit = std::min(limit, shown.pairs.size());
  const auto from = this->word_of(position);
  const Word word = from.word();
  this->core().plugin().scan(this->core().index(), &word, &shown, Shown::add);
  this->core().report_index();
  this->core().require_whole();
  this->pool().require_usable();  // what was read may have been there before a sync failed
  return shown;
}

/// In the same Guard: as many pairs as a batch has room for. Returns where the next one begins, if
/// there is one.
template <class K, class V>
std::optional<K> OrderedMap<K, V>::copy(const Shown& shown, Key position,
                                        CopiedPairs<K, V>& batch) const {
  batch.clear(shown.size);
  std::size_t i = 0;
  for (; i < shown.size && !batch.is_full(); ++i) {
    const auto& [key_word, value] = shown.pairs[i];
    const Key key = this->key_of(key_word);
    if (i == 0 ? key < position : !(batch.key(i - 1) < key)) throw_unordered(this->pool());
    batch.add(key, this->value_of_word(value));
  }
  if (i == shown.size && shown.complete) return std::nullopt;
  return successor(batch.key(i - 1));
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

/// As scan_by_batches() wants it.
template <class K, class V>
bool OrderedMap<K, V>::read_batch(CopiedPairs<K, V>& batch, K& position, std::size_t limit,
                                  const Pending& pending) const {
  std::optional<K> next;
  {
    const epoch::Guard guard;
    next = copy(show_from(position, limit), position, batch);
  }
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
