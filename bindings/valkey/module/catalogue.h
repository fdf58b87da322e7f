// The catalogue: which keys of which database the pool holds, with a record each. It lies in two
// indexes of the pool, beside the tables' own.
//
//   perdix:keys   space and name of a key -> its record
//   perdix:meta   "spaces" -> which space each database has; "batch" -> changes that are under way
//
// A *space* is a number that stands for the content of a database: FLUSHDB gives the database a new
// one and SWAPDB exchanges two, so that both are one durable write. What a space that no database
// has left behind is erased later (Reaper), or after the next start.
//
// 1. apply() is atomic: several changes are written to "batch" as one value, applied, and taken out
//    of it. A start applies again what it finds there.
// 2. Used by the server's main thread, but for erase_space().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <perdix/index.h>

namespace perdix::valkey {

/// What becomes of one key.
struct KeyChange {
  std::string key;                    ///< as key_in() makes it
  std::optional<std::string> record;  ///< none: the key goes
};

class Catalogue {
 public:
  static constexpr std::size_t kSpaceSize = 4;

  /// Bytes that the name of a key may have.
  static constexpr std::size_t kMaxName = kMaxKeySize - kSpaceSize;

  static constexpr int kAllDatabases = -1;

  /// Opens or creates the indexes, and completes what a crash left.
  explicit Catalogue(const Pool& pool);

  /// The catalogue's own key for a name in a database.
  void key_in(int database, std::string_view name, std::string& key);

  /// Makes all changes durable, or none.
  void apply(std::span<const KeyChange> changes);

  /// Shows each record: visit(database, name, record).
  void for_each(const std::function<void(int, std::string_view, std::string_view)>& visit) const;

  /// Whether it never had a record.
  bool is_new() const noexcept { return spaces_.empty(); }

  /// One more than the highest number of a database that ever had a record.
  int databases() const noexcept { return static_cast<int>(spaces_.size()); }

  /// Empties a database, or all. Returns the spaces that are no longer needed.
  std::vector<std::uint32_t> flush(int database);

  void swap(int first, int second);

  /// Spaces that hold records and that no database has.
  std::vector<std::uint32_t> abandoned() const;

  /// Erases all records of a space that no database has. Thread-safe.
  void erase_space(std::uint32_t space);

  void close();

 private:
  void load_spaces();
  void store_spaces(const std::vector<std::uint32_t>& spaces, std::uint32_t next);
  std::uint32_t space_of(int database);
  void apply_one_by_one(std::span<const KeyChange> changes);
  void complete_batch();

  std::unique_ptr<Index> keys_;
  std::unique_ptr<Index> meta_;
  std::vector<std::uint32_t> spaces_;  // by database
  std::uint32_t next_space_ = 0;
};

}  // namespace perdix::valkey
