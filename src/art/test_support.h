// What the tests of the tree share: values with keys, and nodes on the heap, where AddressSanitizer
// sees each use after a free.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>
#include <string_view>

#include "art/tree.h"
#include "epoch/reclaimer.h"

namespace perdix::detail::art::testing {

template <class Stored, class KeyView>
struct alignas(8) Item {
  Stored key;
  struct KeyOf {
    KeyView operator()(const Item* item) const { return item->key; }
  };
};

using IntItem = Item<std::uint64_t, std::uint64_t>;
using StringItem = Item<std::string, std::string_view>;
using ViewItem = Item<std::string_view, std::string_view>;

class HeapMemory {
 public:
  HeapMemory(epoch::Reclaimer& reclaimer, std::atomic<std::int64_t>& bytes)
      : reclaimer_(&reclaimer), bytes_(&bytes) {}

  void* allocate(std::size_t bytes) {
    *bytes_ += static_cast<std::int64_t>(bytes);
    return ::operator new (bytes, std::align_val_t{64});
  }

  void release(void* memory, std::size_t bytes) noexcept { free(memory, bytes, *bytes_); }

  template <class Node>
  void retire(Node* node) noexcept {
    reclaimer_->retire(
        node,
        [](void* object, void* bytes) {
          free(object, sizeof(Node), *static_cast<std::atomic<std::int64_t>*>(bytes));
        },
        bytes_);
  }

 private:
  static void free(void* memory, std::size_t size, std::atomic<std::int64_t>& bytes) noexcept {
    bytes -= static_cast<std::int64_t>(size);
    ::operator delete (memory, std::align_val_t{64});
  }

  epoch::Reclaimer* reclaimer_;
  std::atomic<std::int64_t>* bytes_;
};

/// A tree on the heap, and a check that it gave all memory back.
template <class Item>
class HeapTree {
 public:
  using Tree = art::Tree<Item*, typename Item::KeyOf, HeapMemory>;
  using Key = typename Tree::Key;

  HeapTree() { tree_.emplace(HeapMemory(reclaimer_, bytes_)); }

  /// Destroys the tree; the bytes that it kept.
  std::int64_t leak() {
    tree_.reset();
    reclaimer_.drain();
    return bytes_;
  }

  /// Bytes allocated once everything retired was freed.
  std::int64_t settled_bytes() {
    reclaimer_.drain();
    return bytes_;
  }

  Tree* operator->() { return &*tree_; }
  Tree& operator*() { return *tree_; }
  epoch::Reclaimer& reclaimer() { return reclaimer_; }

 private:
  std::atomic<std::int64_t> bytes_{0};
  epoch::Reclaimer reclaimer_;
  std::optional<Tree> tree_;
};

}  // namespace perdix::detail::art::testing
