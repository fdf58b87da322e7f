// Arithmetic of positions, and what a record says. Pure functions; thread-safe.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <optional>

#include "pm/access.h"
#include "util/checksum.h"
#include "wal/layout.h"

namespace perdix::detail::wal {

// --- Positions: sums of multiples of 32 and the stripe's number ----------------------------------

constexpr unsigned stripe_of_position(Position position) noexcept {
  return static_cast<unsigned>(position % sizeof(Record));
}

/// Where a stripe's first record lies. Not at 0, so that no position is 0.
constexpr Position first_position(unsigned stripe) noexcept { return kSegmentSize + stripe; }

constexpr unsigned slot_of(Position position) noexcept {
  return static_cast<unsigned>(position / kSegmentSize % kSegmentsPerStripe);
}

/// Bytes from the begin of the segment to the record.
constexpr std::uint64_t place_in_segment(Position position) noexcept {
  return position % kSegmentSize - stripe_of_position(position);
}

/// Bytes from the begin of the segment to where the record is written. Records that follow each
/// other go to lines of their own, eight of them, before a line gets its second record: to write
/// back a line that was written back a moment ago takes longer.
constexpr std::uint64_t written_at(Position position) noexcept {
  constexpr std::uint64_t kLines = 8, kPerLine = pm::kLineSize / sizeof(Record);
  constexpr std::uint64_t kGroup = kLines * kPerLine;
  static_assert(kSegmentSize / sizeof(Record) % kGroup == 0);
  const std::uint64_t number = place_in_segment(position) / sizeof(Record);
  const std::uint64_t line = number % kLines, half = number / kLines % kPerLine;
  return (number / kGroup * kGroup + line * kPerLine + half) * sizeof(Record);
}

/// The first position of the segment.
constexpr Position segment_begin(Position position) noexcept {
  return position - place_in_segment(position);
}

constexpr Link link_to(Position position) noexcept {
  return static_cast<Link>(position / sizeof(Record) % kLinkedRecords * kStripes +
                           stripe_of_position(position));
}

constexpr unsigned stripe_of_link(Link link) noexcept { return link % kStripes; }

/// The position that a link leads to, given where the link's stripe starts: the only one less than
/// a round of the ring away. Of a damaged link it may be any.
constexpr Position position_of(Link link, Position start) noexcept {
  const Position begin = start - kRingSize;  // this and the difference may wrap around
  return begin + (link / kStripes - begin / sizeof(Record)) % kLinkedRecords * sizeof(Record);
}

// --- Records -------------------------------------------------------------------------------------

/// A record's content, taken apart.
struct Content {
  Owner owner = 0;
  Type type = Type::put;
  Link link = 0;
  bool first = false;  ///< of its chain: the link says nothing else
  Word key = 0;
  Word value = 0;
};

constexpr std::uint64_t pack_where(Owner owner, Type type, Link link) noexcept {
  assert(owner != 0 && owner <= kMaxOwner);
  return owner | std::uint64_t{static_cast<std::uint8_t>(type)} << kOwnerBits |
         std::uint64_t{link} << (kOwnerBits + 2);
}
static_assert(kOwnerBits + 2 + kLinkBits == 64);

/// W1. One function with all that it calls inside: of a length that is known little of it is left.
[[gnu::flatten, gnu::noinline]] inline std::uint64_t check_of(std::uint64_t seed, Position position,
                                                              std::uint64_t where, Word key,
                                                              Word value) noexcept {
  const std::array<std::uint64_t, 4> words = {position, where, key, value};
  const std::uint64_t check = util::checksum(words.data(), sizeof words, seed);
  return check != 0 ? check : 1;
}

/// The content of a record if it is valid.
inline std::optional<Content> read_record(const Record& record, std::uint64_t seed,
                                          Position position) noexcept {
  const std::uint64_t check = pm::load(record.check), where = pm::load(record.where);
  Content content;
  content.key = pm::load(record.key);
  content.value = pm::load(record.value);
  if (check != check_of(seed, position, where, content.key, content.value)) return std::nullopt;
  content.owner = where & kMaxOwner;
  content.type = static_cast<Type>(where >> kOwnerBits & 3);
  content.link = static_cast<Link>(where >> (kOwnerBits + 2));
  content.first = content.link == link_to(position);
  return content;
}

}  // namespace perdix::detail::wal
