// Lists copied to DRAM for good: the static part of a cache. The first list always is one of them.
//
// Copies lead to copies, where there are any: so a query knows without a probe which list is in
// DRAM. Of other lists there are outlines (outline.h). Immutable, and so thread-safe.
//
// A copy, in words of 4 bytes: its position (2), its rows (2), the number of entries, the values,
// and Refs of two words each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "index/elf/caches/outline.h"
#include "index/elf/lists.h"
#include "util/huge_vector.h"

namespace perdix::detail::index::elf {

/// A list that is to be copied, or outlined.
struct Chosen {
  Position position;
  std::uint32_t dimension;
  std::uint32_t entries;
  std::uint64_t rows;               ///< below it; 0 if they were not counted
  std::uint32_t outline_words = 0;  ///< of its outline; 0: it has none
  bool outlined = false;            ///< instead of copied

  std::uint64_t words() const { return outlined ? outline_words : 5 + 3 * std::uint64_t{entries}; }
  std::uint64_t bytes() const { return words() * sizeof(std::uint32_t); }
};

class Image {
 public:
  /// `chosen` ascends by position. Throws corrupt, bad_alloc.
  Image(const Lists& lists, std::span<const Chosen> chosen);

  const FirstEntries& first() const { return first_; }

  List list(Ref cached) const {
    const std::uint32_t* words = words_.data() + cached.value();
    note_words_read(false, words, kHead);
    const std::uint32_t count = words[4];
    return {words + kHead, words + kHead + count,
            count,         List::Form::cached,
            false,         words[0] | Position{words[1]} << 32};
  }

  Outline outline(Ref outlined) const { return Outline(words_.data() + outlined.value()); }

  std::uint64_t bytes() const {
    return words_.size() * sizeof(std::uint32_t) + first_words_.size() * sizeof(std::uint64_t);
  }

 private:
  static constexpr std::uint64_t kHead = 5;

  /// Where the copy or outline of a list begins.
  struct Place {
    Position position;
    std::uint64_t word;
    bool outlined;
  };

  Ref replace(Ref ref) const;
  void copy(const Lists& lists, const Chosen& chosen, std::uint32_t* to) const;

  std::vector<Place> places_;  // while it is made
  util::HugeVector<std::uint32_t> words_;
  std::vector<std::uint64_t> first_words_;
  FirstEntries first_;
};

}  // namespace perdix::detail::index::elf
