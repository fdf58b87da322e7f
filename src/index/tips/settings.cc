#include "index/tips/settings.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <thread>

#include "index/tips/layout.h"

namespace perdix::detail::index::tips {
namespace {

// By the share of pairs: an opening takes no longer for more of them. A caller that asks for more
// waits.
constexpr unsigned kMinCacheBits = 12, kMaxShareBits = 20, kMaxCacheBits = 30;

unsigned bits_for(std::uint64_t buckets, unsigned least, unsigned most) {
  return std::clamp(static_cast<unsigned>(std::bit_width(buckets - 1)), least, most);
}

}  // namespace

Settings settings_of(const TipsOptions& options) { return {options, options.resume_in_background}; }

/// A put that waits keeps a kilobyte of the pool for its replay, and there are eight logs: full
/// ones keep a few percent of the machine's memory, and no more than the pool can spare.
std::uint64_t default_log_bytes(std::uint64_t max_pool_bytes) {
  constexpr std::uint64_t kLogsInMemory = 4096, kLogsInPool = 64, kMost = std::uint64_t{32} << 20;
  const auto memory = static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                      static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t wanted = std::min(memory / kLogsInMemory, max_pool_bytes / kLogsInPool);
  return std::bit_floor(std::clamp<std::uint64_t>(wanted, kMinLogBytes, kMost));
}

unsigned max_workers(const TipsOptions& options) {
  if (options.max_workers > 0) return options.max_workers;
  return std::max(options.min_workers, std::thread::hardware_concurrency());
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
