// The numbers of an index that its creation decides, what follows from them, and which part of a
// key's hash decides what. Keys are hashed with a seed of the index's own (util/seeded_hash.h).
//
//   bits of the hash   decide
//   63 ...             the segment (as many as its depth), and the collecting log
//   47 ... 32          the signature: fingerprint, and the group that it lies in
//   31 ... 0           the bucket in its segment
//
// So a split needs one more bit, and a pair stays in the bucket of the same number. Small values;
// thread-safe.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string_view>

#include <perdix/papers/elimda.h>
#include <perdix/types.h>

#include "index/elimda/layout.h"
#include "pool/pool_core.h"
#include "util/seeded_hash.h"

namespace perdix::detail::index::elimda {

inline constexpr std::string_view kEngineName = "elimda";

using Signature = std::uint16_t;

struct KeyHash {
  std::uint64_t bits = 0;

  std::uint64_t prefix(unsigned depth) const { return depth == 0 ? 0 : bits >> (64 - depth); }
  unsigned bit(unsigned depth) const { return static_cast<unsigned>(bits >> (63 - depth) & 1); }
  Signature signature() const { return static_cast<Signature>(bits >> 32); }
  unsigned bucket(unsigned buckets) const {
    return static_cast<unsigned>((bits & 0xffff'ffff) * buckets >> 32);
  }
};

/// Hashes the keys of one index.
class Hasher {
 public:
  explicit Hasher(std::uint64_t seed) : hash_(seed) {}

  KeyHash operator()(std::uint64_t key) const { return {hash_(key)}; }

  /// The empty string's signature is 0: its word has no tag.
  KeyHash operator()(std::string_view key) const {
    const std::uint64_t bits = hash_(key);
    return {key.empty() ? bits & ~(std::uint64_t{0xffff} << 32) : bits};
  }

 private:
  const util::SeededHash hash_;
};

struct Shape {
  unsigned logs = 8192;  ///< the most, if their number grows
  unsigned unit_pairs = 16;
  unsigned d_pairs = 16;
  unsigned p_pairs = 256;
  unsigned buckets = 15;   ///< P-buckets of a segment
  std::uint64_t seed = 0;  ///< of hashes; 0: an old index has none, a new one draws it
  bool logs_grow = false;  ///< the number of logs, with that of segments

  static constexpr unsigned kMaxUnitPairs = 256;
  static constexpr unsigned kMaxLogs = 32768;
  static constexpr unsigned kMaxGrowingLogs = kMaxLogs / 2;  ///< so that no name is kNoLog

  bool operator==(const Shape&) const = default;

  unsigned unit_bytes() const { return unit_pairs * sizeof(Pair); }
  /// All names of logs are below this.
  unsigned log_names() const { return logs_grow ? 2 * logs : logs; }
  // --- Segments ---
  unsigned live_words() const { return p_pairs < 64 ? 1 : p_pairs / 64; }  ///< of a bucket
  /// The first slot from this one on at which a media unit begins.
  unsigned unit_from(unsigned slot) const {
    return (slot + unit_pairs - 1) / unit_pairs * unit_pairs;
  }
  std::uint64_t segment_pairs_at() const {
    return round_up(sizeof(SegmentHead) + std::uint64_t{buckets} * live_words() * 8);
  }
  std::uint64_t segment_bytes() const {
    return segment_pairs_at() + std::uint64_t{buckets} * p_pairs * sizeof(Pair);
  }

  // --- Backup log ---
  unsigned unit_words() const { return (unit_pairs + UnitWord::kPairs - 1) / UnitWord::kPairs; }
  unsigned chunk_units() const {
    return static_cast<unsigned>((kChunkBytes - sizeof(ChunkHead) - unit_bytes()) /
                                 (unit_bytes() + 8 * unit_words()));
  }
  std::uint64_t chunk_pairs_at() const {
    return round_up(sizeof(ChunkHead) + std::uint64_t{chunk_units()} * unit_words() * 8);
  }

  // --- Collecting logs ---
  unsigned dead_words() const { return unit_pairs < 64 ? 1 : unit_pairs / 64; }
  unsigned log_head_words() const { return std::bit_ceil(1 + dead_words()); }
  std::uint64_t log_heads_bytes(unsigned count) const {
    return std::uint64_t{count} * log_head_words() * 8;
  }
  std::uint64_t log_area_bytes(unsigned count) const {
    return log_heads_bytes(count) + unit_bytes() + std::uint64_t{count} * unit_bytes();
  }

  // There are 2^depth logs; the first `depth` bits of a hash choose one.
  unsigned max_log_depth() const { return static_cast<unsigned>(std::countr_zero(logs)); }
  /// The depth that suits a table of so many segments: logs take about half as much of the pool.
  unsigned log_depth_for(unsigned segments) const {
    if (!logs_grow) return max_log_depth();
    const std::uint64_t of_one = log_head_words() * 8 + unit_bytes();
    const std::uint64_t count = std::max<std::uint64_t>(segments * segment_bytes() / 2 / of_one, 1);
    return std::min(max_log_depth(), static_cast<unsigned>(std::bit_width(count)) - 1);
  }
  /// What the units of a log call it. Where the number of logs grows, no log of another depth has
  /// the name, and those of a smaller depth have smaller names.
  std::uint16_t log_name(unsigned depth, unsigned log) const {
    return static_cast<std::uint16_t>(logs_grow ? 1u << depth | log : log);
  }

  std::uint64_t round_up(std::uint64_t bytes) const {
    return (bytes + unit_bytes() - 1) / unit_bytes() * unit_bytes();
  }

  // --- Fingerprints ---
  unsigned slot_bits() const { return static_cast<unsigned>(std::bit_width(p_pairs - 1)); }
  unsigned groups() const { return p_pairs < 64 ? 8 : p_pairs / 8; }
  /// Pairs that come straight to a P-bucket before they get fingerprints in groups.
  unsigned recent_pairs() const { return std::clamp(p_pairs / 16, 4u, 16u); }
};

/// Buckets of a segment: fifteen by default, which fill 64 KiB with the head. Small buckets
/// overflow at fewer pairs than the average sooner, so there are fewer of them.
inline unsigned buckets_for(unsigned p_pairs) { return std::clamp(p_pairs / 16, 2u, 15u); }

/// Whether pairs are written in media units, in a pool and with that choice.
bool in_media_units(MediaUnits choice, const pool::PoolCore& pool);

/// The shape of a new index. The options must be in their ranges.
Shape shape_from(const ElimDaOptions& options);

/// The root block of an index, which is created if there is none. Throws corrupt, out_of_space.
Root& open_root(pool::PoolCore& pool, std::uint64_t& word, const Shape& shape);

/// Throw corrupt.
Root& root_at(const pool::PoolCore& pool, pm::Offset offset);
Shape shape_of(const pool::PoolCore& pool, const Root& root);

/// Whether the logs of an index say that they are being copied; an earlier release may have made
/// it.
bool logs_say_copying(const Root& root);
/// Says so from now on: no copy is under way.
void let_logs_say_copying(const pool::PoolCore& pool, Root& root);

}  // namespace perdix::detail::index::elimda
