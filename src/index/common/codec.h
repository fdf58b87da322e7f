// How a key or a value becomes the eight bytes that an index keeps of it in PM, and back.
//
// A std::uint64_t is its own word. A string lies in a separate block (a *blob*: 4 bytes of length,
// then the bytes), and its word is a reference: the blob's offset in the low 48 bits and a tag in
// the high 16. The tag of a key is its hash16, so that most comparisons with another key need no
// look at the blob. The empty string has the word 0 and no blob.
//
// A key and a value that are written together and are short share a block: the value's blob lies
// behind the key's, and the tag of its word is kInKeyBlock (0 if it has a block of its own). The
// block belongs to the key's word. An update gives the value a block of its own. The place of the
// first value is used again when the key goes.
//
// A blob never changes between the commit that links it and the end of the grace period after the
// commit that unlinks it, so a reader inside an epoch::Guard may use its view. References come from
// the pool file, which is not trusted: an offset or a length outside of the pool throws
// Errc::corrupt.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include <perdix/types.h>

#include "alloc/session.h"
#include "pm/offset.h"
#include "pool/pool_core.h"
#include "util/hash.h"

namespace perdix::detail::index {

/// The part of a key's hash that indexes use as fingerprint; it is stored in PM, in the tag of a
/// string key's word.
using Hash16 = std::uint16_t;

using Word = std::uint64_t;

/// Position of the blob that a word refers to; kNull for the empty string.
inline pm::Offset blob_offset(Word word) { return word & ((std::uint64_t{1} << 48) - 1); }

inline Hash16 word_tag(Word word) { return static_cast<Hash16>(word >> 48); }

/// The tag of a value whose blob lies in the block of its key.
inline constexpr Hash16 kInKeyBlock = 1;

/// The size up to which a key and its value share a block: what an update leaves unused is less.
inline constexpr std::size_t kMaxPairBlock = 512;

struct PairWords {
  Word key;
  Word value;
};

/// Converts words of one kind in one pool. A small value: copies are cheap. Thread-safe.
template <Storable T>
class Codec;

template <>
class Codec<std::uint64_t> {
 public:
  static constexpr bool kInline = true;  ///< words own no blobs

  explicit Codec(pool::PoolCore&) {}

  static Hash16 hash16(std::uint64_t value) { return static_cast<Hash16>(util::hash(value) >> 48); }
  static Hash16 hash16_of_word(Word word) { return hash16(word); }

  static std::uint64_t view(Word word) { return word; }
  static bool equal(Word word, std::uint64_t value, Hash16) { return word == value; }
  static bool sound(Word) { return true; }
  static void prefetch(Word) {}

  static Word write(alloc::Session&, std::uint64_t value, Hash16 = 0) { return value; }
  static void free(alloc::Session&, Word) {}
  static unsigned blobs(Word) { return 0; }
  static std::int64_t footprint(Word) { return 0; }
};

template <>
class Codec<std::string> {
 public:
  static constexpr bool kInline = false;

  explicit Codec(pool::PoolCore& pool) : pool_(&pool) {}

  /// The empty string's is 0, which its word holds too.
  static Hash16 hash16(std::string_view value) {
    return value.empty() ? Hash16{0} : static_cast<Hash16>(util::hash(value) >> 48);
  }
  static Hash16 hash16_of_word(Word word) { return word_tag(word); }

  /// The bytes, in place; valid while the caller's guard lasts. Cost: the lines of the blob.
  std::string_view view(Word word) const;
  bool equal(Word word, std::string_view value, Hash16 hash) const {
    return word_tag(word) == hash && view(word) == value;
  }

  /// True if the word is 0 or refers to an allocated block that holds the whole string.
  bool sound(Word word) const;

  /// Asks for the first line of the blob. Harmless for any word.
  void prefetch(Word word) const;

  /// Reserves a blob in the session, fills and flushes it; the session's log() makes it durable.
  /// `tag` is hash16 for keys.
  Word write(alloc::Session& session, std::string_view value, Hash16 tag = 0) const;

  /// Writes a key and its value as write() does, into one block where kMaxPairBlock allows it.
  /// `tag`: of the key.
  PairWords write_pair(alloc::Session& session, std::string_view key, Hash16 tag,
                       std::string_view value) const;

  /// Whether a value with the tag kInKeyBlock lies as a whole in the allocated block of its key.
  bool sound_in_key_block(Word key, Word value) const;

  /// Adds the blob of the word, if it has one, to the blocks that the session frees.
  static void free(alloc::Session& session, Word word) {
    if (blobs(word) != 0) session.free(blob_offset(word));
  }

  /// How many blocks the word refers to: 0 or 1.
  static unsigned blobs(Word word) { return blob_offset(word) == pm::kNull ? 0 : 1; }

  /// Pool bytes of those blocks.
  std::int64_t footprint(Word word) const;

 private:
  pool::PoolCore* pool_;
};

}  // namespace perdix::detail::index
