#include "index/elf/caches/dynamic_cache.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "index/elf/caches/row_count.h"
#include "util/hash.h"

namespace perdix::detail::index::elf {
namespace {

/// Bytes of a list, about: decides how many places there are.
constexpr std::uint64_t kBytesPerList = 256;

/// Rows of a list are counted up to this many: a list with more is likely enough to be visited.
constexpr std::uint64_t kMaxRows = 4096;

constexpr std::uint64_t kMaxBuckets = std::uint64_t{1} << 22;

/// Copies take up to twice the bytes of lists, about.
std::uint64_t buckets_for(std::uint64_t budget, std::uint64_t lists) {
  const std::uint64_t bytes = std::min(budget, 2 * lists);
  return std::min(std::bit_ceil(bytes / kBytesPerList / 4 + 1), kMaxBuckets);
}

std::uint64_t count_rows(const Lists& lists, const List& list, unsigned dimension) {
  std::uint64_t lists_seen = 0;
  const auto few = [&](Position, unsigned, std::uint32_t, std::uint64_t rows) {
    return rows < kMaxRows && ++lists_seen < kMaxRows;
  };
  RowCount counting(lists, few);
  const std::uint64_t rows = counting.count(Ref(Ref::Kind::list, list.position), dimension);
  return counting.ended() ? kMaxRows : std::min(rows, kMaxRows);
}

}  // namespace

/// A list in DRAM.
struct DynamicCache::Copy : epoch::Retirable {
  Position position;
  std::uint64_t rows;
  std::uint32_t count;
  std::atomic<bool> used{true};  // since it was last looked at
  std::vector<std::uint32_t> words;

  std::uint64_t bytes() const { return sizeof *this + words.size() * sizeof(std::uint32_t); }
};

DynamicCache::DynamicCache(epoch::Reclaimer& reclaimer, std::uint64_t budget,
                           CachePolicy::Eviction eviction, std::uint64_t lists)
    : reclaimer_(reclaimer),
      budget_(budget),
      eviction_(eviction),
      buckets_(buckets_for(budget, lists)),
      table_(alloc::make_zeroed_array<Bucket>(buckets_)),
      missed_(alloc::make_zeroed_array<std::atomic<std::uint16_t>>(kPlaces * buckets_)) {}

DynamicCache::~DynamicCache() {
  for (std::uint64_t b = 0; b < buckets_; ++b) {
    for (std::atomic<Copy*>& place : table_[b]) delete place.load(std::memory_order_relaxed);
  }
}

bool DynamicCache::find(Position position, List& list) {
  const Bucket& bucket = table_[hash(position) & (buckets_ - 1)];
  note_words_read(false, &bucket, sizeof bucket / sizeof(std::uint32_t));
  for (const std::atomic<Copy*>& place : bucket) {
    Copy* const copy = place.load(std::memory_order_acquire);
    if (copy == nullptr) continue;
    note_words_read(false, copy, sizeof *copy / sizeof(std::uint32_t));
    if (copy->position != position) continue;
    // Relaxed: a hint.
    if (!copy->used.load(std::memory_order_relaxed))
      copy->used.store(true, std::memory_order_relaxed);
    const std::uint32_t* words = copy->words.data();
    list = {words, words + copy->count, copy->count, List::Form::cached, false, position};
    return true;
  }
  return false;
}

/// Without memory the list stays out.
void DynamicCache::missed(const Lists& lists, const List& list, unsigned dimension) noexcept {
  const std::uint64_t hash = this->hash(list.position);
  if (!seen_before(hash)) return;
  const std::unique_lock lock(lock_, std::try_to_lock);
  if (!lock) return;
  try {
    std::unique_ptr<Copy> copy(this->copy(lists, list, dimension));
    if (eviction_ == CachePolicy::Eviction::probability)
      copy->rows = count_rows(lists, list, dimension);
    List found;
    if (find(list.position, found)) return;  // another thread was first
    Bucket& bucket = table_[hash & (buckets_ - 1)];
    if (std::atomic<Copy*>* place = place_for(bucket, *copy)) put(*place, copy.release());
  } catch (const std::exception&) {  // as said above; of damage the query itself will tell
  }
}

DynamicCache::Copy* DynamicCache::copy(const Lists& lists, const List& list, unsigned dimension) {
  auto copy = std::make_unique<Copy>();
  copy->position = list.position;
  copy->rows = 0;
  copy->count = list.count;
  copy->words.resize(3 * std::size_t{list.count});
  lists.note_read(list.values, list.count);
  std::memcpy(copy->words.data(), list.values, list.count * sizeof *list.values);
  for (std::uint32_t i = 0; i < list.count; ++i) {
    const std::uint64_t word = list.child(i, dimension + 1 == lists.dimensions()).word();
    std::memcpy(&copy->words[list.count + 2 * std::size_t{i}], &word, sizeof word);
  }
  return copy.release();
}

std::uint64_t DynamicCache::hash(Position position) const { return util::hash(position); }

/// Relaxed: lost notes cost a miss.
bool DynamicCache::seen_before(std::uint64_t hash) {
  const auto mark = static_cast<std::uint16_t>(hash >> 48 | 1);
  std::atomic<std::uint16_t>& note = missed_[hash & (kPlaces * buckets_ - 1)];
  if (note.load(std::memory_order_relaxed) == mark) return true;
  note.store(mark, std::memory_order_relaxed);
  return false;
}

/// Where the copy may come; null: it stays out.
std::atomic<DynamicCache::Copy*>* DynamicCache::place_for(Bucket& bucket, const Copy& copy) {
  const std::uint64_t budget = this->budget();
  if (copy.bytes() > budget / 8) return nullptr;
  if (bytes() + copy.bytes() <= budget) {
    for (std::atomic<Copy*>& place : bucket)
      if (place.load(std::memory_order_relaxed) == nullptr) return &place;
  }
  std::atomic<Copy*>* const place = victim(bucket, copy);
  if (place == nullptr) return nullptr;
  const std::uint64_t freed = place->load(std::memory_order_relaxed)->bytes();
  return bytes() - freed + copy.bytes() <= budget ? place : nullptr;
}

std::atomic<DynamicCache::Copy*>* DynamicCache::victim(Bucket& bucket, const Copy& copy) {
  std::atomic<Copy*>* found = nullptr;
  std::uint64_t fewest = copy.rows;
  for (std::atomic<Copy*>& place : bucket) {
    Copy* const there = place.load(std::memory_order_relaxed);
    if (there == nullptr) continue;
    if (eviction_ == CachePolicy::Eviction::recency) {
      if (!there->used.exchange(false, std::memory_order_relaxed)) found = &place;
    } else if (there->rows < fewest) {
      fewest = there->rows;
      found = &place;
    }
  }
  return found;
}

void DynamicCache::put(std::atomic<Copy*>& place, Copy* copy) {
  bytes_.fetch_add(copy->bytes(), std::memory_order_relaxed);
  Copy* const before = place.exchange(copy, std::memory_order_acq_rel);
  if (before == nullptr) return;
  bytes_.fetch_sub(before->bytes(), std::memory_order_relaxed);
  reclaimer_.retire(before);
}

}  // namespace perdix::detail::index::elf
