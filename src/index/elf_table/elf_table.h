// ElfTable, the engine: typed columns over an Elf.
//
//   layout.h              what lies in PM
//   schema.h, key.h       columns; values as keys
//   record.h              an inserted row
//   encoder.h             codes and a dictionary for a column
//   dictionary.h          a dictionary in PM
//   condition.h, query.h  conditions as ranges of keys, then as boxes of the Elf
//   version.h             an open generation
//   blocks.h              what blocks hold; making them
//   owned.h               who owns which blocks; freeing them
//   elf_table.cc          queries, insert, erase
//   recovery.cc           what happens on open: creation; and on drop
//   build.cc              build and compact
//   check.cc              verification of the invariants of layout.h; statistics
//   arrow.h               the Arrow C data interface
//
// Inserted rows are not given to the Elf, since their values may have no codes: they are pairs of a
// FAST&FAIR tree, and queries compare their keys. So an insert is one commit, of the tree; an erase
// is one of the tree or of the Elf; and dictionaries never change. A build and a compact make a new
// generation, out of place, whose commit is one store.
//
// A row has a slot in its generation, which it keeps until the next compact, and a TID, which it
// keeps for its life. Columns and the Elf know slots only, so a row that was erased costs nothing
// once it was compacted.
//
// Concurrency: a query pins the Version that it reads. Writers hold `writers_`. A build or compact
// has `building_`, for which no call waits, and holds `writers_` only when it begins and when it
// puts its generation in place. A compact leaves the tree of inserted rows where it is: rows that
// are inserted meanwhile come behind those that it folds in, and the new generation takes the tree
// over. Rows that are erased meanwhile are noted, and erased from the new generation, too. Then it
// waits until no query has the Version pinned that it replaced, and frees it. It does not wait for
// queries that show rows to a visitor, which may take any time, or call build itself: then the next
// build or compact frees that Version.
//
// Durability: docs/durability/elf_table.md has the cases.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <perdix/elf_table.h>

#include "index/common/owned.h"
#include "index/elf/delta_limit.h"
#include "index/elf/erased_meanwhile.h"
#include "index/elf/shape.h"
#include "index/elf_table/layout.h"
#include "index/elf_table/schema.h"
#include "index/elf_table/version.h"
#include "pool/index_handle.h"
#include "pool/open_index.h"

namespace perdix::detail::index::elf_table {

inline constexpr std::string_view kEngineName = "elf_table";

class RowSource;

class Table final : public pool::OpenIndex {
 public:
  using Tid = Elf::Tid;
  using Progress = Elf::Progress;

  /// Opens the table behind the handle, or creates it. Without columns it takes what there is,
  /// which is nothing if a crash has ended the creation: then only the calls of OpenIndex may be
  /// used. Frees the blocks of a build that a crash interrupted.
  explicit Table(pool::IndexHandle handle, const Schema& schema = {}, const elf::Shape& shape = {});

  /// Frees all blocks of a table that is being dropped and clears its root; restartable.
  static void destroy(pool::PoolCore& pool, std::uint64_t& root);

  /// Empty if the creation did not end.
  const Schema& schema() const { return schema_; }

  /// What a query reads, which stays as long as this object lives.
  class Pin;

  // As ElfTable has them.
  bool build(std::span<const ElfColumnData> columns, const ElfBuildOptions& options);
  bool compact(const Progress& progress);
  Tid insert(std::span<const ElfValue> row);
  bool erase(Tid tid);
  std::optional<ElfTable::Row> row(Tid tid) const;
  std::uint64_t size() const;
  void cache(const CachePolicy& policy);
  void wait_for_cache() const;
  ElfTableStats table_stats() const;

  IndexStats stats() const override;
  CheckReport check() const override;
  void for_each_block(const pool::BlockVisitor& visit) const override;

  pool::PoolCore& pool() const { return handle_.pool(); }

 private:
  struct Pinned {
    Pinned(const Table& table, unsigned generation,
           std::shared_ptr<InsertedRows> inserted = nullptr)
        : number(generation),
          version(table.handle_, table.schema_, table.root_->generations[generation], table.shape_,
                  std::move(inserted)) {}

    const unsigned number;  // of the generation
    Version version;
    std::uint64_t pins = 0;      // guarded by Table::pins_
    std::uint64_t visitors = 0;  // of those, pins of queries that show rows; guarded as well
  };

  // recovery.cc
  void open(const Schema& schema, const elf::Shape& shape);

  // elf_table.cc
  Version& version() const { return current_->version; }
  std::uint64_t end_tid();
  bool erase_listed(Tid tid);
  bool erase_inserted(Tid tid);
  std::uint64_t inserted_rows() const;

  // check.cc
  void walk(Owned& owned) const;

  // build.cc
  template <class Make>
  bool replace(const Make& make);
  void fold(const Progress& progress);
  std::uint64_t seal();
  std::unique_ptr<Pinned> make_version(const RowSource& source, std::span<const unsigned> order,
                                       const Progress& progress,
                                       const std::shared_ptr<InsertedRows>& inserted = nullptr);
  void catch_up(Version& next);
  void install(std::unique_ptr<Pinned> next);
  bool free_replaced();
  [[noreturn]] void throw_in_use(std::string_view why) const;
  void cache_again() noexcept;
  std::vector<unsigned> current_order() const;

  pool::IndexHandle handle_;  // keeps the pool open
  Root* root_ = nullptr;      // null: the creation did not end
  Schema schema_;
  elf::Shape shape_;

  mutable std::mutex pins_;  // guards what follows, and the pins of both; held for moments
  mutable std::condition_variable unpinned_;
  std::unique_ptr<Pinned> current_;   // changes with writers_ held, too
  std::unique_ptr<Pinned> replaced_;  // by the last build or compact, while a query has it pinned

  std::mutex caching_;  // guards policy_, and the call of cache() of the Elf; before pins_
  CachePolicy policy_;

  std::atomic<bool> building_{false};  // a build or compact runs
  mutable std::mutex writers_;         // guards what follows; held for moments
  elf::DeltaLimit limit_;
  elf::ErasedMeanwhile erased_meanwhile_;
  std::optional<std::uint64_t> next_tid_;
  mutable std::optional<std::uint64_t> inserted_rows_;  // that are there
};

class Table::Pin {
 public:
  enum class For : std::uint8_t {
    call,     ///< it ends by itself
    visitor,  ///< code of the library's users runs during the call
  };

  explicit Pin(const Table& table, For reason = For::call) : Pin(table, &Table::current_, reason) {}

  /// The version that was replaced, if a query still reads it.
  static Pin replaced(const Table& table) { return Pin(table, &Table::replaced_, For::call); }

  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
  ~Pin() {
    if (pinned_ == nullptr) return;
    const std::lock_guard lock(table_.pins_);
    --pinned_->pins;
    if (reason_ == For::visitor) --pinned_->visitors;
    table_.unpinned_.notify_all();
  }

  explicit operator bool() const { return pinned_ != nullptr; }
  const Version& operator*() const { return pinned_->version; }
  elf::Table& elf() const { return pinned_->version.elf(); }
  const Version* operator->() const { return &pinned_->version; }
  unsigned number() const { return pinned_->number; }

 private:
  Pin(const Table& table, std::unique_ptr<Pinned> Table::*which, For reason)
      : table_(table), reason_(reason) {
    const std::lock_guard lock(table_.pins_);
    pinned_ = (table_.*which).get();
    if (pinned_ == nullptr) return;
    ++pinned_->pins;
    if (reason_ == For::visitor) ++pinned_->visitors;
  }

  const Table& table_;
  const For reason_;
  Pinned* pinned_;
};

/// The value of a row that the columns have, in one of them. Throws corrupt.
ElfValue value_at(const Version& version, const Schema& schema, unsigned column, Slot slot);

/// The values of such a row, and those of keys.
ElfTable::Row row_at(const Version& version, const Schema& schema, Slot slot);
ElfTable::Row row_of(const Schema& schema, std::span<const Key> keys);

}  // namespace perdix::detail::index::elf_table
