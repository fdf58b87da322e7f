// The catalogue: which keys of which database the pool holds, with a record each. It lies in two
// indexes of the pool, beside the tables' own.
//
//   perdix:keys   space and name of a key -> its record
//   perdix:meta   "spaces" -> which space each database has; "batch" -> changes that are under way;
//                 "partial" -> the pool may lack keys that its server had
//
// A *space* is a number that stands for the content of a database: FLUSHDB gives the database a new
// one and SWAPDB exchanges two. Both change the list of spaces in memory, and the next apply()
// makes the list durable together with the changes of keys. So a transaction that flushes is one
// change. The records of a space that no database has any more are erased later (Reaper), or after
// the next start.
//
// 1. apply() is atomic: several changes are written to "batch" as one value, applied, and taken out
//    of it. A start applies again what it finds there.
// 2. A batch that the pool does not take for want of space is taken back. Large batches are undone,
//    for which apply() reads the old records first. A small one only fails while Refusal has its
//    reserve, which has space for a second try; if that fails too, the batch stays half applied.
//    Its unit was not acknowledged.
// 3. The mark "partial" is durable before the first change that makes a part of the pool's keys,
//    and goes after the change that makes them whole.
// 4. Used by the server's main thread, but for erase_space().
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
  std::string key;                    ///< as key_in() makes it; empty: the list of spaces
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

  /// Makes all changes durable, with those of spaces, or none. Throws out_of_space, io_error.
  void apply(std::vector<KeyChange> changes);

  /// After apply() has thrown and is not tried again: a start must not complete its changes, which
  /// later ones may contradict.
  void give_up_batch() noexcept;

  /// Whether spaces have changed since the last apply().
  bool spaces_changed() const noexcept { return spaces_changed_; }

  /// Spaces that a flush has left, once that is durable. Each is returned once.
  std::vector<std::uint32_t> take_left_spaces();

  /// Whether the pool may lack keys: it is marked from the next apply() on, before its changes. The
  /// mark goes after the changes of the apply() that follows set_partial(false).
  void set_partial(bool partial) noexcept { partial_ = partial; }
  bool is_partial() const noexcept { return partial_ || marked_partial_; }

  /// Whether apply() has something to do without changes of keys.
  bool waits_for_apply() const noexcept { return spaces_changed_ || partial_ != marked_partial_; }

  /// Shows each record: visit(database, name, record).
  void for_each(const std::function<void(int, std::string_view, std::string_view)>& visit) const;

  /// Bytes of a key's record; 0 if it has none.
  std::size_t record_size(int database, std::string_view name) const;

  /// How many records there are, with those of spaces that are being erased.
  std::uint64_t records() const { return keys_->size(); }

  /// Whether it never had a record.
  bool is_new() const noexcept { return spaces_.empty(); }

  /// One more than the highest number of a database that ever had a record.
  int databases() const noexcept { return static_cast<int>(spaces_.size()); }

  /// Empties a database, or all. Durable with the next apply().
  void flush(int database);

  /// Exchanges two databases. Durable with the next apply().
  void swap(int first, int second);

  /// Spaces that hold records and that no database has.
  std::vector<std::uint32_t> abandoned() const;

  /// Erases all records of a space that no database has. Thread-safe.
  void erase_space(std::uint32_t space);

  void close();

 private:
  void load_spaces();
  std::string stored_spaces() const;
  std::uint32_t new_space();
  std::uint32_t space_of(int database);
  void apply_one(const KeyChange& change);
  void apply_one_by_one(std::span<const KeyChange> changes);
  void apply_batch(std::span<const KeyChange> changes);
  std::optional<std::string> record(const std::string& key) const;
  std::vector<KeyChange> undo_of(std::span<const KeyChange> changes) const;
  void complete_batch(const Pool& pool);
  void mark_partial();
  void mark_whole();

  std::unique_ptr<Index> keys_;
  std::unique_ptr<Index> meta_;
  std::vector<std::uint32_t> spaces_;  // by database
  std::uint32_t next_space_ = 0;
  bool spaces_changed_ = false;
  std::vector<std::uint32_t> left_;  // by flushes
  bool batch_left_ = false;          // by an apply() that has thrown
  bool partial_ = false;
  bool marked_partial_ = false;  // in the pool
};

}  // namespace perdix::valkey
