// Change: the result of the function that update_with() calls for a key.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <perdix/argument.h>
#include <perdix/types.h>

namespace perdix {

/// The result of that function: leave the key as it is, give it a value, or remove it.
///
///   counters.update_with("hits", [](std::optional<std::uint64_t> hits) {
///     return Change<std::uint64_t>::store(hits.value_or(0) + 1);
///   });
template <Storable V>
class Change {
 public:
  /// How store() takes a value: strings are moved.
  using Stored = std::conditional_t<std::is_same_v<V, std::string>, V, Argument<V>>;

  /// Leaves the key as it is.
  static Change keep() { return Change(true, std::nullopt); }
  /// Gives the key this value, whether or not it is there.
  static Change store(Stored value) { return Change(false, V(std::move(value))); }
  /// A string is neither a number nor a null pointer.
  template <detail::NoString T>
  requires std::same_as<V, std::string>
  static Change store(T not_a_string) = delete;
  /// Removes the key.
  static Change erase() { return Change(false, std::nullopt); }

  /// Returns whether keep() made this change.
  bool keeps() const noexcept { return keeps_; }

  /// The new value; none if the key goes or stays as it is.
  const std::optional<V>& value() const noexcept { return value_; }

 private:
  Change(bool keeps, std::optional<V> value) : keeps_(keeps), value_(std::move(value)) {}

  bool keeps_;
  std::optional<V> value_;
};

/// A function for update_with(): called with the value of the key, none if the key is absent. The
/// function must not change that key itself, see PointIndex::update_with().
template <class F, class V>
concept ChangeFunction = std::is_invocable_r_v<Change<V>, F&, std::optional<View<V>>>;

namespace detail::index {

/// A run of a function of update_with() on this thread, from construction to destruction. Meanwhile
/// this thread can't change the key: update_with() would find another value each time and never
/// end.
class RunningChange {
 public:
  /// For a key of an index; both must outlive this object. Throws
  /// invalid_argument if this thread runs a function for that key already.
  RunningChange(const void* index, std::string_view key);
  RunningChange(const RunningChange&) = delete;
  RunningChange& operator=(const RunningChange&) = delete;
  ~RunningChange();

  /// Returns whether a run, or one that it is part of, is for that key. `innermost` may be null.
  static bool contains(const RunningChange* innermost, const void* index, std::string_view key);

 private:
  const void* index_;
  std::string_view key_;
  RunningChange* outer_;  // of the same thread
};

/// The bytes of a key of either kind, in place.
inline std::string_view key_bytes(const std::uint64_t& key) {
  return {reinterpret_cast<const char*>(&key), sizeof key};
}
inline std::string_view key_bytes(const std::string_view& key) { return key; }

}  // namespace detail::index

}  // namespace perdix
