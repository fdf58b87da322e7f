// The content of a slot of the tree: nothing, a value, or a node with its kind in the low bits of
// the pointer; and in the high bits the least byte that follows in any key below.
//
// Both are in the pointer rather than in what it refers to, so that a search knows before that
// memory arrives how to read it, and whether all keys below are greater than the wanted one. Values
// are aligned to 8 bytes, and all addresses are the user's half of them.
#pragma once

#include <atomic>
#include <cassert>
#include <cstdint>

namespace perdix::detail::art {

enum class Kind : std::uint8_t {
  value = 0,
  node2 = 1,
  node4 = 2,
  node16 = 3,
  node48 = 4,
  node256 = 5
};

class Ref {
 public:
  constexpr Ref() = default;

  static Ref of_value(const void* value, std::uint8_t least_byte) noexcept {
    return of(value, Kind::value, least_byte);
  }

  static Ref of(const void* object, Kind kind, std::uint8_t least_byte) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(object);
    assert((address & ~kAddressMask) == 0);
    return Ref(address | static_cast<std::uintptr_t>(kind)).with_least_byte(least_byte);
  }

  /// Returns a reference to this object with another least byte.
  Ref with_least_byte(std::uint8_t byte) const noexcept {
    return Ref((word_ & (kAddressMask | kKindMask)) | std::uintptr_t{byte} << kLeastByteShift);
  }

  static constexpr Ref from_word(std::uintptr_t word) noexcept { return Ref(word); }
  constexpr std::uintptr_t word() const noexcept { return word_; }

  constexpr Kind kind() const noexcept { return static_cast<Kind>(word_ & kKindMask); }
  constexpr bool is_node() const noexcept { return kind() != Kind::value; }
  constexpr bool is_null() const noexcept { return word_ == 0; }

  /// Of the keys below, the least byte that follows the one which leads here; 0 if a key ends.
  constexpr std::uint8_t least_byte() const noexcept {
    return static_cast<std::uint8_t>(word_ >> kLeastByteShift);
  }

  /// The value, or nullptr if this is null. Not for nodes.
  template <class Value>
  Value value() const noexcept {
    assert(!is_node());
    return reinterpret_cast<Value>(word_ & kAddressMask);
  }

  /// Node is the type that belongs to kind(), or the common header of all.
  template <class Node>
  Node* node() const noexcept {
    assert(is_node());
    return reinterpret_cast<Node*>(word_ & kAddressMask);
  }

  /// Of the node or the value; nullptr if this is null.
  const void* address() const noexcept {
    return reinterpret_cast<const void*>(word_ & kAddressMask);
  }

  friend constexpr bool operator==(Ref, Ref) = default;

 private:
  static constexpr std::uintptr_t kKindMask = 7;
  static constexpr unsigned kLeastByteShift = 56;
  static constexpr std::uintptr_t kAddressMask =
      (std::uintptr_t{1} << kLeastByteShift) - 1 - kKindMask;

  constexpr explicit Ref(std::uintptr_t word) : word_(word) {}

  std::uintptr_t word_ = 0;
};

/// A slot that readers read while a writer stores, with the lock held.
class Slot {
 public:
  /// acquire: a thread that sees a reference sees the node as it was before it was published.
  Ref load() const noexcept { return Ref::from_word(word_.load(std::memory_order_acquire)); }

  void store(Ref ref) noexcept { word_.store(ref.word(), std::memory_order_release); }

 private:
  std::atomic<std::uintptr_t> word_{0};
};

}  // namespace perdix::detail::art
