// A copy of the directory in DRAM ("Caching", Zhao et al. 2024, section 3.3). It is empty when the
// index is opened, and gets an entry when a lookup has found it in PM.
//
//   D1. An entry of the copy is 0, or is that of the directory, or the segment's latch is held, by
//       the thread that has changed the directory.
//
// Lookups take no lock; the directory's lock guards changes. The caller holds a Guard.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "epoch/reclaimer.h"
#include "index/cceh/layout.h"
#include "index/cceh/shape.h"

namespace perdix::detail::index::cceh {

class DirectoryCopy {
 public:
  /// The reclaimer outlives this. It has no entries where they would take more than `budget` bytes.
  DirectoryCopy(epoch::Reclaimer& reclaimer, std::uint64_t budget)
      : reclaimer_(reclaimer), budget_(budget) {}
  DirectoryCopy(const DirectoryCopy&) = delete;
  DirectoryCopy& operator=(const DirectoryCopy&) = delete;
  ~DirectoryCopy() { std::free(table_.load(std::memory_order_relaxed)); }

  /// The entry of a hash.
  struct Found {
    Entry entry;
    const std::uint64_t* word = nullptr;  ///< null: it does not know
    const void* table = nullptr;
  };

  Found find(KeyHash hash) const {
    const Table* const table = table_.load(std::memory_order_acquire);
    if (table == nullptr) return {};
    const std::uint64_t& word = table->entries()[hash.prefix(table->depth)];
    const std::uint64_t entry = load(word);
    if (entry == 0) return {};
    return {Entry::unpack(entry), &word, table};
  }

  /// Whether there was memory for entries.
  bool has_entries() const { return table_.load(std::memory_order_relaxed) != nullptr; }

  /// Whether the entry that was found is still valid.
  bool current(const Found& found) const {
    return load(*found.word) == found.entry.pack() &&
           table_.load(std::memory_order_acquire) == found.table;
  }

  // --- With the directory's lock ---

  /// The directory has that depth now. Without memory for that there is no copy.
  void resize(unsigned depth) noexcept {
    Table* const old = table_.load(std::memory_order_relaxed);
    table_.store(make(depth), std::memory_order_release);
    static constinit Disposer disposer;
    if (old != nullptr) reclaimer_.retire(*old, disposer);
  }

  /// The entries that a leader stands for, of which the first has that number.
  void set(std::uint64_t first, Entry leader) {
    Table* const table = table_.load(std::memory_order_relaxed);
    if (table == nullptr) return;
    const std::uint64_t count = std::uint64_t{1} << (table->depth - leader.depth());
    for (std::uint64_t i = first; i < first + count; ++i) store(table->entries()[i], leader.pack());
  }

  std::uint64_t bytes() const {
    const Table* const table = table_.load(std::memory_order_acquire);
    return sizeof *this + (table == nullptr ? 0 : bytes_of(table->depth));
  }

 private:
  /// In memory that is 0 at first, and takes none until it is touched. The entries follow.
  struct Table : epoch::Retirable {
    std::uint64_t depth = 0;

    std::uint64_t* entries() { return &depth + 1; }
    const std::uint64_t* entries() const { return &depth + 1; }
  };

  struct Disposer final : epoch::Disposer {
    void dispose(epoch::Retirable& table) noexcept override {
      std::free(static_cast<Table*>(&table));
    }
  };

  static std::uint64_t bytes_of(std::uint64_t depth) {
    return sizeof(Table) + (sizeof(std::uint64_t) << depth);
  }
  static std::uint64_t load(const std::uint64_t& word) {
    return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
  }
  static void store(std::uint64_t& word, std::uint64_t value) {
    std::atomic_ref(word).store(value, std::memory_order_release);
  }
  Table* make(unsigned depth) const noexcept {
    if (bytes_of(depth) > budget_) return nullptr;
    void* const memory = std::calloc(1, bytes_of(depth));
    if (memory == nullptr) return nullptr;
    auto* const table = new (memory) Table;
    table->depth = depth;
    return table;
  }

  epoch::Reclaimer& reclaimer_;
  const std::uint64_t budget_;
  std::atomic<Table*> table_{nullptr};
};

}  // namespace perdix::detail::index::cceh
