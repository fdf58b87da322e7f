// Fingerprints of the pairs in a P-bucket, in DRAM. An entry of 16 bits has the pair's slot in its
// high bits and hash bits in its low ones, so a lookup reads exactly the pairs that may match.
//
// Entries lie in groups, by further hash bits, within a group in the order of slots: so a lookup
// reads one group, a part of a line, and meets the pairs of a key in the order in which they came.
// An entry is killed in place, which leaves its slot and sets all hash bits: no pair has those.
//
// An entry that match() has loaded may be killed at any time. So callers load the entry again,
// atomically, when they have read the pair. The load in match() is hidden from ThreadSanitizer for
// that reason. Pure functions.
#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "index/elimda/shape.h"

namespace perdix::detail::index::elimda {

/// How the signature becomes a group and the hash bits of an entry.
class FingerprintCode {
 public:
  /// `bits` of an entry in all, at most 16.
  FingerprintCode(const Shape& shape, unsigned bits)
      : slot_shift_(16 - shape.slot_bits()),
        group_bits_(static_cast<unsigned>(std::countr_zero(shape.groups()))),
        kill_mask_(static_cast<std::uint16_t>((1u << slot_shift_) - 1)),
        values_(values_of(std::clamp(bits, shape.slot_bits() + 2, 16u) - shape.slot_bits())) {}

  static constexpr unsigned kMaxGroups = 512;

  unsigned groups() const { return 1u << group_bits_; }
  unsigned slots() const { return 1u << (16 - slot_shift_); }
  unsigned group(Signature signature) const { return signature & (groups() - 1); }
  std::uint16_t value(Signature signature) const {
    return static_cast<std::uint16_t>((signature >> group_bits_) % values_);
  }
  std::uint16_t entry(unsigned slot, Signature signature) const {
    return static_cast<std::uint16_t>(slot << slot_shift_ | value(signature));
  }
  unsigned slot(std::uint16_t entry) const { return entry >> slot_shift_; }
  bool killed(std::uint16_t entry) const { return (entry & kill_mask_) == kill_mask_; }
  std::uint16_t kill(std::uint16_t entry) const {
    return static_cast<std::uint16_t>(entry | kill_mask_);
  }
  std::uint16_t mask() const { return kill_mask_; }

 private:
  /// One less than the bits allow: the last value is that of killed entries.
  static unsigned values_of(unsigned bits) { return (1u << bits) - 1; }

  unsigned slot_shift_;
  unsigned group_bits_;
  std::uint16_t kill_mask_;
  unsigned values_;
};

/// Bit i is set if entry i has that value under the mask. Reads eight entries.
__attribute__((no_sanitize("thread", "address"))) inline unsigned match_eight(
    const std::uint16_t* entries, std::uint16_t mask, std::uint16_t value) {
  const __m128i loaded = _mm_loadu_si128(reinterpret_cast<const __m128i*>(entries));
  const __m128i masked = _mm_and_si128(loaded, _mm_set1_epi16(static_cast<short>(mask)));
  const __m128i equal = _mm_cmpeq_epi16(masked, _mm_set1_epi16(static_cast<short>(value)));
  return static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(equal, _mm_setzero_si128())));
}

/// Bit i is set if byte i equals `value`. Reads sixteen bytes.
__attribute__((no_sanitize("thread", "address"))) inline unsigned match_sixteen(
    const std::uint8_t* bytes, std::uint8_t value) {
  const __m128i loaded = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  const __m128i equal = _mm_cmpeq_epi8(loaded, _mm_set1_epi8(static_cast<char>(value)));
  return static_cast<unsigned>(_mm_movemask_epi8(equal));
}

}  // namespace perdix::detail::index::elimda
