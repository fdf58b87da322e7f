// The typed front of an engine over words: converts values at its boundary, so that the engine's
// code does not depend on their type.
//
// An engine's tree over words, `Base`, has for it
//   enum class Mode { put, insert, update };
//   bool write(Key, NewValue, Mode, const NewValue* expected);   null: any value
//   bool erase_word(Key, const NewValue* expected);
//   std::optional<Word> find_word(Key) const;
//   bool find_number(Key, Word&) const;           the same without a guard of the caller's
//   void find_words(std::span<const Key>, std::span<std::optional<Word>>) const;  at most kGroup
// and if it is ordered
//   find_last(Key, bool strictly, LastPairs&) const   the pair of the greatest key that is not
//                                     above, or is below, and of some next to it further down:
//                                     as many as cost little more, up to the limit
// and const Codec<K>& keys() const.
// The string that a word refers to may be freed when the caller's guard ends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>

#include <perdix/types.h>

#include "epoch/guard.h"
#include "index/common/batch.h"
#include "index/common/codec.h"
#include "index/common/groups.h"
#include "index/common/last_pairs.h"
#include "index/common/limits.h"
#include "index/common/value_codec.h"
#include "index/common/value_of.h"
#include "pool/pool_core.h"

namespace perdix::detail::index {

template <class Base, Storable K, Storable V>
class TypedTree : public Base {
 public:
  using Key = View<K>;
  using Value = View<V>;

  static void destroy(pool::PoolCore& pool, std::uint64_t& root) {
    Base::destroy(pool, root, kKindOf<V>);
  }

  void put(Key key, Value value) { change(key, value, Mode::put); }
  bool insert(Key key, Value value) { return change(key, value, Mode::insert); }
  bool update(Key key, Value value) { return change(key, value, Mode::update); }

  /// Replace or remove the value of a key if it is `expected`.
  bool update_if(Key key, Value expected, Value value) {
    const NewValue former(expected);
    return change(key, value, Mode::update, &former);
  }
  bool erase_if(Key key, Value expected) {
    const NewValue former(expected);
    return this->erase_word(key, &former);
  }

  bool get(Key key, V& value) const {
    if constexpr (Codec<V>::kInline) {
      return this->find_number(key, value);
    } else {
      const epoch::Guard guard;
      const std::optional<Word> word = this->find_word(key);
      if (word) values_.copy(*word, value);
      return word.has_value();
    }
  }
  std::optional<V> get(Key key) const { return value_of<V>(*this, key); }

  void get_many(std::span<const Key> keys, std::span<std::optional<V>> out) const {
    in_groups(keys, out, [this](auto some, auto values) { get_group(some, values); });
  }

  /// The pair of the greatest key that is not above `key`.
  std::optional<std::pair<K, V>> find_floor(Key key) const { return find_one(key, false); }

  /// The pair of the greatest key below `key`.
  std::optional<std::pair<K, V>> find_below(Key key) const { return find_one(key, true); }

  /// Calls ahead(key, value) for some pairs with smaller keys, descending, until it returns false:
  /// at most `limit`, and for one at least if there is any. What a scan promises holds for them.
  /// The call is in a Guard: it copies what it is shown, and nothing else.
  template <class Ahead>
  void read_below(Key key, std::size_t limit, Ahead& ahead) const {
    pool::as_errors(this->pool(), [&] {
      const epoch::Guard guard;
      LastPairs last(limit);
      this->find_last(key, true, last);
      copy_descending(last.pairs(), ahead);
      this->pool().require_usable();  // what was read may have been there before a sync failed
    });
  }

 protected:
  using Mode = typename Base::Mode;

  template <class... Arguments>
  explicit TypedTree(Arguments&&... arguments)
      : Base(std::forward<Arguments>(arguments)...), values_(this->pool()) {}

  const Codec<V>& values() const { return values_; }

 private:
  bool change(Key key, Value value, Mode mode, const NewValue* expected = nullptr) {
    check_value(value);
    return this->write(key, NewValue(value), mode, expected);
  }

  void get_group(std::span<const Key> keys, std::span<std::optional<V>> out) const {
    const epoch::Guard guard;
    std::array<std::optional<Word>, kGroup> words;
    this->find_words(keys, std::span(words).first(keys.size()));
    for (std::size_t i = 0; i < keys.size(); ++i)
      out[i] = words[i] ? std::optional<V>(values_.decode(*words[i])) : std::nullopt;
  }

  template <class Ahead>
  void copy_descending(std::span<const LastPairs::Words> pairs, Ahead& ahead) const {
    for (const auto& words : pairs) {
      this->keys().prefetch(words.key);
      values_.prefetch(words.value);
    }
    for (const auto& words : pairs) {
      const Key key = this->keys().view(words.key);
      if (ahead.count() > 0 && !(key < ahead.last_key())) throw_unordered(this->pool());
      if (!ahead(key, values_.view(words.value))) return;
    }
  }

  std::optional<std::pair<K, V>> find_one(Key key, bool strictly) const {
    const epoch::Guard guard;
    LastPairs last(1);
    this->find_last(key, strictly, last);
    if (last.empty()) return std::nullopt;
    const auto& [key_word, value_word] = last.farthest();
    return std::pair<K, V>(this->keys().decode(key_word), values_.decode(value_word));
  }

  Codec<V> values_;
};

}  // namespace perdix::detail::index
