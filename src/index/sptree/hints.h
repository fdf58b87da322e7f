// Hints: where the node of an integer key probably is, known before the search for it has ended.
//
// A write with a buffer waits for one fence only, and the search for the next key's node takes as
// long: a radix node, then the node itself, each from memory in a large index. A hint lets a writer
// ask for the lines of the node while it goes down the radix tree.
//
// The range of the keys is divided into equal cells, about one for each leaf, which have the
// reference of a node each: that of the one with most of the cell's keys. So most hints are right
// where keys are spread evenly; where they lie in clusters, most cells have none, and nothing is
// lost. No operation relies on a hint: it may be wrong or out of date, and the node may be gone. It
// only tells which lines to prefetch, so all accesses are relaxed but for the pointer to the table.
//
// Thread-safe; calls are made in an epoch::Guard, since tables that were too small are retired.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <mutex>
#include <new>

#include "epoch/reclaimer.h"
#include "util/arena.h"

namespace perdix::detail::index::sptree {

class Hints {
 public:
  using Ref = util::Arena::Ref;  ///< of a node, in the arena of nodes

  /// Arena and reclaimer are for tables, and outlive this; the reclaimer is drained before the
  /// arena goes.
  Hints(util::Arena& arena, epoch::Reclaimer& reclaimer) : arena_(arena), reclaimer_(reclaimer) {}
  Hints(const Hints&) = delete;
  Hints& operator=(const Hints&) = delete;
  ~Hints() {
    if (Table* table = table_.load(std::memory_order_relaxed)) release(table, &arena_);
  }

  /// Tables take at most this many bytes of DRAM, a table that is replaced included, or have two
  /// cells: a cell of one would have 2^64 keys. Before the first use.
  void set_budget(std::uint64_t budget) noexcept {
    max_cells_ = kUnlimited;
    while (max_cells_ > 2 && bytes(max_cells_) + bytes(max_cells_ / 2) > budget) max_cells_ /= 2;
  }

  /// 0: none. Cost: one line of the table.
  Ref of(std::uint64_t key) const noexcept {
    const Table* table = table_.load(std::memory_order_acquire);
    return table == nullptr ? 0 : table->of(key);
  }

  /// The node has the keys [low, last]. Cost: a line or two, of kMaxCells at most.
  void note(std::uint64_t low, std::uint64_t last, Ref node) noexcept {
    if (Table* table = table_.load(std::memory_order_acquire)) table->note(low, last, node);
  }

  /// Whether there are too few cells for this many nodes, and the budget allows more.
  bool growth_due(std::uint64_t nodes) const noexcept {
    const Table* table = table_.load(std::memory_order_acquire);
    const std::uint64_t cells = table == nullptr ? 0 : table->size;
    return nodes > std::max(kMinNodes, cells) && cells < max_cells_;
  }

  /// If that is due, and no other thread is doing it: makes a table for `nodes` nodes, or as many
  /// as the budget allows, whose keys lie about in [first, last], with the hints of the previous
  /// table. True if there was none: the caller must note the nodes. Throws bad_alloc. Cost: two
  /// lines for each 16 nodes.
  bool grow(std::uint64_t nodes, std::uint64_t first, std::uint64_t last) {
    const std::unique_lock lock(growing_, std::try_to_lock);
    if (!lock.owns_lock() || !growth_due(nodes)) return false;
    Table* const old = table_.load(std::memory_order_relaxed);
    const std::uint64_t size = std::min(std::bit_ceil(nodes), max_cells_);
    table_.store(new (arena_.allocate(bytes(size))) Table(size, first, last, old),
                 std::memory_order_release);
    if (old != nullptr) reclaimer_.retire(old, release, &arena_);
    return old == nullptr;
  }

 private:
  /// Cells: as many as nodes have references.
  static constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 32;
  /// This many nodes are in a cache anyway.
  static constexpr std::uint64_t kMinNodes = 4096;
  /// Of a node: one with more has few keys for its range, and few are looked for there.
  static constexpr std::uint64_t kMaxCells = 64;

  struct Table {
    const std::uint64_t size;   // of `cells`
    const std::uint64_t first;  // the first key of the first cell
    const unsigned shift;       // a cell has 2^shift keys
    std::atomic<Ref> cells[];

    Table(std::uint64_t cells_wanted, std::uint64_t first_key, std::uint64_t last_key,
          const Table* old)
        : size(cells_wanted), first(first_key), shift(shift_for(last_key - first_key, size)) {
      for (std::uint64_t i = 0; i < size; ++i) {
        const std::uint64_t middle = first + (i << shift) + (std::uint64_t{1} << shift) / 2;
        new (&cells[i]) std::atomic<Ref>(old == nullptr ? 0 : old->of(middle));
      }
    }

    /// The least with which the range has at most `size` cells.
    static unsigned shift_for(std::uint64_t range, std::uint64_t size) noexcept {
      return static_cast<unsigned>(std::bit_width(range / size));
    }

    /// Of a key before the first cell a number that no cell has, too.
    std::uint64_t cell_of(std::uint64_t key) const noexcept { return (key - first) >> shift; }

    Ref of(std::uint64_t key) const noexcept {
      const std::uint64_t cell = cell_of(key);
      return cell < size ? cells[cell].load(std::memory_order_relaxed) : 0;
    }

    void set(std::uint64_t cell, Ref node) noexcept {
      if (cell < size) cells[cell].store(node, std::memory_order_relaxed);
    }

    bool in_upper_half(std::uint64_t key) const noexcept {
      return ((key - first) << 1 >> shift & 1) != 0;
    }

    /// A node that lies in one cell is the hint there if it has most of it; if it has a small part,
    /// there are many, and none would be right.
    void note(std::uint64_t low, std::uint64_t last, Ref node) noexcept {
      if (last < first) return;
      low = std::max(low, first);
      const std::uint64_t from = cell_of(low), to = cell_of(last);
      if (from == to) {
        const std::uint64_t keys = last - low, all = std::uint64_t{1} << shift;
        if (keys >= all / 2) set(from, node);
        if (keys < all / 4) set(from, 0);
        return;
      }
      if (!in_upper_half(low)) set(from, node);
      for (std::uint64_t i = 1; i < std::min(to - from, kMaxCells); ++i) set(from + i, node);
      if (in_upper_half(last)) set(to, node);
    }
  };

  static std::size_t bytes(std::uint64_t size) noexcept {
    return sizeof(Table) + size * sizeof(std::atomic<Ref>);
  }

  static void release(void* table, void* arena) {
    static_cast<util::Arena*>(arena)->release(table, bytes(static_cast<Table*>(table)->size));
  }

  util::Arena& arena_;
  epoch::Reclaimer& reclaimer_;
  std::uint64_t max_cells_ = kUnlimited;  // constant since set_budget()
  std::atomic<Table*> table_{nullptr};
  std::mutex growing_;
};

}  // namespace perdix::detail::index::sptree
