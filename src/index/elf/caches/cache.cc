#include "index/elf/caches/cache.h"

#include <algorithm>

#include "index/elf/caches/chooser.h"

namespace perdix::detail::index::elf {
namespace {

/// Lines of PM that a query reads of a list, about: its head, and those of a value and a pointer.
constexpr std::int64_t kLinesPerList = 2;

}  // namespace

FullCopy::FullCopy(const Lists& lists, const std::stop_token& stop)
    : words_(lists.bytes() / sizeof(std::uint32_t)),
      first_words_(lists.first().copy_bytes() / sizeof(std::uint64_t)),
      lists_(
          lists.copy(words_.data(), first_words_.data(), [&] { return !stop.stop_requested(); })) {}

std::uint64_t FullCopy::bytes() const {
  return words_.size() * sizeof(std::uint32_t) + first_words_.size() * sizeof(std::uint64_t);
}

Cache::Cache(const Lists& lists, const CachePolicy& policy, epoch::Reclaimer& reclaimer)
    : lists_(lists), policy_(policy), counters_(std::make_unique<CacheCounters>()) {
  const std::uint64_t dynamic = std::min(policy.dynamic_bytes, policy.budget);
  if (dynamic < DynamicCache::kMinBudget) return;
  dynamic_ = std::make_unique<DynamicCache>(reclaimer, dynamic, policy.eviction, lists.bytes());
}

/// What the table of the dynamic part leaves of the budget.
std::uint64_t Cache::static_budget() const {
  const std::uint64_t table = dynamic_ != nullptr ? dynamic_->table_bytes() : 0;
  return policy_.budget - std::min(policy_.budget, table);
}

void Cache::fill(const std::stop_token& stop) {
  if (policy_.full && lists_.bytes() + lists_.first().copy_bytes() <= static_budget()) {
    auto full = std::make_unique<FullCopy>(lists_, stop);
    if (stop.stop_requested()) return;
    owned_full_ = std::move(full);
    return full_.store(owned_full_.get(), std::memory_order_release);
  }
  if (policy_.full || policy_.levels > 0 || policy_.probable_bytes > 0) fill_image(stop);
}

/// A hybrid that the budget has no room for becomes one of the most probable lists.
void Cache::fill_image(const std::stop_token& stop) {
  const std::uint64_t first = lists_.first().copy_bytes();
  if (first > static_budget()) return;
  const std::uint64_t budget = static_budget() - first;
  const std::uint64_t probable = policy_.full ? budget : std::min(policy_.probable_bytes, budget);
  // Both parts may choose the same lists; if not, the probable ones get the rest.
  std::vector<Chosen> chosen = choose(lists_, {policy_.levels, budget, 0}, stop);
  std::uint64_t bytes = 0;
  for (const Chosen& list : chosen) bytes += list.bytes();
  if (const std::uint64_t left = std::min(probable, budget - bytes); left > 0)
    chosen = choose(lists_, {policy_.levels, budget, left}, stop);
  if (stop.stop_requested()) return;
  owned_image_ = std::make_unique<Image>(lists_, chosen);
  image_.store(owned_image_.get(), std::memory_order_release);
  if (dynamic_ != nullptr) {
    const std::uint64_t rest = policy_.budget - std::min(policy_.budget, owned_image_->bytes());
    dynamic_->set_budget(std::min(policy_.dynamic_bytes, rest));
  }
}

std::uint64_t Cache::bytes() const {
  const FullCopy* const full = this->full();
  const Image* const image = this->image();
  return (full != nullptr ? full->bytes() : 0) + (image != nullptr ? image->bytes() : 0) +
         (dynamic_ != nullptr ? dynamic_->bytes() : 0);
}

void Cache::add_to(ElfStats& stats) const {
  stats.cache_bytes = bytes();
  stats.dram_bytes += stats.cache_bytes + sizeof *this + sizeof *counters_;
  for (unsigned d = 0; d < lists_.dimensions(); ++d) {
    stats.levels.push_back(counters_->sum(d));
    stats.lines_saved += kLinesPerList * stats.levels.back().hits;
  }
}

void CacheCounters::add(unsigned levels, const Counts* counts) {
  Stripe& stripe = stripes_[util::current_stripe()];
  const auto add = [](std::atomic<std::uint64_t>& count, std::uint64_t more) {
    // relaxed, and no addition of the CPU, which would cost more than reading a cached list.
    if (more > 0)
      count.store(count.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  };
  for (unsigned d = 0; d < levels; ++d) {
    add(stripe.hits[d], counts[d].hits);
    add(stripe.misses[d], counts[d].misses);
  }
}

ElfLevel CacheCounters::sum(unsigned dimension) const {
  ElfLevel sum;
  for (const Stripe& stripe : stripes_) {
    sum.hits += stripe.hits[dimension].load(std::memory_order_relaxed);
    sum.misses += stripe.misses[dimension].load(std::memory_order_relaxed);
  }
  return sum;
}

/// Where its copy lies, and else in PM.
List CacheSource::open_uncached(Ref ref, unsigned dimension) {
  List list;
  if (asks_dynamic() && dynamic_->find(ref.value(), list)) {
    count_hit(dimension);
    return list;
  }
  list = lists_.list(ref.value());
  if (full_ != nullptr) {
    count_hit(dimension);
    return list;
  }
  count_miss(dimension);
  if (dynamic_ != nullptr) dynamic_->missed(lists_, list, dimension);
  return list;
}

}  // namespace perdix::detail::index::elf
