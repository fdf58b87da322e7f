// The ranges of memory that the calling thread has flushed and not fenced yet, in the page_cache
// domain. They lie in the thread's memory, so noting one takes no lock and allocates nothing.
//
// Each range has its owner, so that notes of several pools do not mix, and so that notes for a pool
// that was closed in between are never read again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace perdix::detail::pm {

struct MemoryRange {
  std::uintptr_t begin;
  std::uintptr_t end;

  bool contains(MemoryRange other) const noexcept {
    return begin <= other.begin && other.end <= end;
  }
  bool touches(MemoryRange other) const noexcept {
    return begin <= other.end && other.begin <= end;
  }
};

class PageNotes {
 public:
  static constexpr std::size_t kCapacity = 32;
  using Ranges = std::array<MemoryRange, kCapacity>;

  static PageNotes& of_this_thread() noexcept {
    static thread_local constinit PageNotes notes;
    return notes;
  }

  /// False if there is no room.
  bool add(std::uint64_t owner, MemoryRange range) noexcept {
    // Most flushes follow one of the same place, or of the place next to it.
    if (count_ > 0) {
      Note& last = notes_[count_ - 1];
      if (last.owner == owner && last.range.touches(range)) {
        if (range.begin < last.range.begin) last.range.begin = range.begin;
        if (range.end > last.range.end) last.range.end = range.end;
        return true;
      }
    }
    if (count_ == kCapacity) return false;
    notes_[count_++] = {owner, range};
    return true;
  }

  /// Drops the notes for owners that are gone.
  template <class IsThere>
  void forget_unless(const IsThere& is_there) noexcept {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      if (is_there(notes_[i].owner)) notes_[kept++] = notes_[i];
    }
    count_ = kept;
  }

  /// Takes all ranges of an owner out. Returns how many there were.
  std::size_t take(std::uint64_t owner, Ranges& ranges) noexcept {
    std::size_t taken = 0, kept = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      if (notes_[i].owner == owner) {
        ranges[taken++] = notes_[i].range;
      } else {
        notes_[kept++] = notes_[i];
      }
    }
    count_ = kept;
    return taken;
  }

 private:
  struct Note {
    std::uint64_t owner;
    MemoryRange range;
  };

  std::array<Note, kCapacity> notes_{};
  std::size_t count_ = 0;
};

}  // namespace perdix::detail::pm
