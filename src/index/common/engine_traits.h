// What the suites must know of an engine, so that a few keys reach its changes of structure. Each
// engine states it in its test_traits.h; the library does not use it.
#pragma once

#include <array>
#include <string_view>
#include <tuple>

#include <perdix/types.h>

#include "index/common/codec.h"

namespace perdix::detail::index {

/// Options that traits name.
using NamedOptions = IndexOptions (*)();

struct EngineTraits {
  std::string_view engine;  // the name that pools know it by

  // Pairs of a leaf, or of whatever else holds several pairs.
  unsigned full;      // an insert into one with this many splits it, or makes it larger
  unsigned most;      // what one has at most; more than `full` if they grow first
  unsigned joinable;  // two neighbours with this many in all, or few less, become one

  /// Numbers of pairs that an exploration begins with. The first is 0: then the steps make the
  /// index.
  std::array<unsigned, 11> fills;

  /// Whether keys of that hash want the same place, of which a full leaf has none left. Null: no
  /// keys do.
  bool (*crowds)(Hash16 hash);

  bool uses_background;    // some of its work is done by the pool's background thread
  std::string_view magic;  // begins each leaf in PM; empty: they have no mark

  /// With which few keys make an index that has the structure of a large one; the numbers above are
  /// for it. Null: the usual ones do.
  NamedOptions small = nullptr;

  /// Like `small`, and what has a fixed size there grows. Null: nothing has.
  NamedOptions growing = nullptr;

  /// Like `small`, but pairs come straight to their places, whatever the medium. Null: the engine
  /// knows no other way, or no media.
  NamedOptions straight = nullptr;

  /// With which it has write buffers, or a cached way to nodes. Null: it never has any.
  NamedOptions buffered = nullptr;

  /// The engine hashes keys with a seed of the index's own; `crowds` is of that hash.
  bool seeded = false;

  /// Leaves are joined only where one has no pair left, and the pool is full.
  bool joins_empty = false;
};

/// Those options; the defaults if there are none.
inline IndexOptions options_or_defaults(NamedOptions options) {
  return options != nullptr ? options() : IndexOptions{};
}

template <class Traits>
struct Listed {
  using Type = std::tuple<Traits>;
};
template <class... Traits>
struct Listed<std::tuple<Traits...>> {
  using Type = std::tuple<Traits...>;
};

/// The traits of one folder as a list; for its type only.
template <class Traits>
typename Listed<Traits>::Type listed();

/// Fills around what one, two and three leaves hold. Three full ones twice: it is the third leaf to
/// which a restart needs more than a link.
constexpr std::array<unsigned, 11> fills_around(unsigned leaf) {
  return {0,        3,        leaf / 2, leaf - 2, leaf, leaf + 1, leaf * 3 / 2,
          leaf * 2, leaf * 3, leaf * 3, 180};
}

/// The traits of an engine, among those of a list (engine_list.h); null if it is not there.
template <class... TestTraits>
const EngineTraits* find_traits(std::string_view engine, const std::tuple<TestTraits...>&) {
  const EngineTraits* found = nullptr;
  ((TestTraits::kTraits.engine == engine ? void(found = &TestTraits::kTraits) : void()), ...);
  return found;
}

}  // namespace perdix::detail::index
