#include "index/tips/cache.h"

#include <cassert>
#include <mutex>

namespace perdix::detail::index::tips {
namespace {

constexpr std::size_t kMaxArenaBlock = 4096;

}  // namespace

Cache::Cache(epoch::Reclaimer& reclaimer, Size size)
    : reclaimer_(reclaimer),
      shift_(64 - size.bits),
      chain_(size.chain),
      budget_(size.budget),
      buckets_(std::size_t{1} << size.bits) {
  assert(size.bits > 0);
}

Cache::~Cache() {
  reclaimer_.drain_for_good();  // before the arena goes
  for (std::size_t i = 0; i < std::size_t{1} << bits(); ++i) {
    Entry* entry = buckets_[i].head.load(std::memory_order_relaxed);
    while (entry != nullptr) {
      Entry* const next = entry->next().load(std::memory_order_relaxed);
      if (!entry->clear(Entry::kLinked)) destroy(*entry);
      entry = next;
    }
  }
  assert(arena_.bytes_in_use() == 0);
}

/// Entries of long pairs do not lie in the arena, which would map each of them.
NewEntry Cache::make_entry(Operation operation, std::uint64_t hash, std::string_view key,
                           std::string_view value) {
  const std::size_t bytes = Entry::bytes_for(key, value);
  void* const memory = bytes > kMaxArenaBlock ? ::operator new(bytes) : arena_.allocate(bytes);
  return {new (memory) Entry(operation, hash, key, value), DestroyEntry{this}};
}

void Cache::destroy(Entry& entry) noexcept {
  const std::size_t bytes = entry.dram_bytes();
  bytes > kMaxArenaBlock ? ::operator delete(&entry) : arena_.release(&entry, bytes);
}

void DestroyEntry::operator()(Entry* entry) const noexcept { cache->destroy(*entry); }

void Cache::add(Bucket& bucket, Entry& entry, Entry* old) noexcept {
  entry.set(Entry::kLinked);
  bytes_.add(static_cast<std::int64_t>(entry.dram_bytes()));
  if (!entry.has(Entry::kQueued)) staying_.add(static_cast<std::int64_t>(entry.dram_bytes()));
  entry.next().store(bucket.head.load(std::memory_order_relaxed), std::memory_order_relaxed);
  bucket.head.store(&entry, std::memory_order_release);  // the linearization point
  if (old != nullptr) unlink(bucket, *old);
  unsigned length = 0;
  for (Entry *at = &entry, *next = nullptr; at != nullptr; at = next) {
    next = at->next().load(std::memory_order_relaxed);
    // A queued write is not in the index yet: a lookup must find it here.
    if (++length > chain_ && !at->has(Entry::kQueued)) unlink(bucket, *at), --length;
  }
}

void Cache::unlink(Bucket& bucket, Entry& entry) noexcept {
  // A walk that has read this finds what was linked before; one that has not, and misses what is
  // unlinked next, sees it afterwards.
  bucket.unlinks.fetch_add(1, std::memory_order_release);
  std::atomic<Entry*>* link = &bucket.head;
  while (link->load(std::memory_order_relaxed) != &entry)
    link = &link->load(std::memory_order_relaxed)->next();
  link->store(entry.next().load(std::memory_order_relaxed), std::memory_order_release);
  if (entry.clear(Entry::kLinked)) return;  // its replay retires it
  staying_.add(-static_cast<std::int64_t>(entry.dram_bytes()));
  retire(entry);
}

/// With the bucket's lock.
void Cache::unlink_replayed(Bucket& bucket) noexcept {
  Entry* next = nullptr;
  for (Entry* at = bucket.head.load(std::memory_order_relaxed); at != nullptr; at = next) {
    next = at->next().load(std::memory_order_relaxed);
    if (!at->has(Entry::kQueued)) unlink(bucket, *at);
  }
}

void Cache::trim() noexcept {
  const std::uint64_t count = std::uint64_t{1} << bits();
  for (std::uint64_t left = count; left > 0 && is_over_budget(); --left) {
    Bucket& bucket = buckets_[hand_.fetch_add(1, std::memory_order_relaxed) % count];
    const std::lock_guard lock(bucket.lock);
    unlink_replayed(bucket);
  }
}

void Cache::retire(Entry& entry) noexcept {
  bytes_.add(-static_cast<std::int64_t>(entry.dram_bytes()));
  reclaimer_.retire(entry.as_retired(), disposer_);
}

std::uint64_t Cache::dram_bytes() const {
  return (std::uint64_t{1} << bits()) * sizeof(Bucket) + entry_bytes();
}

}  // namespace perdix::detail::index::tips
