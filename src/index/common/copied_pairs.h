// What takes pairs that were copied out of an index (types.h), whatever a call does with them.
#pragma once

#include <concepts>
#include <memory>
#include <type_traits>

#include <perdix/types.h>

namespace perdix::detail::index {

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
