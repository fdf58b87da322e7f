// A vector in memory that the kernel backs with huge pages, where it has some.
//
// For large arrays that are filled once and used at random: a fault of 4 KiB costs about as much as
// filling them, and a write to one of hundreds of places misses the TLB each time.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace perdix::detail::util {

/// Stateless; thread-safe.
template <class T>
class HugeAllocator {
 public:
  using value_type = T;

  HugeAllocator() = default;
  template <class U>
  HugeAllocator(const HugeAllocator<U>&) {}

  T* allocate(std::size_t n) {
    const std::size_t bytes = n * sizeof(T);
    if (bytes < kHugePage) return static_cast<T*>(::operator new(bytes));
    void* memory = ::operator new (bytes, std::align_val_t{kHugePage});
    // Without huge pages everything still works, only slower.
    madvise(memory, bytes, MADV_HUGEPAGE);
    return static_cast<T*>(memory);
  }

  void deallocate(T* memory, std::size_t n) {
    if (n * sizeof(T) < kHugePage)
      ::operator delete(memory);
    else
      ::operator delete (memory, std::align_val_t{kHugePage});
  }

  /// Elements that are not given a value are left uninitialised, where their type allows it.
  template <class U>
  void construct(U* element) {
    ::new (static_cast<void*>(element)) U;
  }
  template <class U, class... Args>
  void construct(U* element, Args&&... args) {
    ::new (static_cast<void*>(element)) U{std::forward<Args>(args)...};
  }

  friend bool operator==(const HugeAllocator&, const HugeAllocator&) { return true; }

 private:
  static constexpr std::size_t kHugePage = std::size_t{2} << 20;
};

template <class T>
using HugeVector = std::vector<T, HugeAllocator<T>>;

}  // namespace perdix::detail::util
