// The calls of WordIndex that an engine makes of its lookups of words, without another virtual
// call.
//
// An engine over words, `Engine`, has for it
//   std::optional<Word> find_word(Key) const;
//   void find_words(std::span<const Key>, std::span<std::optional<Word>>) const;  at most kGroup
//   const ValueCodec& values() const;
// and if it is ordered
//   void find_last(Key, bool strictly, LastPairs&) const;
//                                     the pair of the greatest key that is not above, or is below,
//                                     and of some next to it further down: as many as cost little
//                                     more, up to the limit
//   const Codec<K>& keys() const;
// The string that a word refers to may be freed when the caller's guard ends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <perdix/types.h>

#include "epoch/guard.h"
#include "index/common/batch.h"
#include "index/common/codec.h"
#include "index/common/groups.h"
#include "index/common/last_pairs.h"
#include "index/common/word_index.h"
#include "pool/pool_core.h"

namespace perdix::detail::index {

template <class Engine, Storable K>
class WordEngine : public WordIndex<K> {
 public:
  using Key = View<K>;

  bool contains(Key key) const override {
    const epoch::Guard guard;
    return engine().find_word(key).has_value();
  }

  bool find(Key key, std::uint64_t& value) const override {
    const epoch::Guard guard;
    const std::optional<Word> word = engine().find_word(key);
    if (word) value = *word;
    return word.has_value();
  }

  bool find(Key key, std::string& value) const final {
    const epoch::Guard guard;
    const std::optional<Word> word = engine().find_word(key);
    if (word) value = engine().values().view(*word);
    return word.has_value();
  }

  void find_many(std::span<const Key> keys,
                 std::span<std::optional<std::uint64_t>> out) const final {
    const epoch::Guard guard;
    engine().find_words(keys, out);
  }

  void find_many(std::span<const Key> keys, std::span<std::optional<std::string>> out) const final {
    const epoch::Guard guard;
    std::array<std::optional<Word>, kGroup> words;
    engine().find_words(keys, std::span(words).first(keys.size()));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      out[i].reset();
      if (words[i]) out[i].emplace(engine().values().view(*words[i]));
    }
  }

 protected:
  const Engine& engine() const { return static_cast<const Engine&>(*this); }
};

template <class Engine, Storable K>
class OrderedWordEngine : public WordEngine<Engine, K> {
 public:
  using Key = View<K>;

  void for_each(const PairSink<K>& show) const final { this->engine().scan(Key{}, kNoLimit, show); }

  /// Throws corrupt if the keys are not in order.
  void scan_down(Key from, bool strictly, std::size_t limit,
                 const typename WordIndex<K>::Take& take) const final {
    if (limit == 0) return;
    const Engine& engine = this->engine();
    const epoch::Guard guard;
    LastPairs last(limit);
    engine.find_last(from, strictly, last);
    for (const LastPairs::Words& words : last.pairs()) {
      engine.keys().prefetch(words.key);
      engine.values().prefetch(words.value);
    }
    std::optional<Key> above;
    for (const LastPairs::Words& words : last.pairs()) {
      const Key key = engine.keys().view(words.key);
      if (above && !(key < *above)) throw_unordered(engine.pool());
      if (!take(key, engine.values().value(words.value))) return;
      above = key;
    }
  }
};

}  // namespace perdix::detail::index
