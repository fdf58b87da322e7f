// Changes of one pair in its slot. Each is committed by one 8-byte store, and with strings by the
// session that owns their blocks. The caller holds the latch of the segment, or of the root block.
#pragma once

#include <array>

#include "alloc/session.h"
#include "index/cceh/layout.h"
#include "index/common/codec.h"
#include "index/common/value_codec.h"
#include "pm/access.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::cceh {

template <class K>
class PairWriter {
 public:
  using Key = View<K>;

  PairWriter(pool::PoolCore& pool, const Root& root, const ValueCodec& values)
      : pool_(pool), root_(root), keys_(pool), values_(values) {}

  /// Fills a free slot. `tag`: of the key. Throws out_of_space, and has changed nothing.
  ///
  /// The value comes into its line before the key: so whatever prefix of the stores to it a crash
  /// leaves, the key is not there without its value.
  void add(Pair& pair, Key key, NewValue value, Hash16 tag) const {
    if (all_inline()) {
      if constexpr (Codec<K>::kInline) {
        pm().store(pair.value, value.word());  // not persisted: the same line as the commit
        pm().publish(pair.key, key == Key{} ? kThere : key);  // the commit
      }
      return;
    }
    alloc::Session session = pool_.allocator().session();
    PairWords words = write_pair(session, keys_, values_, key, tag, value);
    if (key == Key{}) words.key = kThere;
    if (pm().commits_as_one()) {
      const std::array changes = {pm::set_word(pair.value, words.value),
                                  pm::set_word(pair.key, words.key)};
      session.commit_as_one(changes);
    } else {
      pm().store(pair.value, words.value);  // not flushed: the same line as the commit
      session.commit(pm::set_word(pair.key, words.key));
    }
  }

  /// Replaces the value. Throws out_of_space, and has changed nothing.
  void replace(Pair& pair, NewValue value) const {
    if (values_.is_inline()) {
      pm().publish(pair.value, value.word());  // the commit; the key is durable already
      return;
    }
    alloc::Session session = pool_.allocator().session();
    const Word old_word = pm::load(pair.value);
    const Word new_word = values_.write(session, value);
    if (new_word == old_word) return;  // both empty: nothing to change
    values_.free(session, old_word);
    session.commit(pm::set_word(pair.value, new_word));  // the new blob is durable before
  }

  /// Moves a pair to a free slot and frees its own: at once, also for a crash. The key word of the
  /// new slot is the commit; with it the record says that the old slot is free.
  void move(Pair& from, Pair& to) const {
    const Word key = pm::load(from.key), value = pm::load(from.value);
    alloc::Session session = pool_.allocator().session();
    if (pm().commits_as_one()) {
      const std::array changes = {pm::set_word(to.value, value), pm::set_word(to.key, key),
                                  pm::set_word(from.key, 0)};
      return session.commit_as_one(changes);
    }
    pm().store(to.value, value);  // not flushed: the same line as the commit
    session.commit_when(to.key, ~std::uint64_t{0}, key);
    session.redo(from.key, 0);
    session.log();
    pm().publish(to.key, key);  // the commit
    pm().store(from.key, 0);
    pm().flush(&from.key, sizeof from.key);  // durable before the record is gone
    session.finish();
  }

  /// Frees the slot. The key word is the commit.
  void remove(Pair& pair) const {
    if (all_inline()) {
      pm().publish(pair.key, 0);  // the commit
      return;
    }
    alloc::Session session = pool_.allocator().session();
    if (!is_zero(pair)) Codec<K>::free(session, pm::load(pair.key));
    values_.free(session, pm::load(pair.value));
    session.commit(pm::set_word(pair.key, 0));
  }

 private:
  static constexpr Word kThere = 1;  // as the key word of Root::zero

  bool all_inline() const { return Codec<K>::kInline && values_.is_inline(); }
  bool is_zero(const Pair& pair) const { return &pair == &root_.zero; }
  const pm::Persister& pm() const { return pool_.pm(); }

  pool::PoolCore& pool_;
  const Root& root_;
  const Codec<K> keys_;
  const ValueCodec values_;
};

}  // namespace perdix::detail::index::cceh
