// The engines that every suite runs over. An engine joins by one line in `Engines`.
#pragma once

#include <perdix/perdix.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

namespace perdix::test {

/// A string literal as a template argument.
template <std::size_t kSize>
struct Literal {
  // NOLINTNEXTLINE(google-explicit-constructor): literals are passed directly
  constexpr Literal(const char (&literal)[kSize]) {
    for (std::size_t i = 0; i < kSize; ++i) text[i] = literal[i];
  }
  char text[kSize] = {};
};

/// A class template that has the calls of an index, with the name that pools know it by.
template <template <Storable, Storable> class IndexTemplate, Literal kLiteral>
struct Engine {
  template <Storable K, Storable V>
  using Index = IndexTemplate<K, V>;

  static constexpr std::string_view kName = kLiteral.text;
};

template <class... Types>
struct TypeList {};

using Engines = TypeList<Engine<SpTree, "sptree">>;

/// An index with scan(); hash indexes have none, and the cases for scans skip them.
template <class I>
concept OrderedIndex = requires(const I& index, typename I::Key from) {
  index.scan(from, std::size_t{1});
};

/// Calls f.operator()<Type>() for each type of a list.
template <class... Types, class F>
void for_each_type(TypeList<Types...>, F&& f) {
  (f.template operator()<Types>(), ...);
}

/// Calls f.operator()<K, V>() for the four combinations of kinds.
template <class F>
void for_each_kinds(F&& f) {
  f.template operator()<std::uint64_t, std::uint64_t>();
  f.template operator()<std::uint64_t, std::string>();
  f.template operator()<std::string, std::uint64_t>();
  f.template operator()<std::string, std::string>();
}

/// "u64_bytes" for keys that are numbers and values that are strings.
template <Storable K, Storable V>
std::string kinds_name() {
  return std::string(to_string(kKindOf<K>)) + "_" + std::string(to_string(kKindOf<V>));
}

}  // namespace perdix::test
