// Lists copied to DRAM for good: the static part of a cache. The first list always is one of them.
//
// Copies lead to copies, where there are any: a query knows at once which list is in DRAM, and
// probes nothing. Immutable, and so thread-safe.
//
// A copy, in words of 4 bytes: its position (2), its rows (2), the number of entries, the values,
// and Refs of two words each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "index/elf/lists.h"
#include "util/huge_vector.h"

namespace perdix::detail::index::elf {

/// A list that is to be copied.
struct Chosen {
  Position position;
  std::uint32_t dimension;
  std::uint32_t entries;
  std::uint64_t rows;  ///< below it; 0 if nobody has counted them

  std::uint64_t bytes() const { return (5 + 3 * std::uint64_t{entries}) * sizeof(std::uint32_t); }
};

class Image {
 public:
  /// `chosen` ascends by position. Throws corrupt, bad_alloc.
  Image(const Lists& lists, std::span<const Chosen> chosen);

  const FirstEntries& first() const { return first_; }

  List list(Ref cached) const {
    const std::uint32_t* words = words_.data() + cached.value();
    const std::uint32_t count = words[4];
    return {words + kHead, words + kHead + count,
            count,         List::Form::cached,
            false,         words[0] | Position{words[1]} << 32};
  }

  std::uint64_t bytes() const {
    return words_.size() * sizeof(std::uint32_t) + first_words_.size() * sizeof(std::uint64_t);
  }

 private:
  static constexpr std::uint64_t kHead = 5;

  /// Where the copy of a list begins.
  struct Place {
    Position position;
    std::uint64_t word;
  };

  Ref replace(Ref ref) const;
  void copy(const Lists& lists, const Chosen& chosen, std::uint32_t* to) const;

  std::vector<Place> places_;  // while it is made
  util::HugeVector<std::uint32_t> words_;
  std::vector<std::uint64_t> first_words_;
  FirstEntries first_;
};

}  // namespace perdix::detail::index::elf
