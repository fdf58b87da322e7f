// The comparator of the structured log: records of the same bytes with the same checksum, one after
// the other in a file, which tell nothing before they have all been read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "resume/flat_table.h"

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
  /// Maps the file, all its pages at once. Throws perdix::Error.
  explicit PlainLog(const std::filesystem::path& path);
  ~PlainLog();
  PlainLog(const PlainLog&) = delete;
  PlainLog& operator=(const PlainLog&) = delete;

  /// How many records the file has room for.
  std::uint64_t capacity() const;

  /// Puts all pairs into the table: verifies and applies one record after the other until it comes
  /// to the tail, the first that is not valid. Returns how many there are.
  std::uint64_t scan(FlatTable& table) const;

 private:
  std::uint64_t bytes_ = 0;
  const std::byte* data_ = nullptr;
};

}  // namespace perdix::bench::resumption
