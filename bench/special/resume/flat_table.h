// A hash table of numbers in one array, in which the comparator keeps its log's pairs.
//
// Open addressing with linear probing, at most half full, in huge pages if the system provides
// them. Writers need exclusive access; readers may share the table once it is filled.
#pragma once

#include <sys/mman.h>

#include <bit>
#include <cstdint>
#include <new>
#include <optional>

#include "util/hash.h"

namespace perdix::bench::resumption {

class FlatTable {
 public:
  /// Makes a table for up to that many keys.
  explicit FlatTable(std::uint64_t keys) : mask_(std::bit_ceil(2 * keys + 2) - 1) {
    void* memory =
        ::mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    ::madvise(memory, bytes(), MADV_HUGEPAGE);
    slots_ = static_cast<Slot*>(memory);
  }
  ~FlatTable() { ::munmap(slots_, bytes()); }
  FlatTable(const FlatTable&) = delete;
  FlatTable& operator=(const FlatTable&) = delete;

  void prefetch(std::uint64_t key) const { __builtin_prefetch(&slots_[place(key)], 1); }

  void put(std::uint64_t key, std::uint64_t value) {
    if (key == 0) {
      of_zero_ = value;
      return;
    }
    std::uint64_t at = place(key);
    while (slots_[at].key != 0 && slots_[at].key != key) at = (at + 1) & mask_;
    slots_[at] = {key, value};
  }

  std::optional<std::uint64_t> get(std::uint64_t key) const {
    if (key == 0) return of_zero_;
    for (std::uint64_t at = place(key); slots_[at].key != 0; at = (at + 1) & mask_) {
      if (slots_[at].key == key) return slots_[at].value;
    }
    return std::nullopt;
  }

 private:
  struct Slot {
    std::uint64_t key;  ///< 0: free
    std::uint64_t value;
  };

  std::uint64_t place(std::uint64_t key) const { return detail::util::hash(key) & mask_; }
  std::uint64_t bytes() const { return (mask_ + 1) * sizeof(Slot); }

  std::uint64_t mask_;
  Slot* slots_;
  std::optional<std::uint64_t> of_zero_;
};

}  // namespace perdix::bench::resumption
