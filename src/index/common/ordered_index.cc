// What the calls of OrderedIndex do.
#include <perdix/ordered_index.h>

#include "index/common/neighbour.h"
#include "index/common/point_index.h"
#include "index/common/read_beyond.h"

namespace perdix {

using detail::index::typed;
using detail::index::WordIndex;

namespace {

/// Erases the keys from `from` on for which `inside` is true. Returns how many.
template <Storable V, Storable K, class Inside>
std::uint64_t erase_from(WordIndex<K>& words, View<K> from, Inside inside) {
  std::uint64_t erased = 0;
  const auto erase = [&](View<K> key, View<V>) {
    if (!inside(key)) return false;
    erased += words.erase(key, nullptr) ? 1 : 0;
    return true;
  };
  typed<V>(words).scan(from, erase);
  return erased;
}

}  // namespace

template <Storable K, Storable V>
void OrderedIndex<K, V>::scan(KeyArgument from, Visitor<K, V> visit) const {
  this->run_visits([&](const WordIndex<K>& words) { typed<V>(words).scan(from, visit); });
}

template <Storable K, Storable V>
void OrderedIndex<K, V>::scan(KeyArgument from, std::size_t limit, Visitor<K, V> visit) const {
  this->run_visits([&](const WordIndex<K>& words) { typed<V>(words).scan(from, visit, limit); });
}

template <Storable K, Storable V>
std::vector<std::pair<K, V>> OrderedIndex<K, V>::scan(KeyArgument from, std::size_t limit) const {
  return this->run([&](const WordIndex<K>& words) {
    std::vector<std::pair<K, V>> pairs;
    const auto keep = [&](Key key, Value value) { return pairs.emplace_back(key, value), true; };
    typed<V>(words).read(from, limit, keep);
    return pairs;
  });
}

template <Storable K, Storable V>
auto OrderedIndex<K, V>::lower_bound(KeyArgument key) const -> std::optional<Pair> {
  return this->run([&](const WordIndex<K>& words) {
    std::optional<Pair> found;
    const auto keep = [&](Key first, Value value) { return found.emplace(first, value), false; };
    typed<V>(words).read(key, 1, keep);
    return found;
  });
}

template <Storable K, Storable V>
auto OrderedIndex<K, V>::floor(KeyArgument key) const -> std::optional<Pair> {
  return this->run([&](const WordIndex<K>& words) { return typed<V>(words).find_floor(key); });
}

template <Storable K, Storable V>
auto OrderedIndex<K, V>::after(KeyArgument key) const -> std::optional<Pair> {
  const auto next =
      this->run([&](const WordIndex<K>&) { return detail::index::successor(Key(key)); });
  return next ? lower_bound(*next) : std::nullopt;
}

template <Storable K, Storable V>
auto OrderedIndex<K, V>::before(KeyArgument key) const -> std::optional<Pair> {
  return this->run([&](const WordIndex<K>& words) { return typed<V>(words).find_below(key); });
}

template <Storable K, Storable V>
auto OrderedIndex<K, V>::first() const -> std::optional<Pair> {
  return lower_bound(Key{});
}

template <Storable K, Storable V>
auto OrderedIndex<K, V>::last() const -> std::optional<Pair> {
  return this->run([&](const WordIndex<K>& words) {
    return typed<V>(words).find_floor(detail::index::greatest_key<K>());
  });
}

template <Storable K, Storable V>
std::size_t OrderedIndex<K, V>::read_beyond(KeyArgument key, Direction direction, std::size_t limit,
                                            std::vector<Pair>& pairs) const {
  return this->run([&](const WordIndex<K>& words) {
    using namespace detail::index;
    return direction == Direction::up ? read_above<K, V>(typed<V>(words), key, limit, pairs)
                                      : read_below<K, V>(typed<V>(words), key, limit, pairs);
  });
}

template <Storable K, Storable V>
std::uint64_t OrderedIndex<K, V>::erase_range(KeyArgument from, KeyArgument to) {
  return this->run([&](WordIndex<K>& words) {
    return erase_from<V>(words, Key(from), [&](Key key) { return key < to; });
  });
}

template <Storable K, Storable V>
std::uint64_t OrderedIndex<K, V>::erase_range(KeyArgument from) {
  return this->run([&](WordIndex<K>& words) {
    return erase_from<V>(words, Key(from), [](Key) { return true; });
  });
}

template class OrderedIndex<std::uint64_t, std::uint64_t>;
template class OrderedIndex<std::uint64_t, std::string>;
template class OrderedIndex<std::string, std::uint64_t>;
template class OrderedIndex<std::string, std::string>;

}  // namespace perdix
