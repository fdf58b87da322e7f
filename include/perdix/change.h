// What the function that update_with() calls does with a key.
#pragma once

#include <concepts>
#include <optional>
#include <string>
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

  /// Whether it was made by keep().
  bool keeps() const noexcept { return keeps_; }

  /// The new value; none if the key goes or stays as it is.
  const std::optional<V>& value() const noexcept { return value_; }

 private:
  Change(bool keeps, std::optional<V> value) : keeps_(keeps), value_(std::move(value)) {}

  bool keeps_;
  std::optional<V> value_;
};

/// What update_with() takes: called with the value of the key, none if the key is absent. It must
/// not change that key itself: update_with() would then find another value each time, and call it
/// again without end.
template <class F, class V>
concept ChangeFunction = std::is_invocable_r_v<Change<V>, F&, std::optional<View<V>>>;

}  // namespace perdix
