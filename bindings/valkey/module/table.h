// A table: an index of the pool that is the value of one of the server's keys.
//
// The index is opened when it is first used, so that a start costs nothing for each table. What has
// a table holds a shared_ptr: the key's value, a child process that is being served, the reaper.
// Thread-safe, but for the scratch buffer.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include <perdix/index.h>

namespace perdix::valkey {

class Table {
 public:
  Table(const Pool& pool, std::uint64_t id, IndexInfo info, const IndexOptions& options)
      : pool_(pool), id_(id), info_(std::move(info)), options_(options) {}

  std::uint64_t id() const noexcept { return id_; }

  /// Engine and kinds; known without opening the index.
  const IndexInfo& info() const noexcept { return info_; }

  /// Opens the index if it is not open. Throws what Index::open_or_create() throws.
  Index& index();

  /// The index if it is open, else null.
  Index* index_if_open() const;

  /// Closes the index, which no other thread may use.
  void close() noexcept;

  /// For values that are read in the server's main thread: memory that is used again.
  std::string& scratch() noexcept { return scratch_; }

 private:
  Pool pool_;
  std::uint64_t id_;
  IndexInfo info_;
  IndexOptions options_;
  mutable std::mutex mutex_;
  std::unique_ptr<Index> index_;
  std::atomic<Index*> open_{nullptr};
  std::string scratch_;
};

/// Shows all pairs, in order if the engine has one.
void for_each_pair(const Index& index, Visitor<std::string, std::string> visit);

/// The name that the index of a table has in the pool.
std::string table_name(std::uint64_t id);

/// The table's number in the name of an index; 0 if it is no table's.
std::uint64_t table_id(std::string_view name);

}  // namespace perdix::valkey
