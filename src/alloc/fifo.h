// A queue in DRAM whose push can't fail once room was made: a commit must be able to record what it
// frees even without memory. Not thread-safe.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <vector>

namespace perdix::detail::alloc {

template <class T>
class Fifo {
 public:
  bool empty() const noexcept { return head_ == tail_; }
  std::size_t size() const noexcept { return tail_ - head_; }

  /// Makes room for `count` more pushes. May throw std::bad_alloc; amortised constant time.
  void reserve(std::size_t count) {
    if (size() + count <= items_.size()) return;
    std::size_t capacity = std::max<std::size_t>(items_.size() * 2, 64);
    while (capacity < size() + count) capacity *= 2;
    std::vector<T> larger(capacity);
    const std::size_t used = size();
    for (std::size_t i = 0; i < used; ++i) larger[i] = items_[(head_ + i) & (items_.size() - 1)];
    items_.swap(larger);
    head_ = 0;
    tail_ = used;
  }

  void push(const T& item) noexcept {
    assert(size() < items_.size());
    items_[tail_++ & (items_.size() - 1)] = item;
  }

  const T& front() const noexcept {
    assert(!empty());
    return items_[head_ & (items_.size() - 1)];
  }

  void pop() noexcept {
    assert(!empty());
    ++head_;
  }

 private:
  std::vector<T> items_;  // a power of two of them, or none
  std::size_t head_ = 0;  // counts all pops
  std::size_t tail_ = 0;  // counts all pushes
};

}  // namespace perdix::detail::alloc
