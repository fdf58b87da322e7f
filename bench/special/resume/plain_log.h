// The comparator of the structured log: records with the same bytes and checksum, one after the
// other in a file. A reader must read all of them before it can answer a lookup.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "special/resume/flat_table.h"

namespace perdix::bench::resumption {

struct Change {
  std::uint64_t owner;  ///< whose buffer it is in
  std::uint64_t key;
  std::uint64_t value;
};

/// Writes the log's file, the first change being the oldest. Throws perdix::Error.
void write_plain_log(const std::filesystem::path& path, std::span<const Change> changes);

class PlainLog {
 public:
  /// Maps the file and populates all its pages. Throws perdix::Error.
  explicit PlainLog(const std::filesystem::path& path);
  ~PlainLog();
  PlainLog(const PlainLog&) = delete;
  PlainLog& operator=(const PlainLog&) = delete;

  /// How many records the file has room for.
  std::uint64_t capacity() const;

  /// Puts all pairs into the table: verifies and applies the records in order up to the tail, which
  /// is the first invalid record. Returns the number of records.
  std::uint64_t scan(FlatTable& table) const;

 private:
  std::uint64_t bytes_ = 0;
  const std::byte* data_ = nullptr;
};

}  // namespace perdix::bench::resumption
