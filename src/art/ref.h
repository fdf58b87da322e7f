// What a slot of the tree holds: nothing, a value, or a node with its kind in the low bits of the
// pointer.
//
// The kind is in the pointer rather than in the node, so that a search knows how to read a node
// before its memory arrives. A value is its own address, for which values are aligned to 8 bytes.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>

namespace perdix::art {

enum class Kind : std::uint8_t { value = 0, node4 = 1, node16 = 2, node48 = 3, node256 = 4 };

class Ref {
 public:
  constexpr Ref() = default;

  static Ref of_value(const void* value) noexcept { return of(value, Kind::value); }

  static Ref of(const void* object, Kind kind) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(object);
    assert((address & kKindMask) == 0);
    return Ref(address | static_cast<std::uintptr_t>(kind));
  }

  static constexpr Ref from_word(std::uintptr_t word) noexcept { return Ref(word); }
  constexpr std::uintptr_t word() const noexcept { return word_; }

  constexpr Kind kind() const noexcept { return static_cast<Kind>(word_ & kKindMask); }
  constexpr bool is_node() const noexcept { return (word_ & kKindMask) != 0; }
  constexpr bool is_null() const noexcept { return word_ == 0; }

  /// The value, or nullptr if this is null. Not for nodes.
  template <class Value>
  Value value() const noexcept {
    assert(!is_node());
    return reinterpret_cast<Value>(word_);
  }

  /// Node is the type that belongs to kind(), or the common header of all.
  template <class Node>
  Node* node() const noexcept {
    assert(is_node());
    return reinterpret_cast<Node*>(word_ & ~kKindMask);
  }

  /// Of the node or the value; nullptr if this is null.
  const void* address() const noexcept { return reinterpret_cast<const void*>(word_ & ~kKindMask); }

  friend constexpr bool operator==(Ref, Ref) = default;

 private:
  static constexpr std::uintptr_t kKindMask = 7;

  constexpr explicit Ref(std::uintptr_t word) : word_(word) {}

  std::uintptr_t word_ = 0;
};

/// A slot that readers read while a writer, who holds the lock, stores.
class Slot {
 public:
  /// acquire: whoever sees a reference sees the node as it was before it was published.
  Ref load() const noexcept { return Ref::from_word(word_.load(std::memory_order_acquire)); }

  void store(Ref ref) noexcept { word_.store(ref.word(), std::memory_order_release); }

 private:
  std::atomic<std::uintptr_t> word_{0};
};

}  // namespace perdix::art
