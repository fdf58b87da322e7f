// Iteration, in batches. Under the lock of the plug-in words are taken only; what they refer to
// stays for as long as the Guard, and is copied without the lock.
//
// An index with order is merged with the writes that wait (waiting.h). One without order is brought
// up to date first.
#include <algorithm>
#include <array>

#include "epoch/guard.h"
#include "index/tips/map.h"

namespace perdix::detail::index::tips {

template <class K>
auto UnorderedMap<K>::pending() const -> Pending {
  Pending pending;
  this->core().for_each_pending([&](const Entry& entry) {
    std::optional<std::string> value;
    if (entry.operation() == Operation::put) value = entry.value();
    pending.insert_or_assign(K(Raw<K>::view(entry.key())), std::move(value));
  });
  return pending;
}

/// After a look at the index: throws if half of a change may have been there, or what was there
/// before a sync failed.
template <class K>
void Map<K>::require_readable() const {
  plugged().report();
  core_->require_whole();
  pool().require_usable();
}

/// The pairs that a plug-in shows of one range of hashes, but for those of pending keys.
template <class K>
struct UnorderedMap<K>::Read {
  const UnorderedMap& map;
  const Pending& pending;
  PairCopies<K> batch;

  static bool add(void* context, Word key, Word value) {
    auto& read = *static_cast<Read*>(context);
    if (read.pending.find(read.map.key_of(key)) == read.pending.end())
      read.batch.add(read.map.key_of(key), read.map.value_of(value));
    return true;
  }
};

/// The pairs of one range of hashes after the other, then what is pending.
template <class K>
void UnorderedMap<K>::for_each(const PairSink<K>& show) const {
  Pending pending;
  pool::as_errors(this->pool(), [&] { this->core().catch_up(), pending = this->pending(); });
  Read read{*this, pending, PairCopies<K>(this->value_kind())};
  std::uint64_t position = 0;
  do {
    pool::as_errors(this->pool(), [&] {
      read.batch.clear();
      const epoch::Guard guard;
      do {
        position = this->plugged().walk(position, &read, Read::add);
      } while (position != 0 && !read.batch.is_full());
      this->require_readable();
    });
    if (!show(read.batch.copied()).all) return;
  } while (position != 0);
  read.batch.clear();
  pool::as_errors([&] {
    for (const auto& [key, value] : pending)
      if (value) read.batch.add(key, *value);
  });
  (void)show(read.batch.copied());
}

/// The words that a plug-in shows of one batch.
template <class K>
struct OrderedMap<K>::Read {
  struct Words {
    Word key, value;
  };

  Read(std::size_t most, Kind kind) : limit(most), values(kind) {}

  const std::size_t limit;  // at most kMaxPairs
  const Kind values;
  std::size_t size = 0;
  bool complete = true;  // all pairs to the last one were shown
  std::array<Words, PairCopies<K>::kMaxPairs> pairs;

  static bool add(void* context, Word key, Word value) {
    auto& read = *static_cast<Read*>(context);
    if (read.size == read.limit) return read.complete = false;
    if (kKindOf<K> == Kind::bytes) prefetch(key);
    if (read.values == Kind::bytes) prefetch(value);
    read.pairs[read.size++] = {key, value};
    return true;
  }
  static void prefetch(Word string) { __builtin_prefetch(reinterpret_cast<const void*>(string)); }
};

/// Reads words of pairs from a position on. The caller is in a Guard.
template <class K>
void OrderedMap<K>::read_index(Read& read, const K& position) const {
  const KeyWord from(Raw<K>(position).bytes(), kKindOf<K>);
  const Word word = from.word();
  this->plugged().scan(&word, &read, Read::add);
  this->require_readable();
  bool ascending = read.size == 0 || !(this->key_of(read.pairs[0].key) < Key(position));
  for (std::size_t i = 1; i < read.size; ++i)
    ascending &= this->key_of(read.pairs[i - 1].key) < this->key_of(read.pairs[i].key);
  if (!ascending) throw_unordered(this->pool());
}

/// The key of a write that waits.
template <class K>
auto OrderedMap<K>::key_at(const Waiting::Cursor& cursor) -> Key {
  if constexpr (std::is_same_v<K, std::uint64_t>) {
    return cursor.rank();
  } else {
    return cursor.entry()->key();
  }
}

/// Fills a batch from a position on, which it moves behind it, with the writes that wait in the
/// place of what the index has for their keys. False if nothing comes after that.
template <class K>
bool OrderedMap<K>::read_batch(PairCopies<K>& batch, K& position, std::size_t limit) const {
  batch.clear(limit);
  const epoch::Guard guard;
  const Waiting::View waiting(this->core().waiting());  // before the index is read
  Read read(std::min(limit, batch.kMaxPairs), this->value_kind());
  read_index(read, position);
  const Raw<K> from(position),
      last(read.complete ? Key{} : this->key_of(read.pairs[read.size - 1].key));
  auto change =
      waiting.up(from.bytes(), read.complete ? std::nullopt : std::optional(last.bytes()));
  std::size_t i = 0;
  while (i < read.size || (read.complete && change.entry() != nullptr)) {
    const Key key = i < read.size ? this->key_of(read.pairs[i].key) : key_at(change);
    const bool changed = change.entry() != nullptr && !(key < key_at(change));
    if (batch.size() == limit || batch.is_full()) {
      position = K(changed ? key_at(change) : key);
      return true;
    }
    const bool in_index = i < read.size && (!changed || !(key_at(change) < key));
    if (!changed) {
      batch.add(key, this->value_of(read.pairs[i].value));
    } else {
      const Entry& entry = *change.entry();
      if (entry.operation() == Operation::put) batch.add(key_at(change), entry.value());
      change.next();
    }
    if (in_index) ++i;
  }
  if (read.complete) return false;
  std::optional<K> next = successor(this->key_of(read.pairs[read.size - 1].key));
  if (!next) return false;
  position = std::move(*next);
  return true;
}

/// The first batch is as long as the last scan was, since what is read beyond the end is in vain.
template <class K>
void OrderedMap<K>::scan(Key from, std::size_t limit, const PairSink<K>& show) const {
  K position = pool::as_errors(this->pool(), [&] {
    this->core().require_inspected();
    return K(from);
  });
  const std::size_t expected = expected_.load(std::memory_order_relaxed);
  std::size_t most = expected, shown = 0;
  PairCopies<K> batch(this->value_kind());
  for (bool more = true; more && shown < limit; most = std::min(2 * most, batch.kMaxPairs)) {
    more = pool::as_errors(
        this->pool(), [&] { return read_batch(batch, position, std::min(limit - shown, most)); });
    const Taken taken = show(batch.copied());
    shown += taken.pairs;
    if (!taken.all) break;
  }
  constexpr std::size_t kFewest = 8;
  const std::size_t next = std::clamp(shown, kFewest, batch.kMaxPairs);
  if (next != expected) expected_.store(next, std::memory_order_relaxed);
}

/// The caller is in a Guard.
template <class K>
auto OrderedMap<K>::last_in_index(Key bound, bool strictly) const -> std::optional<Pair> {
  const KeyWord wanted(Raw<K>(bound).bytes(), kKindOf<K>);
  Word key = 0, value = 0;
  const bool found = this->plugged().find_last(wanted.word(), strictly, &key, &value);
  this->require_readable();
  if (!found) return std::nullopt;
  return Pair(this->key_of(key), this->value_of(value));
}

/// The greater one of what the index has and what waits. Goes on below a pair that is being erased.
template <class K>
auto OrderedMap<K>::find_last(Key bound, bool strictly) const -> std::optional<Pair> {
  this->core().require_inspected();
  const epoch::Guard guard;
  const Waiting::View waiting(this->core().waiting());  // before the index is read
  for (K from(bound);; strictly = true) {
    std::optional<Pair> pair = last_in_index(from, strictly);
    const Raw<K> start(from), last(pair ? Key(pair->first) : Key{});
    auto change =
        waiting.down(start.bytes(), strictly, pair ? std::optional(last.bytes()) : std::nullopt);
    bool erased = false;
    for (; !erased && change.entry() != nullptr && !(pair && key_at(change) < pair->first);
         change.next()) {
      const Entry& entry = *change.entry();
      if (entry.operation() == Operation::put) return Pair(key_at(change), entry.value());
      erased = pair && key_at(change) == pair->first;
    }
    if (!erased) return pair;
    from = std::move(pair->first);
  }
}

/// Shows one pair at most: each lookup of a plug-in begins at the top.
template <class K>
void OrderedMap<K>::scan_down(Key from, bool strictly, std::size_t limit,
                              const typename WordIndex<K>::Take& take) const {
  if (limit == 0) return;
  const auto pair = find_last(from, strictly);
  if (!pair) return;
  const std::string_view bytes = pair->second;
  const bool is_number = this->value_kind() == Kind::u64;
  (void)take(pair->first, is_number ? NewValue(Raw<std::uint64_t>::view(bytes)) : NewValue(bytes));
}

template class UnorderedMap<std::uint64_t>;
template class UnorderedMap<std::string>;
template class OrderedMap<std::uint64_t>;
template class OrderedMap<std::string>;

}  // namespace perdix::detail::index::tips
