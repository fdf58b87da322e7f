// Changes of the pairs of a write buffer, each with its record in the log: the record is the
// commit, and the buffer follows it. Of a pair with strings the record is the commit of the
// allocator's session, too, which allocates and frees the blobs.
//
//   add       a new key
//   replace   another value of a pair of the buffer
//   remove    the end of a pair of the buffer
//   end       all pairs are in the index by other means: the END of the chain
//
// The caller chooses the buffer, makes sure that the log has room, and holds the lock of the
// buffer. If a call throws, nothing has changed. Thread-safe.
#pragma once

#include "alloc/session.h"
#include "index/common/codec.h"
#include "index/common/value_codec.h"
#include "pool/pool_core.h"
#include "wal/log.h"

namespace perdix::detail::index {

template <class K>
class PairRecords {
 public:
  using Key = View<K>;
  using Keys = Codec<K>;

  PairRecords(pool::PoolCore& pool, const Keys& keys, const ValueCodec& values)
      : pool_(pool), keys_(keys), values_(values) {}

  template <class Buffer>
  void add(wal::Log& log, Buffer& buffer, Key key, NewValue value, Hash16 hash) const;

  template <class Buffer>
  void replace(wal::Log& log, Buffer& buffer, unsigned i, NewValue value) const;

  /// Takes room that the chain was promised, where there is no other.
  template <class Buffer>
  void remove(wal::Log& log, Buffer& buffer, unsigned i) const;

  /// The content of the buffer is durable elsewhere. There is always room for an END.
  template <class Buffer>
  static void end(wal::Log& log, Buffer& buffer) {
    log.end(buffer);
    buffer.clear();
  }

 private:
  bool all_inline() const { return Keys::kInline && values_.is_inline(); }

  pool::PoolCore& pool_;
  const Keys keys_;
  const ValueCodec values_;
};

template <class K>
template <class Buffer>
void PairRecords<K>::add(wal::Log& log, Buffer& buffer, Key key, NewValue value,
                         Hash16 hash) const {
  if (all_inline()) {
    if constexpr (Keys::kInline) {
      log.append(buffer, wal::Type::put, key, value.word());
      buffer.push(key, value.word(), hash);
    }
  } else {
    alloc::Session session = pool_.allocator().session();
    const PairWords words = write_pair(session, keys_, values_, key, hash, value);
    log.append(buffer, wal::Type::put, words.key, words.value, session);
    buffer.push(words.key, words.value, hash);
  }
  ++buffer.records;
}

/// The new record takes the place of the pair's former one: after a restart the newest counts.
template <class K>
template <class Buffer>
void PairRecords<K>::replace(wal::Log& log, Buffer& buffer, unsigned i, NewValue value) const {
  if (values_.is_inline()) {
    log.append(buffer, wal::Type::put, buffer.key(i), value.word());
    buffer.set_value(i, value.word());
  } else {
    alloc::Session session = pool_.allocator().session();
    const Word old_word = buffer.value(i);
    const Word new_word = values_.write(session, value);
    if (new_word == old_word) return;  // both empty: nothing to change
    values_.free(session, old_word);
    log.append(buffer, wal::Type::put, buffer.key(i), new_word, session);
    buffer.set_value(i, new_word);
  }
  ++buffer.records;
}

template <class K>
template <class Buffer>
void PairRecords<K>::remove(wal::Log& log, Buffer& buffer, unsigned i) const {
  if (all_inline()) {
    log.append_surely(buffer, wal::Type::erase_key, buffer.key(i), 0);
  } else {
    alloc::Session session = pool_.allocator().session();
    Keys::free(session, buffer.key(i));
    values_.free(session, buffer.value(i));
    log.append_surely(buffer, wal::Type::erase_key, buffer.key(i), 0, session);
  }
  buffer.remove(i);
  ++buffer.records;
}

}  // namespace perdix::detail::index
