// Pairs that were copied out of an index, on their way to whatever a call does with them. Their
// layout does not depend on the type of values, so that an engine can fill them and only the typed
// calls above it read them.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include <perdix/types.h>

#include "index/common/codec.h"

namespace perdix::detail::index {

/// A pair whose value is a number, or a string of that size that lies elsewhere. Of a key that is a
/// string the size counts.
template <Storable K>
struct CopiedPair {
  View<K> key;
  Word value;
};

/// The result of showing pairs.
struct Taken {
  std::size_t pairs;  ///< how many were looked at
  bool all;           ///< false: the one that looks has seen enough
};

/// A view of copied pairs. The bytes of their strings follow one another from `bytes` on, key after
/// value after key.
template <Storable K>
struct CopiedPairs {
  std::span<const CopiedPair<K>> pairs;
  const char* bytes = nullptr;  ///< of strings; integers need none

  /// Calls visit(key, value) for each pair until it returns false.
  template <Storable V, class Visit>
  Taken for_each(Visit&& visit) const {
    const char* at = bytes;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const View<K> key = take(pairs[i].key, at);
      if (!visit(key, take_value<V>(pairs[i].value, at))) return {i + 1, false};
    }
    return {pairs.size(), true};
  }

 private:
  // What lies at `at`, which moves behind it.
  static std::uint64_t take(std::uint64_t value, const char*&) { return value; }
  static std::string_view take(std::string_view copied, const char*& at) {
    const std::string_view taken(at, copied.size());
    at += taken.size();
    return taken;
  }
  template <Storable V>
  static View<V> take_value(Word value, const char*& at) {
    if constexpr (std::is_same_v<V, std::uint64_t>) {
      return value;
    } else {
      return take(std::string_view(at, value), at);
    }
  }
};

template <Storable K>
class PairSink;

/// Any `Taken(const CopiedPairs<K>&)` but a PairSink, which is copied and not referred to.
template <class Take, class K>
concept TakesPairs = !std::same_as<std::remove_cvref_t<Take>, PairSink<K>> &&
                     std::is_invocable_r_v<Taken, Take&, const CopiedPairs<K>&>;

/// Takes copied pairs: a reference to what does.
template <Storable K>
class PairSink {
 public:
  /// Refers to `take`, which must outlive the call.
  template <TakesPairs<K> Take>
  PairSink(Take&& take)  // NOLINT(google-explicit-constructor): lambdas are passed directly
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(take)))),
        take_([](void* object, const CopiedPairs<K>& pairs) -> Taken {
          return (*static_cast<std::remove_reference_t<Take>*>(object))(pairs);
        }) {}

  Taken operator()(const CopiedPairs<K>& pairs) const { return take_(object_, pairs); }

 private:
  void* object_;
  Taken (*take_)(void*, const CopiedPairs<K>&);
};

}  // namespace perdix::detail::index
