#include "special/nbtree/allocators.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>

#include <perdix/error.h>
#include <perdix/papers/nbtree.h>

#include "common/environment.h"
#include "common/place.h"
#include "index/nbtree/layout.h"
#include "special/nbtree/providers.h"
#include "util/random.h"
#include "ycsb/keys.h"

namespace perdix::bench::figures {
namespace {

using Clock = std::chrono::steady_clock;
using detail::index::nbtree::block_bytes;
using detail::index::nbtree::kCapacity;
using detail::index::nbtree::kSmallCapacity;

constexpr std::size_t kSmall = block_bytes(kSmallCapacity), kFull = block_bytes(kCapacity);

/// An insert that needed the allocator.
struct Event {
  std::uint64_t number;
  Replacement replacement;
};

/// An index with keys in random order.
class LoadedTree {
 public:
  LoadedTree(const Config& config, const std::filesystem::path& parent)
      : config_(config), directory_(parent), spread_(KeyOrder::random, config.seed) {}

  void load() {
    for (std::uint64_t i = 0; i < config_.records; ++i) {
      if (i % 4096 == 0) config_.check_stop();
      insert(i);
    }
  }

  /// Inserts a new record.
  void insert(std::uint64_t number) {
    if (!tree_.insert(spread_.present(number), number)) ++wrong_;
  }

  IndexStats stats() const { return tree_.stats(); }
  std::uint64_t wrong() const {
    return wrong_ + (tree_.size() != config_.records + config_.operations);
  }

 private:
  static PoolOptions options() {
    PoolOptions options;
    options.domain = pmemobj_domain();
    return options;
  }

  const Config& config_;
  ScratchDirectory directory_;
  KeySpread spread_;
  Pool pool_ = Pool::create(directory_.path() / "bench.pool", options());
  NbTree<std::uint64_t, std::uint64_t> tree_{pool_, "bench"};
  std::uint64_t wrong_ = 0;
};

/// What an insert has done, by what the index says of itself before and after. A full block is
/// split in two small ones, or in a full and a small one if the key is the last of all; a small
/// block grows to a full one. Pages of the ledger, which may have come as well, are multiples of
/// 512 bytes.
std::vector<Event> note_replacements(const Config& config, LoadedTree& trial) {
  constexpr std::uint64_t kPages = 512;
  static_assert(2 * kSmall - kFull == kPages && kFull - kSmall == kPages / 2 &&
                kSmall % kPages == kPages / 2);
  std::vector<Event> events;
  IndexStats before = trial.stats();
  for (std::uint64_t i = 0; i < config.operations; ++i) {
    if (i % 4096 == 0) config.check_stop();
    trial.insert(config.records + i);
    const IndexStats after = trial.stats();
    const bool odd = (after.pm_bytes - before.pm_bytes) % kPages != 0;
    if (after.leaves != before.leaves)
      events.push_back({i, {{odd ? kFull : kSmall, kSmall}, kFull}});
    else if (odd)
      events.push_back({i, {{kFull, 0}, kSmall}});
    before = after;
  }
  return events;
}

/// An allocator, the blocks that it has given out, and the time it took.
class Allocator {
 public:
  Allocator(std::unique_ptr<Provider> provider, const IndexStats& stats)
      : provider_(std::move(provider)) {
    // As many of each size as the index has: leaves * kFull - small * (kFull - kSmall) bytes, and
    // some pages.
    const std::uint64_t bytes = std::min<std::uint64_t>(stats.pm_bytes, stats.leaves * kFull);
    const std::uint64_t small = (stats.leaves * kFull - bytes) / (kFull - kSmall);
    for (std::uint64_t i = 0; i < stats.leaves; ++i)
      keep(provider_->allocate(i < small ? kSmall : kFull), i < small ? kSmall : kFull);
  }

  /// A random block of the size goes.
  void replace(const Replacement& replacement, detail::util::Random& random) {
    const Provider::BlockId old = take(replacement.old, random);
    const auto start = Clock::now();
    const auto fresh = provider_->replace(replacement, old);
    passed_ += Clock::now() - start;
    for (std::size_t i = 0; i < fresh.size(); ++i)
      if (replacement.fresh[i] != 0) keep(fresh[i], replacement.fresh[i]);
  }

  std::string name() const { return provider_->name(); }
  double seconds() const { return std::chrono::duration<double>(passed_).count(); }

 private:
  std::vector<Provider::BlockId>& blocks(std::size_t bytes) { return blocks_[bytes == kFull]; }

  void keep(Provider::BlockId block, std::size_t bytes) { blocks(bytes).push_back(block); }

  Provider::BlockId take(std::size_t bytes, detail::util::Random& random) {
    auto& from = blocks(bytes);
    if (from.empty()) keep(provider_->allocate(bytes), bytes);
    std::swap(from[random.below(from.size())], from.back());
    const Provider::BlockId block = from.back();
    from.pop_back();
    return block;
  }

  std::unique_ptr<Provider> provider_;
  std::array<std::vector<Provider::BlockId>, 2> blocks_;
  Clock::duration passed_{};
};

std::vector<Allocator> make_allocators(const std::filesystem::path& directory,
                                       const IndexStats& stats, std::size_t events) {
  std::vector<Allocator> allocators;
  const Capacity capacity{stats.leaves + 2 * events + 2, kFull};
  allocators.emplace_back(calloc_provider(directory, capacity, pmemobj_domain()), stats);
  allocators.emplace_back(naive_provider(), stats);
  if (auto pmemobj = pmemobj_provider(directory, capacity))
    allocators.emplace_back(std::move(pmemobj), stats);
  return allocators;
}

/// Inserts as noted, with the allocators at work; returns the seconds that the index has needed.
double insert_all(const Config& config, LoadedTree& trial, const std::vector<Event>& events,
                  std::vector<Allocator>& allocators) {
  detail::util::Random random(config.seed);
  Clock::duration others{};
  auto event = events.begin();
  const auto start = Clock::now();
  for (std::uint64_t i = 0; i < config.operations; ++i) {
    trial.insert(config.records + i);
    if (event == events.end() || event->number != i) continue;
    const auto interrupted = Clock::now();
    config.check_stop();
    // In turns, so that none always finds what the one before it has left in the caches.
    for (std::size_t j = 0; j < allocators.size(); ++j)
      allocators[(i + j) % allocators.size()].replace(event->replacement, random);
    ++event;
    others += Clock::now() - interrupted;
  }
  const double clock = clock_cost_nanoseconds() * 1e-9 * static_cast<double>(events.size());
  return std::chrono::duration<double>(Clock::now() - start - others).count() - clock;
}

}  // namespace

AllocatorResults compare_allocators(const Config& config, const std::filesystem::path& directory,
                                    const std::function<void(const char*)>& on_phase) {
  AllocatorResults results;
  std::vector<Event> events;
  {
    LoadedTree trial(config, directory);
    on_phase("load");
    trial.load();
    on_phase("note");
    events = note_replacements(config, trial);
    results.wrong += trial.wrong();
  }
  LoadedTree trial(config, directory);
  on_phase("load");
  trial.load();
  const ScratchDirectory scratch(directory);
  std::vector<Allocator> allocators = make_allocators(scratch.path(), trial.stats(), events.size());
  on_phase("insert");
  const double measured = insert_all(config, trial, events, allocators);
  results.wrong += trial.wrong();
  const double clock = clock_cost_nanoseconds() * 1e-9 * static_cast<double>(events.size());
  const double own = allocators.front().seconds() - clock;
  for (const Allocator& allocator : allocators) {
    const double seconds = std::max(allocator.seconds() - clock, 0.0);
    results.allocators.push_back(
        {allocator.name(), measured - own + seconds, seconds, events.size()});
  }
  return results;
}

}  // namespace perdix::bench::figures
