// How nodes lie in words of 4 bytes, and what leads to them.
//
// A Ref names what an entry of a list leads to: its kind, and a position or a TID. In PM a list has
// narrow pointers, of one word each, or wide ones, of two. A wide pointer is the word of a Ref. A
// narrow one has the distance from the list to the node, which always lies behind the list (L3):
//   before the last dimension   bits 30-31: 0 list, 1 MonoList, 2 MonoList of several TIDs
//                               bits 0-29: words from the list to the node
//   of the last dimension       bit 31: 0 a TID, in bits 0-30
//                                       1 several TIDs, bits 0-30: words from the list to them
#pragma once

#include <cstdint>
#include <cstring>

#include "index/elf/greatest_values.h"
#include "index/elf/read_hooks.h"
#include "index/elf/search.h"

namespace perdix::detail::index::elf {

using Tid = std::uint32_t;

/// Counts words of a table's slots.
using Position = std::uint64_t;

/// TIDs, and so rows, need 31 bits.
inline constexpr std::uint64_t kMaxTids = (std::uint64_t{1} << 31) - 1;

class Ref {
 public:
  enum class Kind : std::uint8_t {
    none = 0,
    list = 1,
    mono = 2,      ///< MonoList with one TID
    monos = 3,     ///< MonoList with several TIDs
    tid = 4,       ///< the TID itself
    tids = 5,      ///< several TIDs
    cached = 6,    ///< list in the DRAM of a cache; never in PM
    outlined = 7,  ///< list in PM whose values a cache knows; never in PM
    damaged = 15
  };

  constexpr Ref() = default;
  constexpr Ref(Kind kind, std::uint64_t value)
      : word_(std::uint64_t{static_cast<std::uint8_t>(kind)} << kKindShift | value) {}
  static constexpr Ref from_word(std::uint64_t word) {
    Ref ref;
    ref.word_ = word;
    return ref;
  }

  constexpr std::uint64_t word() const { return word_; }
  constexpr Kind kind() const { return static_cast<Kind>(word_ >> kKindShift); }
  constexpr std::uint64_t value() const { return word_ & kValueMask; }

  /// Returns this Ref, or one of kind `damaged` if no Ref in PM may be of this kind.
  constexpr Ref from_pm() const { return kind() <= Kind::tids ? *this : Ref(Kind::damaged, 0); }

 private:
  static constexpr unsigned kKindShift = 60;
  static constexpr std::uint64_t kValueMask = (std::uint64_t{1} << kKindShift) - 1;

  std::uint64_t word_ = 0;
};

/// The largest distance that a narrow pointer can tell, in either form.
inline constexpr std::uint64_t kNarrowReach = (std::uint64_t{1} << 30) - 1;

/// The narrow pointer of the list at position `list` that leads to `to`. It must be within reach.
constexpr std::uint32_t narrow_pointer(Ref to, Position list, bool last_dimension) {
  if (last_dimension) {
    if (to.kind() == Ref::Kind::tid) return static_cast<std::uint32_t>(to.value());
    return std::uint32_t{1} << 31 | static_cast<std::uint32_t>(to.value() - list);
  }
  const auto code = static_cast<std::uint32_t>(to.kind()) - 1;
  return code << 30 | static_cast<std::uint32_t>(to.value() - list);
}

/// The opposite: where a narrow pointer of the list at position `list` leads.
constexpr Ref follow_narrow(std::uint32_t pointer, Position list, bool last_dimension) {
  if (last_dimension) {
    const std::uint32_t value = pointer & 0x7fffffff;
    return pointer >> 31 == 0 ? Ref(Ref::Kind::tid, value) : Ref(Ref::Kind::tids, list + value);
  }
  return {static_cast<Ref::Kind>((pointer >> 30) + 1), list + (pointer & kNarrowReach)};
}

/// Set in the first word of a list, beside its count, if its pointers are wide.
inline constexpr std::uint32_t kWideList = std::uint32_t{1} << 31;

constexpr std::uint64_t list_words(std::uint64_t count, bool wide) {
  return 1 + count * (wide ? 3 : 2);
}

/// A list that can be searched, in PM or in the DRAM of a cache. Its words stay where they are
/// until the caller's epoch::Guard ends.
struct List {
  enum class Form : std::uint8_t { narrow, wide, cached };

  const std::uint32_t* values;
  const std::uint32_t* pointers;
  std::uint32_t count;
  Form form;
  bool in_pm;
  Position position;

  std::uint32_t value(std::uint32_t i) const {
    note_read(values + i, 1);
    return values[i];
  }

  /// Where entry i leads. Not checked for a list in PM: in a damaged file the position can be any.
  Ref child(std::uint32_t i, bool last_dimension) const {
    if (form == Form::narrow) {
      note_read(pointers + i, 1);
      return follow_narrow(pointers[i], position, last_dimension);
    }
    std::uint64_t word;
    note_read(pointers + 2 * std::size_t{i}, 2);
    std::memcpy(&word, pointers + 2 * std::size_t{i}, sizeof word);
    const Ref ref = Ref::from_word(word);
    return form == Form::cached ? ref : ref.from_pm();
  }

  /// The index of the first entry whose value is not below `bound`; `count` if there is none.
  /// `greatest` is a guess at the last value, or 0: a wrong guess costs time, not correctness.
  std::uint32_t lower_bound(std::uint32_t bound, std::uint32_t greatest) const {
    if (count == 0 || bound == 0) return 0;
    const std::uint32_t guess =
        count > kWordsOfLine ? guess_index(bound, value(0), greatest, count) : 0;
    return search(values, count, bound, guess, [this](std::uint32_t first, std::uint32_t read) {
      note_read(values + first, read);
    });
  }

  void note_read(const std::uint32_t* words, std::size_t n) const {
    note_words_read(in_pm, words, n);
  }

  /// Words that the list takes in PM. For a cached list: not more than it takes there.
  std::uint64_t words() const { return list_words(count, form == Form::wide); }
};

}  // namespace perdix::detail::index::elf
