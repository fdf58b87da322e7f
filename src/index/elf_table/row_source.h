// Where the rows of a new generation come from: the columns of a build, or the table itself.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "index/elf_table/encoder.h"
#include "index/elf_table/version.h"

namespace perdix::detail::index::elf_table {

/// Not thread-safe.
class RowSource {
 public:
  /// Called now and then.
  using Tick = std::function<void(std::uint64_t rows)>;

  virtual ~RowSource() = default;

  /// TIDs of the new generation are below it.
  virtual std::uint64_t tids() const = 0;

  /// Gives all values of a column to an encoder, in the order of TIDs.
  virtual void encode(unsigned column, ColumnEncoder& encoder, const Tick& tick) const = 0;

  /// TIDs below tids() of rows that were erased.
  virtual std::vector<Elf::Tid> erased() const { return {}; }

 protected:
  static constexpr std::uint64_t kRowsPerTick = 1 << 12;
};

/// The columns of a build.
class ColumnSource final : public RowSource {
 public:
  /// Throws invalid_argument or too_large unless they are columns of that schema.
  ColumnSource(const Schema& schema, std::span<const ElfColumnData> columns);

  std::uint64_t tids() const override { return rows_; }
  void encode(unsigned column, ColumnEncoder& encoder, const Tick& tick) const override;

 private:
  const Schema& schema_;
  std::span<const ElfColumnData> columns_;
  std::uint64_t rows_ = 0;
};

/// The rows of a table, for a compact. No row may be inserted or erased during the compact.
class TableSource final : public RowSource {
 public:
  TableSource(const Schema& schema, const Version& version);

  std::uint64_t tids() const override { return alive_.size(); }
  void encode(unsigned column, ColumnEncoder& encoder, const Tick& tick) const override;
  std::vector<Elf::Tid> erased() const override;

 private:
  void read_inserted();
  Key inserted_key(std::uint64_t tid, unsigned column) const;

  const Schema& schema_;
  const Version& version_;
  std::vector<bool> alive_;            // by TID
  std::vector<std::string> inserted_;  // records, by TID from version_.tids() on
};

}  // namespace perdix::detail::index::elf_table
