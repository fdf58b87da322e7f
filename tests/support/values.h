// Values: random ones of every size, and tagged ones that carry a number and prove that they are
// whole.
#pragma once

#include <perdix/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "support/rng.h"

namespace perdix::test {

/// A random value: for strings mostly short, sometimes empty, now and then a few MiB.
template <Storable V>
V random_value(Rng& rng);

/// A string of `size` bytes that depend on `number`.
std::string bytes_of(std::uint64_t number, std::size_t size);

/// The value that stands for `tag`: the number itself, or a string that begins with it and whose
/// length and other bytes follow from it (8 bytes to a few KiB, rarely 70 KiB).
template <Storable V>
V tagged_value(std::uint64_t tag);

/// The tag of a tagged value; nothing if any byte or the length of a string is not as it must be.
std::optional<std::uint64_t> tag_of(std::uint64_t value);
std::optional<std::uint64_t> tag_of(std::string_view value);

}  // namespace perdix::test
