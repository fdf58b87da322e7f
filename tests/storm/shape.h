// The shapes of keys and values. A key is a function of its number, so a set of millions of keys
// needs no memory. A value contains the number of its key and a version, and shows whether it is
// whole.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "support/datum.h"

namespace perdix::test::storm {

/// How the keys of an index relate to each other.
enum class Shape : std::uint8_t {
  random,      ///< spread over the whole range
  sequential,  ///< neighbours, ascending with their numbers
  clustered,   ///< runs of neighbours far from each other
  edges,       ///< the ends of the range and the longest keys, then random ones
  prefix,      ///< strings that share a long prefix
  groups,      ///< strings that share a long prefix, and few of them leave it in their own way
  endings,     ///< strings that end in NUL or 0xFF, several of them
  nested,      ///< strings that are prefixes of each other
};

inline constexpr std::array kShapes = {Shape::random,  Shape::sequential, Shape::clustered,
                                       Shape::edges,   Shape::prefix,     Shape::groups,
                                       Shape::endings, Shape::nested};

std::string_view name_of(Shape shape);

/// The shapes from `prefix` on are of strings only.
constexpr bool needs_bytes(Shape shape) { return shape >= Shape::prefix; }

struct Keys {
  Kind kind = Kind::u64;
  Shape shape = Shape::random;
  std::uint32_t prefix = 8;  ///< bytes that keys share, for the shapes that have a prefix
  std::uint64_t seed = 0;

  /// The key of that number; different numbers below most() have different keys.
  Datum operator()(std::uint32_t number) const;

  /// Numbers that this shape has keys for.
  std::uint32_t most() const;
};

/// The sizes of string values.
enum class Sizes : std::uint8_t {
  small,  ///< up to 40 bytes
  mixed,  ///< mostly small, some of some KiB, few of 70 KiB
  large,  ///< 1 to 40 KiB
  huge,   ///< 200 KiB to 1 MiB
};

std::string_view name_of(Sizes sizes);

/// What a value says about itself.
struct Tag {
  std::uint32_t key = 0;
  std::uint32_t version = 0;

  bool operator==(const Tag&) const = default;
};

struct Values {
  Kind kind = Kind::u64;
  Sizes sizes = Sizes::small;

  Datum operator()(Tag tag) const;

  /// The tag of a value that is whole, else nothing.
  std::optional<Tag> read(DatumView value) const;

  /// Bytes of the value with this tag.
  std::size_t size(Tag tag) const;
};

}  // namespace perdix::test::storm
