#include "index/cceh/cceh.h"

#include <array>

#include "index/cceh/buffers.h"
#include "index/cceh/check.h"
#include "index/cceh/destroy.h"
#include "index/cceh/for_each.h"
#include "index/cceh/get_many.h"
#include "index/cceh/recovery.h"
#include "index/cceh/search.h"
#include "index/cceh/smo.h"
#include "index/common/limits.h"
#include "index/common/retry.h"

namespace perdix::detail::index::cceh {
namespace {

constexpr Word kThere = 1;  // as the key word of Root::zero

}  // namespace

template <class K>
bool WordTable<K>::write(Key key, NewValue value, Mode mode, const NewValue* expected) {
  check_key(key);
  return retry_when_full(pool_, [&] { return try_write({key, value, mode, expected}); });
}

template <class K>
bool WordTable<K>::try_write(const Write& write) {
  if (buffers_ != nullptr) buffers_->keep_short();
  const epoch::Guard guard;
  const KeyHash hash = hash_of(write.key);
  for (;;) {
    if (const auto done = write_segment(write, hash)) return *done;
  }
}

/// One attempt. Returns nullopt if the segment had to get room first.
template <class K>
std::optional<bool> WordTable<K>::write_segment(const Write& write, KeyHash hash) {
  const auto& [key, value, mode, expected] = write;
  Locked locked;
  lock(locked, key, hash);
  if (const auto found = find_buffered(locked, key, hash)) {
    if (mode == Mode::insert) return false;
    return buffers_->replace(locked, found, value, expected);
  }
  const Slots slots = search(locked, key, hash);
  if (slots.found != nullptr) {
    if (mode == Mode::insert || !value_is(pm::load(slots.found->value), expected)) return false;
    replace(*slots.found, value);
    return true;
  }
  if (mode == Mode::update) return false;
  return write_new(locked, write, hash, slots);
}

/// write_segment() for a key that the locked segment does not have: adds it.
template <class K>
std::optional<bool> WordTable<K>::write_new(Locked& locked, const Write& write, KeyHash hash,
                                            const Slots& slots) {
  using Added = typename Buffers::Added;
  if (buffers_ != nullptr && !is_zero(write.key)) {
    const Added outcome = buffers_->add(locked, write.key, write.value, hash.tag());
    if (outcome == Added::added) return true;
    if (outcome == Added::merged) return std::nullopt;
  }
  Pair* free = slots.free;
  if (free == nullptr) free = make_room(locked, hash, slots.free_in_overflow);
  if (free == nullptr) return std::nullopt;
  add(*free, write, hash);
  return true;
}

/// Fills a free slot. The value comes into its line before the key: so whatever prefix of the
/// stores to it a crash leaves, the key is not there without its value.
template <class K>
void WordTable<K>::add(Pair& pair, const Write& write, KeyHash hash) {
  const Key key = write.key;
  const NewValue value = write.value;
  if (all_inline()) {
    if constexpr (Keys::kInline) {
      pm().store(pair.value, value.word());  // not persisted: the same line as the commit
      pm().publish(pair.key, is_zero(key) ? kThere : key);  // the commit
    }
  } else {
    alloc::Session session = pool_.allocator().session();
    const Word key_word = is_zero(key) ? kThere : keys_.write(session, key, hash.tag());
    const Word value_word = codec_.write(session, value);
    if (pm().commits_as_one()) {
      const std::array changes = {pm::set_word(pair.value, value_word),
                                  pm::set_word(pair.key, key_word)};
      session.commit_as_one(changes);
    } else {
      pm().store(pair.value, value_word);  // not flushed: the same line as the commit
      session.commit(pm::set_word(pair.key, key_word));
    }
  }
  pairs_.add();
}

/// Replaces a value; its word is the commit.
template <class K>
void WordTable<K>::replace(Pair& pair, NewValue value) {
  if (codec_.is_inline()) {
    pm().publish(pair.value, value.word());  // the commit; the key is durable already
  } else {
    alloc::Session session = pool_.allocator().session();
    const Word old_word = pm::load(pair.value);
    const Word new_word = codec_.write(session, value);
    if (new_word == old_word) return;  // both empty: nothing to change
    codec_.free(session, old_word);
    session.commit(pm::set_word(pair.value, new_word));  // the new blob is durable before
  }
}

/// Frees the slot of a pair; its key word is the commit.
template <class K>
void WordTable<K>::remove(Pair& pair) {
  if (all_inline()) {
    pm().publish(pair.key, 0);  // the commit
  } else {
    alloc::Session session = pool_.allocator().session();
    if (&pair != &root_.zero) Keys::free(session, pm::load(pair.key));
    codec_.free(session, pm::load(pair.value));
    session.commit(pm::set_word(pair.key, 0));
  }
  pairs_.remove();
}

template <class K>
bool WordTable<K>::erase(Key key, const NewValue* expected) {
  check_key(key);
  const epoch::Guard guard;
  const KeyHash hash = hash_of(key);
  Locked locked;
  lock(locked, key, hash);
  if (const auto found = find_buffered(locked, key, hash)) return buffers_->erase(found, expected);
  Pair* const found = find_in(locked, key, hash);
  if (found == nullptr || !value_is(pm::load(found->value), expected)) return false;
  remove(*found);
  return true;
}

template class WordTable<std::uint64_t>;
template class WordTable<std::string>;

}  // namespace perdix::detail::index::cceh
