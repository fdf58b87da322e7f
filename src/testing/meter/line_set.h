// A set of line numbers that is emptied after each operation: open addressing, and a generation
// number instead of clearing. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace perdix::testing {

class LineSet {
 public:
  /// True if the line was not there.
  bool insert(std::uint64_t line) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    Slot& slot = find(line);
    if (slot.generation == generation_) return false;
    slot = {line, generation_};
    ++size_;
    return true;
  }

  void clear() {
    ++generation_;
    size_ = 0;
  }

 private:
  struct Slot {
    std::uint64_t line = 0;
    std::uint64_t generation = 0;  // the slot is empty unless this is the current one
  };

  Slot& find(std::uint64_t line) {
    std::size_t i = (line * 0x9e3779b97f4a7c15) >> 32;
    while (true) {
      Slot& slot = slots_[i++ & (slots_.size() - 1)];
      if (slot.generation != generation_ || slot.line == line) return slot;
    }
  }

  void grow() {
    const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
    for (const Slot& slot : old) {
      if (slot.generation == generation_) find(slot.line) = slot;
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(64);  // a power of two
  std::uint64_t generation_ = 1;
  std::size_t size_ = 0;
};

}  // namespace perdix::testing
