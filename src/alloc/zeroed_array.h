// An array that starts as zeros and takes memory only for what is written: for tables that are
// sized for the largest possible pool.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace perdix::detail::alloc {

struct FreeMemory {
  void operator()(void* memory) const noexcept { std::free(memory); }
};

/// Of types whose zero bytes are a value and that need no destructor, such as atomics of numbers.
template <class T>
using ZeroedArray = std::unique_ptr<T[], FreeMemory>;

/// Throws std::bad_alloc.
template <class T>
ZeroedArray<T> make_zeroed_array(std::size_t size) {
  static_assert(std::is_trivially_destructible_v<T>);
  void* memory = std::calloc(size, sizeof(T));
  if (memory == nullptr) throw std::bad_alloc();
  return ZeroedArray<T>(static_cast<T*>(memory));
}

}  // namespace perdix::detail::alloc
