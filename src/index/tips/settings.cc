#include "index/tips/settings.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include <perdix/error.h>

#include "index/tips/layout.h"
#include "index/tips/uno.h"

namespace perdix::detail::index::tips {
namespace {

// An erase finds room in the last quarter of a log, so a quarter has room for each key.
constexpr std::uint32_t kLeastLogBytes = std::uint32_t{256} << 10;
constexpr std::uint32_t kMaxLogBytes = std::uint32_t{256} << 20;
constexpr std::uint64_t kMaxCachedPairs = std::uint64_t{1} << 32;
constexpr std::uint32_t kMaxChain = 64;
constexpr std::uint32_t kMaxUndoRecords = std::uint32_t{1} << 22;
constexpr std::uint32_t kMaxWorkers = 256;

// By the share of pairs: an opening takes no longer for more of them. A caller that asks for more
// waits.
constexpr unsigned kMinCacheBits = 12, kMaxShareBits = 20, kMaxCacheBits = 30;

unsigned bits_for(std::uint64_t buckets, unsigned least, unsigned most) {
  return std::clamp(static_cast<unsigned>(std::bit_width(buckets - 1)), least, most);
}

template <class Value>
void require(bool right, std::string_view option, Value value, std::string_view range) {
  if (right) return;
  throw Error(Errc::invalid_argument,
              fmt::format("tips.{} is {}; it must be {}", option, value, range));
}

}  // namespace

Settings settings_of(const IndexOptions& options) {
  const TipsOptions& tips = options.tips;
  require(tips.cache_share >= 0 && tips.cache_share <= 1, "cache_share", tips.cache_share,
          "from 0 to 1");
  require(tips.cached_pairs <= kMaxCachedPairs, "cached_pairs", tips.cached_pairs,
          "at most 4294967296");
  require(tips.chain >= 1 && tips.chain <= kMaxChain, "chain", tips.chain, "from 1 to 64");
  require(std::has_single_bit(tips.log_bytes) && tips.log_bytes >= kLeastLogBytes &&
              tips.log_bytes <= kMaxLogBytes,
          "log_bytes", tips.log_bytes, "a power of two from 256 KiB to 256 MiB");
  require(tips.undo_records >= Uno::kUndoRoom && tips.undo_records <= kMaxUndoRecords,
          "undo_records", tips.undo_records, "from 320 to 4194304");
  require(tips.most_workers <= kMaxWorkers, "most_workers", tips.most_workers, "at most 256");
  require(tips.least_workers >= 1 && tips.least_workers <= most_workers(tips), "least_workers",
          tips.least_workers, "from 1 to most_workers");
  return {tips, options.resume_in_background};
}

unsigned most_workers(const TipsOptions& options) {
  return options.most_workers > 0 ? options.most_workers
                                  : std::max(1U, std::thread::hardware_concurrency());
}

/// The budget has the room that was asked for, as chains of full length have it. There is a bucket
/// for each pair of that, and for each write that may wait in two full logs, as far as an opening
/// takes no longer for that: each entry of a chain that is walked is a miss of the CPU's caches.
Cache::Size cache_size(const TipsOptions& options, std::uint64_t pairs, std::uint64_t ring_bytes) {
  constexpr std::uint64_t kBytesPerEntry =
      128;  // of short keys and values; of others there are fewer
  const auto share = static_cast<std::uint64_t>(options.cache_share * static_cast<double>(pairs));
  const std::uint64_t most = std::uint64_t{options.chain} << kMaxShareBits;
  const std::uint64_t wanted = std::max(std::min(share, most), options.cached_pairs);
  const std::uint64_t chains = (wanted + options.chain - 1) / options.chain;
  const unsigned chain_bits =
      bits_for(std::max<std::uint64_t>(chains, 1), kMinCacheBits, kMaxCacheBits);
  const std::uint64_t waiting = 2 * ring_bytes / kRecordAlignment;
  const unsigned bits =
      bits_for(std::max(wanted, waiting), chain_bits, std::max(chain_bits, kMaxShareBits));
  return {bits, options.chain, (std::uint64_t{options.chain} << chain_bits) * kBytesPerEntry};
}

}  // namespace perdix::detail::index::tips
