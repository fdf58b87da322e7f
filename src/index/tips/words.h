// The words that a plugged-in index maps, and the bytes that they stand for: the word of an integer
// is the integer, that of a string the address of its Bytes.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>

#include <perdix/types.h>

#include "index/tips/plugin.h"

namespace perdix::detail::index::tips {

/// The kinds of keys and values of an index.
struct Kinds {
  Kind key;
  Kind value;
};

/// The bytes that a word stands for; a view into `word` itself for integers.
inline std::string_view bytes_of(const Word& word, Kind kind) {
  if (kind == Kind::u64) return {reinterpret_cast<const char*>(&word), sizeof word};
  return reinterpret_cast<const Bytes*>(word)->view();
}

/// The word of a key that is looked for, valid as long as this object.
class KeyWord {
 public:
  KeyWord(std::string_view key, Kind kind) {
    if (kind == Kind::u64) {
      std::memcpy(&word_, key.data(), sizeof word_);
      return;
    }
    char* bytes = small_;
    if (sizeof(Bytes) + key.size() > kSmall) {
      large_ = std::make_unique_for_overwrite<char[]>(sizeof(Bytes) + key.size());
      bytes = large_.get();
    }
    new (bytes) Bytes{key.size()};
    if (!key.empty()) std::memcpy(bytes + sizeof(Bytes), key.data(), key.size());
    word_ = reinterpret_cast<Word>(bytes);
  }
  KeyWord(const KeyWord&) = delete;
  KeyWord& operator=(const KeyWord&) = delete;
  Word word() const { return word_; }

 private:
  static constexpr std::size_t kSmall = 128;
  alignas(Bytes) char small_[kSmall];
  std::unique_ptr<char[]> large_;  // of a key that is no small one
  Word word_ = 0;
};

}  // namespace perdix::detail::index::tips
