// Values as words where their kind is known at run time: for engines whose code does not depend on
// the type of values (codec.h does the same for a kind that the compiler knows).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <perdix/types.h>

#include "index/common/codec.h"

namespace perdix::detail::index {

/// A value on its way into an index or out of it: a number, or bytes that lie elsewhere. Which of
/// them, the index's kind of values says. Two registers, so it is passed by value.
class NewValue {
 public:
  explicit NewValue(std::uint64_t number) : word_(number) {}
  explicit NewValue(std::string_view string)
      : word_(reinterpret_cast<std::uintptr_t>(string.data())), size_(string.size()) {}

  /// Of a number.
  Word word() const { return word_; }

  /// Of a string.
  std::string_view bytes() const { return {reinterpret_cast<const char*>(word_), size_}; }

 private:
  std::uint64_t word_;
  std::size_t size_ = 0;
};

/// Converts words of values of one kind in one pool. A small value: copies are cheap. Thread-safe.
class ValueCodec {
 public:
  ValueCodec(pool::PoolCore& pool, Kind kind) : strings_(pool), inline_(kind == Kind::u64) {}

  /// Words own no blobs.
  bool is_inline() const { return inline_; }

  /// The bytes of a string, in place; valid while the caller's guard lasts.
  std::string_view view(Word word) const { return strings_.view(word); }

  /// The value in place, as view() has strings.
  NewValue value(Word word) const { return inline_ ? NewValue(word) : NewValue(view(word)); }

  bool equal(Word word, NewValue value) const {
    return inline_ ? word == value.word() : strings_.view(word) == value.bytes();
  }
  /// Of a value that does not lie in its key's block; sound_pair() is for all.
  bool sound(Word word) const { return inline_ || (word_tag(word) == 0 && strings_.sound(word)); }
  Word write(alloc::Session& session, NewValue value) const {
    return inline_ ? value.word() : strings_.write(session, value.bytes());
  }
  void free(alloc::Session& session, Word word) const {
    if (blobs(word) != 0) session.free(blob_offset(word));
  }

  /// How many blocks belong to the word: 0 or 1.
  unsigned blobs(Word word) const {
    return inline_ || in_key_block(word) ? 0 : Codec<std::string>::blobs(word);
  }
  void prefetch(Word word) const {
    if (!inline_) strings_.prefetch(word);
  }
  std::int64_t footprint(Word word) const {
    return blobs(word) == 0 ? 0 : strings_.footprint(word);
  }

  /// Whether the blob of a string lies in the block of its key.
  bool in_key_block(Word word) const { return !inline_ && word_tag(word) == kInKeyBlock; }

 private:
  Codec<std::string> strings_;
  bool inline_;
};

/// Writes the words of a new pair as Codec::write() does: two strings into one block, if that is
/// short enough. `tag`: of the key.
template <Storable K>
PairWords write_pair(alloc::Session& session, const Codec<K>& keys, const ValueCodec& values,
                     View<K> key, Hash16 tag, NewValue value) {
  if constexpr (!Codec<K>::kInline) {
    if (!values.is_inline()) return keys.write_pair(session, key, tag, value.bytes());
  }
  return {keys.write(session, key, tag), values.write(session, value)};
}

/// True if both words are sound, and a value that lies in its key's block is there as a whole.
template <Storable K>
bool sound_pair(const Codec<K>& keys, const ValueCodec& values, Word key, Word value) {
  if constexpr (!Codec<K>::kInline) {
    if (values.in_key_block(value)) return keys.sound_in_key_block(key, value);
  }
  return keys.sound(key) && values.sound(value);
}

}  // namespace perdix::detail::index
