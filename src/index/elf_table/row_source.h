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

  /// How many rows there are.
  virtual std::uint64_t rows() const = 0;

  /// TIDs of the new generation are below it.
  virtual std::uint64_t tids() const { return rows(); }

  /// The TIDs of the rows, ascending; none if they are all below tids().
  virtual std::span<const std::uint32_t> numbers() const { return {}; }

  /// Gives all values of a column to an encoder, in the order of TIDs.
  virtual void encode(unsigned column, ColumnEncoder& encoder, const Tick& tick) const = 0;

 protected:
  static constexpr std::uint64_t kRowsPerTick = 1 << 12;
};

/// The columns of a build.
class ColumnSource final : public RowSource {
 public:
  /// Throws invalid_argument or too_large unless they are columns of that schema.
  ColumnSource(const Schema& schema, std::span<const ElfColumnData> columns);

  std::uint64_t rows() const override { return rows_; }
  void encode(unsigned column, ColumnEncoder& encoder, const Tick& tick) const override;

 private:
  const Schema& schema_;
  std::span<const ElfColumnData> columns_;
  std::uint64_t rows_ = 0;
};

/// The rows of a table with TIDs below `end`, for a compact. Others may be inserted meanwhile. Of
/// rows that are erased meanwhile some are in it.
class TableSource final : public RowSource {
 public:
  TableSource(const Schema& schema, const Version& version, std::uint64_t end);

  std::uint64_t rows() const override { return numbers_.size(); }
  std::uint64_t tids() const override { return end_; }
  std::span<const std::uint32_t> numbers() const override {
    return rows() == end_ ? std::span<const std::uint32_t>() : numbers_;
  }
  void encode(unsigned column, ColumnEncoder& encoder, const Tick& tick) const override;

 private:
  void read_listed();
  void read_inserted();
  Key inserted_key(const std::string& record, unsigned column) const;

  const Schema& schema_;
  const Version& version_;
  const std::uint64_t end_;
  std::vector<std::uint32_t> numbers_;  // TIDs
  std::vector<Slot> listed_;            // the slots of the first ones
  std::vector<std::string> inserted_;   // the records of the others
};

}  // namespace perdix::detail::index::elf_table
