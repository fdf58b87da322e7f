// A store of a commit, before it is made.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

namespace perdix::detail::pm {

/// The bits of `mask` in an aligned word become those of `value`; the others stay as they are.
struct Change {
  std::uint64_t* word;
  std::uint64_t mask;
  std::uint64_t value;

  std::uint64_t of(std::uint64_t before) const noexcept { return (before & ~mask) | value; }
};

/// A change of all bits of a word.
inline Change set_word(std::uint64_t& word, std::uint64_t value) noexcept {
  return {&word, ~std::uint64_t{0}, value};
}

/// Makes a change in memory. Atomic (release); other threads may change other bits of the word.
inline void make(const Change& change) noexcept {
  std::uint64_t before = __atomic_load_n(change.word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(change.word, &before, change.of(before), true,
                                      __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
  }
}

inline void make_all(std::span<const Change> changes) noexcept {
  for (const Change& change : changes) make(change);
}

/// The most changes that one commit makes.
inline constexpr std::size_t kMaxChanges = 96;

/// The changes of one commit, in the order in which they are made.
class Changes {
 public:
  void add(const Change& change) noexcept {
    assert(count_ < kMaxChanges);
    changes_[count_++] = change;
  }
  void set(std::uint64_t& word, std::uint64_t value) noexcept { add(set_word(word, value)); }

  std::span<const Change> all() const noexcept { return {changes_.data(), count_}; }

 private:
  std::array<Change, kMaxChanges> changes_;  // the first count_
  std::size_t count_ = 0;
};

}  // namespace perdix::detail::pm
