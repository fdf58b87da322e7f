// What of one table's lists lies in DRAM, by a policy, and what queries found there.
//
// Parts come one by one, from a thread in the background (filler.h); queries use those that are
// there. Thread-safe, but for fill(), which one thread calls, once.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <vector>

#include <perdix/elf.h>

#include "epoch/reclaimer.h"
#include "index/elf/box.h"
#include "index/elf/caches/dynamic_cache.h"
#include "index/elf/caches/image.h"
#include "index/elf/find.h"
#include "index/elf/lists.h"
#include "util/huge_vector.h"
#include "util/stripe.h"

namespace perdix::detail::index::elf {

/// All lists in DRAM: the hybrid Elf.
class FullCopy {
 public:
  explicit FullCopy(const Lists& lists, const std::stop_token& stop);

  const Lists& lists() const { return lists_; }
  std::uint64_t bytes() const;

 private:
  util::HugeVector<std::uint32_t> words_;
  std::vector<std::uint64_t> first_words_;
  const Lists lists_;
};

/// Counts of queries, for each dimension. Each thread has its stripe; where two share one, some
/// counts may get lost.
class CacheCounters {
 public:
  /// Of one query.
  struct Counts {
    std::uint32_t hits = 0;
    std::uint32_t misses = 0;
  };

  void add(unsigned levels, const Counts* counts);
  ElfLevel sum(unsigned dimension) const;

 private:
  struct alignas(util::kCacheLine) Stripe {
    std::array<std::atomic<std::uint64_t>, kMaxDimensions> hits{};
    std::array<std::atomic<std::uint64_t>, kMaxDimensions> misses{};
  };

  std::array<Stripe, util::kStripes> stripes_;
};

class Cache : public epoch::Retirable {
 public:
  /// Empty. The lists must outlive it.
  Cache(const Lists& lists, const CachePolicy& policy, epoch::Reclaimer& reclaimer);

  /// Copies the lists that the policy requires. Ends early when asked to stop. Throws corrupt,
  /// bad_alloc.
  void fill(const std::stop_token& stop);

  const FullCopy* full() const { return full_.load(std::memory_order_acquire); }
  const Image* image() const { return image_.load(std::memory_order_acquire); }
  DynamicCache* dynamic() const { return dynamic_.get(); }
  CacheCounters& counters() const { return *counters_; }

  std::uint64_t bytes() const;
  void add_to(ElfStats& stats) const;

 private:
  std::uint64_t static_budget() const;
  void fill_image(const std::stop_token& stop);

  const Lists& lists_;
  const CachePolicy policy_;
  std::unique_ptr<CacheCounters> counters_;
  std::unique_ptr<DynamicCache> dynamic_;
  std::unique_ptr<FullCopy> owned_full_;
  std::unique_ptr<Image> owned_image_;
  std::atomic<const FullCopy*> full_{nullptr};
  std::atomic<const Image*> image_{nullptr};
};

/// What a Walk reads through a cache. Counts, and adds its counts to the cache's when it ends.
class CacheSource {
 public:
  CacheSource(const Lists& lists, const Cache& cache)
      : full_(cache.full()),
        lists_(full_ != nullptr ? full_->lists() : lists),
        image_(full_ != nullptr ? nullptr : cache.image()),
        dynamic_(full_ != nullptr ? nullptr : cache.dynamic()),
        counters_(cache.counters()) {}
  CacheSource(const CacheSource&) = delete;
  CacheSource& operator=(const CacheSource&) = delete;
  ~CacheSource() { counters_.add(levels_, counts_.data()); }

  /// The lists to walk over.
  const Lists& lists() const { return lists_; }

  const FirstEntries& first(const Lists&) {
    const bool hit = full_ != nullptr || image_ != nullptr;
    hit ? count_hit(0) : count_miss(0);
    return image_ != nullptr ? image_->first() : lists_.first();
  }

  List open(Ref ref, unsigned dimension) {
    if (ref.kind() == Ref::Kind::cached) {
      count_hit(dimension);
      return image_->list(ref);
    }
    if (ref.kind() == Ref::Kind::outlined)
      ref = Ref(Ref::Kind::list, image_->outline(ref).position());
    return open_uncached(ref, dimension);
  }

  Ref find(Ref ref, unsigned dimension, std::uint32_t value) {
    if (ref.kind() == Ref::Kind::outlined) {
      count_hit(dimension);
      return image_->outline(ref).find(lists_, dimension, value);
    }
    return find_in(lists_, open(ref, dimension), dimension, value);
  }

 private:
  List open_uncached(Ref ref, unsigned dimension);

  /// What visits more lists than that visits them in the order in which they lie in PM, and so
  /// reads them faster there than one by one from where their copies lie.
  bool asks_dynamic() {
    constexpr unsigned kMaxLists = 256;
    if (dynamic_ != nullptr && ++opened_ > kMaxLists) dynamic_ = nullptr;
    return dynamic_ != nullptr;
  }

  void count_hit(unsigned dimension) {
    levels_ = std::max(levels_, dimension + 1);
    ++counts_[dimension].hits;
  }
  void count_miss(unsigned dimension) {
    levels_ = std::max(levels_, dimension + 1);
    ++counts_[dimension].misses;
  }

  const FullCopy* const full_;
  const Lists& lists_;
  const Image* const image_;
  DynamicCache* dynamic_;  // null, too, from some number of lists on
  CacheCounters& counters_;
  unsigned opened_ = 0;  // lists that dynamic_ was asked for
  unsigned levels_ = 0;
  std::array<CacheCounters::Counts, kMaxDimensions> counts_{};
};

}  // namespace perdix::detail::index::elf
