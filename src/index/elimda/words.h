// The words of a pair: how keys are hashed and compared, and which blocks of the pool belong to a
// pair. Knows nothing of where pairs lie. Thread-safe.
#pragma once

#include <cstdint>

#include "alloc/session.h"
#include "index/common/codec.h"
#include "index/common/value_codec.h"
#include "index/elimda/bits.h"
#include "index/elimda/shape.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::elimda {

template <class K>
class Words {
 public:
  using Key = View<K>;
  using Keys = Codec<K>;

  Words(pool::PoolCore& pool, std::uint64_t seed, Kind value_kind)
      : pool_(pool), hash_(seed), keys_(pool), values_(pool, value_kind) {}

  const Keys& keys() const { return keys_; }
  const ValueCodec& values() const { return values_; }

  /// Whether words own no blobs, neither of keys nor of values.
  bool all_inline() const { return Keys::kInline && values_.is_inline(); }

  KeyHash hash_of(Key key) const { return hash_(key); }
  KeyHash hash_of_word(Word key) const { return hash_of(keys_.view(key)); }

  /// The signature of a key's hash. The word of a string holds it; that of an integer is hashed.
  Signature signature_of(Word key) const {
    if constexpr (Keys::kInline)
      return hash_of(key).signature();
    else
      return word_tag(key);
  }

  /// Whether a word is that of a key with this hash.
  bool is_key(Word word, Key key, KeyHash hash) const {
    return keys_.equal(word, key, hash.signature());
  }
  bool value_is(Word value, const NewValue* expected) const {
    return expected == nullptr || values_.equal(value, *expected);
  }

  /// Stores a pair of integers; not flushed.
  void store_integers(Pair& pair, Key key, NewValue value) const {
    if constexpr (Keys::kInline) {
      pm().store(pair.key, key);
      pm().store(pair.value, value.word());
    }
  }

  /// Stores a pair with a string, whose blocks the session allocates; the pair is not flushed.
  void store_strings(alloc::Session& session, Pair& pair, Key key, KeyHash hash,
                     NewValue value) const {
    const PairWords words = write_pair(session, keys_, values_, key, hash.signature(), value);
    pm().store(pair.key, words.key);
    pm().store(pair.value, words.value);
  }

  bool sound(const Pair& pair) const { return sound_pair(keys_, values_, pair.key, pair.value); }
  unsigned blobs(const Pair& pair) const {
    return Keys::blobs(pair.key) + values_.blobs(pair.value);
  }
  std::int64_t footprint(const Pair& pair) const {
    return keys_.footprint(pm::load(pair.key)) + values_.footprint(pm::load(pair.value));
  }

  /// Adds the blobs of a pair to the blocks that the session frees.
  void free(alloc::Session& session, const Pair& pair) const {
    Keys::free(session, pair.key);
    values_.free(session, pair.value);
  }

  /// Changes the bit that says whether a pair counts, durably, and frees its strings. In between
  /// unlink() hides it from readers, which could still come to them.
  template <class Unlink>
  void kill(const pm::Change& change, const Pair& pair, Unlink unlink,
            Shared shared = Shared::yes) const {
    if (blobs(pair) == 0) {
      commit_bits(pm(), change, shared);
      return unlink();
    }
    alloc::Session session = pool_.allocator().session();
    free(session, pair);
    commit_bits(pm(), session, change, unlink);
  }

 private:
  const pm::Persister& pm() const { return pool_.pm(); }

  pool::PoolCore& pool_;
  const Hasher hash_;
  const Keys keys_;
  const ValueCodec values_;
};

}  // namespace perdix::detail::index::elimda
