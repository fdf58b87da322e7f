// The calls with types over an index of words. Keys and values are converted here, and nowhere
// else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <perdix/types.h>

#include "index/common/batch.h"
#include "index/common/groups.h"
#include "index/common/limits.h"
#include "index/common/word_index.h"
#include "pool/as_errors.h"
#include "pool/pool_core.h"

namespace perdix::detail::index {

/// `V` is the type of the index's values. Refers to the index, which may be const. Costs nothing.
template <class Words, Storable V>
class Typed {
 public:
  using Key = typename Words::Key;
  using Value = View<V>;
  using K = std::conditional_t<std::is_same_v<Key, std::uint64_t>, std::uint64_t, std::string>;
  using Pair = std::pair<K, V>;

  explicit Typed(Words& words) : words_(&words) {}

  void put(Key key, Value value) const { write(key, value, Mode::put); }
  bool insert(Key key, Value value) const { return write(key, value, Mode::insert); }
  bool update(Key key, Value value) const { return write(key, value, Mode::update); }
  void insert_ahead(Key key, Value value) const {
    check_value(value);
    words_->insert_ahead(key, NewValue(value));
  }
  bool erase(Key key) const { return words_->erase(key, nullptr); }

  /// Replace or remove the value of a key if it is `expected`.
  bool update_if(Key key, Value expected, Value value) const {
    const NewValue former(expected);
    return write(key, value, Mode::update, &former);
  }
  bool erase_if(Key key, Value expected) const {
    const NewValue former(expected);
    return words_->erase(key, &former);
  }

  bool get(Key key, V& value) const { return words_->find(key, value); }
  std::optional<V> get(Key key) const {
    V value{};
    if (!get(key, value)) return std::nullopt;
    return value;
  }
  bool contains(Key key) const { return words_->contains(key); }

  void get_many(std::span<const Key> keys, std::span<std::optional<V>> out) const {
    in_groups(keys, out, [this](auto some, auto values) { words_->find_many(some, values); });
  }

  void for_each(Visitor<K, V> visit) const {
    words_->for_each([&](const CopiedPairs<K>& pairs) { return show(pairs, visit); });
  }

  void scan(Key from, Visitor<K, V> visit, std::size_t limit = kNoLimit) const {
    words_->scan(from, limit, [&](const CopiedPairs<K>& pairs) { return show(pairs, visit); });
  }

  /// Calls take(key, value) for the pairs of a scan(). `take` only copies what it is shown.
  template <class Take>
  void read(Key from, std::size_t limit, Take&& take) const {
    words_->scan(from, limit,
                 [&](const CopiedPairs<K>& pairs) { return pairs.template for_each<V>(take); });
  }

  /// Calls take(key, value) for some pairs with smaller keys, descending, until it returns false:
  /// at most `limit`, and for one at least if there is any. `take` only copies what it is shown.
  template <class Take>
  void read_below(Key key, std::size_t limit, Take&& take) const {
    words_->scan_down(key, true, limit,
                      [&](Key last, NewValue value) { return take(last, view_of(value)); });
  }

  /// The pair of the greatest key that is not above `key`, and that of the greatest key below it.
  std::optional<Pair> find_floor(Key key) const { return find_last(key, false); }
  std::optional<Pair> find_below(Key key) const { return find_last(key, true); }

 private:
  static Value view_of(NewValue value) {
    if constexpr (std::is_same_v<V, std::uint64_t>) {
      return value.word();
    } else {
      return value.bytes();
    }
  }

  bool write(Key key, Value value, Mode mode, const NewValue* expected = nullptr) const {
    check_value(value);
    return words_->write(key, NewValue(value), mode, expected);
  }

  /// Shows pairs to a user's visitor, and then looks at the pool: in a child that the visitor
  /// forked the call must not go on. Pairs that were copied before that are shown there too.
  Taken show(const CopiedPairs<K>& pairs, const Visitor<K, V>& visit) const {
    const pool::PoolCore& pool = words_->pool();
    const Taken taken = visit.show(pairs);
    if (taken.all && !pool.health().usable()) [[unlikely]]
      pool::as_errors([&] { pool.require_usable(); });
    return taken;
  }

  std::optional<Pair> find_last(Key key, bool strictly) const {
    std::optional<Pair> found;
    words_->scan_down(key, strictly, 1, [&](Key last, NewValue value) {
      return found.emplace(last, view_of(value)), false;
    });
    return found;
  }

  Words* words_;
};

/// Makes one for the types of an index and of its values.
template <Storable V, class Words>
Typed<Words, V> typed(Words& words) {
  return Typed<Words, V>(words);
}

/// An engine that has the typed calls too, for what is made of one engine, and for tests.
template <class Engine, Storable K, Storable V>
class TypedEngine : public Engine, public Typed<WordIndex<K>, V> {
  using Calls = Typed<WordIndex<K>, V>;

 public:
  using Key = View<K>;

  /// As the engine's.
  template <class... Arguments>
  explicit TypedEngine(Arguments&&... arguments)
      : Engine(std::forward<Arguments>(arguments)...), Calls(static_cast<WordIndex<K>&>(*this)) {}

  static void destroy(pool::PoolCore& pool, std::uint64_t& root) {
    Engine::destroy(pool, root, kKindOf<V>);
  }

  using Calls::contains;
  using Calls::erase;
  using Calls::for_each;
  using Calls::insert_ahead;
  using Calls::scan;
};

}  // namespace perdix::detail::index
