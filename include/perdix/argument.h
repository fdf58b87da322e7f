// How calls take keys and values.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <perdix/types.h>

namespace perdix {

namespace detail {

/// Throws invalid_argument for a number below zero where a u64 is wanted.
[[noreturn]] void throw_negative(std::int64_t number);

/// Types that hold integers and nothing else. The sign of a char differs by machine, and a bool in
/// place of a number is most often another argument's.
template <class T>
concept Integer = std::integral<T> && sizeof(T) <= sizeof(std::uint64_t) &&
                  !std::same_as<T, bool> && !std::same_as<T, char>;

/// Enumerations that convert to integers by themselves.
template <class T>
concept UnscopedEnum = std::is_enum_v<T> && std::is_convertible_v<T, std::uint64_t>;

/// Scalars that are something else than an integer.
template <class T>
concept NoInteger = std::is_scalar_v<T> && !Integer<T> && !UnscopedEnum<T>;

/// Scalars that are something else than a pointer to characters; the literal nullptr, too.
template <class T>
concept NoString = std::is_scalar_v<T> &&
    (std::is_null_pointer_v<T> || !std::is_convertible_v<T, const char*>);

/// Objects, other than `Self`, that convert to `To`.
template <class T, class To, class Self>
concept ObjectLike =
    std::is_class_v<std::remove_cvref_t<T>> && !std::same_as<std::remove_cvref_t<T>, Self> &&
    std::is_convertible_v<T, To>;

}  // namespace detail

/// A key or a value as calls take it: `Storable`, or what converts to it without becoming something
/// else. Refused are arguments that C++ would convert although they mean something else, such as a
/// null pointer for a string or 2.5 for an integer. An argument refers to the caller's bytes, so
/// it is for parameters only.
template <Storable T>
class Argument;

/// Takes integers, unscoped enumerations and objects that convert to std::uint64_t. Does not
/// compile for bool, char, floating-point numbers and pointers: convert them where they are meant.
/// Throws invalid_argument for a negative number. Cost: none for unsigned types, a comparison for
/// signed ones.
template <>
class Argument<std::uint64_t> {
 public:
  /// Zero, from `{}`.
  constexpr Argument() = default;

  // NOLINTBEGIN(google-explicit-constructor): callers pass what they have
  /// An integer.
  template <detail::Integer T>
  constexpr Argument(T number) : number_(static_cast<std::uint64_t>(number)) {
    if constexpr (std::signed_integral<T>) {
      if (number < 0) [[unlikely]]
        detail::throw_negative(number);
    }
  }

  /// The number of an enumerator.
  template <detail::UnscopedEnum T>
  constexpr Argument(T number) : Argument(static_cast<std::underlying_type_t<T>>(number)) {}

  /// An object's number.
  template <detail::ObjectLike<std::uint64_t, Argument> T>
  constexpr Argument(T&& object) : number_(std::forward<T>(object)) {}

  /// A key or value of kind u64 is an integer, and nothing else converts to it.
  template <detail::NoInteger T>
  Argument(T not_an_integer) = delete;

  /// The number.
  constexpr operator std::uint64_t() const noexcept { return number_; }
  // NOLINTEND(google-explicit-constructor)

 private:
  std::uint64_t number_ = 0;
};

/// Takes what converts to std::string_view. Does not compile for numbers and null pointers.
template <>
class Argument<std::string> {
 public:
  /// No bytes, from `{}`.
  constexpr Argument() = default;

  // NOLINTBEGIN(google-explicit-constructor): callers pass what they have
  /// The bytes up to a NUL.
  constexpr Argument(const char* text) : bytes_(text) {}

  /// The bytes of a std::string, a std::string_view and the like.
  template <detail::ObjectLike<std::string_view, Argument> T>
  constexpr Argument(T&& object) : bytes_(std::forward<T>(object)) {}

  /// The bytes from `{data, size}` or `{begin, end}`.
  template <class Begin, class Rest>
  requires std::constructible_from<std::string_view, Begin, Rest>
  constexpr Argument(Begin begin, Rest rest) : bytes_(begin, rest) {}

  /// A key or value of kind bytes is a string: no number, and never a null pointer.
  template <detail::NoString T>
  Argument(T not_a_string) = delete;

  /// The bytes.
  constexpr operator std::string_view() const noexcept { return bytes_; }
  // NOLINTEND(google-explicit-constructor)

 private:
  std::string_view bytes_;
};

}  // namespace perdix
