// Values: random ones of every size, and tagged ones, which contain a number and show whether they
// are whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "support/datum.h"
#include "support/rng.h"

namespace perdix::test {

/// A random value: for strings mostly short, sometimes empty, now and then a few MiB.
Datum random_value(Kind kind, Rng& rng);

/// A value of less than 40 bytes.
Datum small_value(Kind kind, Rng& rng);

/// A string of `size` bytes that depend on `number`.
std::string bytes_of(std::uint64_t number, std::size_t size);

/// The value that stands for `tag`: the number itself, or a string that begins with it and whose
/// length and other bytes follow from it (8 bytes to a few KiB, rarely 70 KiB).
Datum tagged_value(Kind kind, std::uint64_t tag);

/// The tag of a tagged value; nothing if any byte or the length of a string is not as it must be.
std::optional<std::uint64_t> tag_of(DatumView value);

}  // namespace perdix::test
