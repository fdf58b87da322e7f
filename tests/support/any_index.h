// One class for open indexes of any engine and kinds, so that each suite compiles once for all
// engines. TypedIndex is the only code that is compiled per engine and combination of kinds: it
// converts arguments and forwards each call to the engine's class. Thread-safety is that of the
// index.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <perdix/perdix.h>

#include "support/datum.h"

namespace perdix::test {

using Row = std::pair<Datum, Datum>;
using Rows = std::vector<Row>;
using ShowPair = std::function<bool(DatumView key, DatumView value)>;

/// Changes the value of a key; none: it is absent, or it goes.
using ChangeValue = std::function<std::optional<Datum>(std::optional<DatumView>)>;

/// What an index does, with data instead of types. A datum of the wrong kind throws
/// std::bad_variant_access.
class ErasedIndex {
 public:
  virtual ~ErasedIndex() = default;

  virtual void put(DatumView key, DatumView value) = 0;
  virtual bool insert(DatumView key, DatumView value) = 0;
  virtual bool update(DatumView key, DatumView value) = 0;
  virtual bool erase(DatumView key) = 0;

  /// insert(), where there is no insert that does not look first.
  virtual void insert_ahead(DatumView key, DatumView value) = 0;
  virtual bool compare_exchange(DatumView key, std::optional<DatumView> expected,
                                std::optional<DatumView> desired) = 0;
  virtual bool update_with(DatumView key, const ChangeValue& change) = 0;
  virtual std::optional<Datum> get(DatumView key) const = 0;
  virtual bool get(DatumView key, Datum& value) const = 0;
  virtual bool contains(DatumView key) const = 0;
  virtual std::vector<std::optional<Datum>> get_many(const std::vector<Datum>& keys) const = 0;
  virtual void for_each(const ShowPair& visit) const = 0;
  virtual void scan(DatumView from, const ShowPair& visit) const = 0;
  virtual Rows scan(DatumView from, std::size_t limit) const = 0;
  virtual std::optional<Row> lower_bound(DatumView key) const = 0;
  virtual std::optional<Row> floor(DatumView key) const = 0;
  virtual std::optional<Row> after(DatumView key) const = 0;
  virtual std::optional<Row> before(DatumView key) const = 0;
  virtual std::optional<Row> first() const = 0;
  virtual std::optional<Row> last() const = 0;

  /// Loops over a range, without `to` up to the last key, until the visitor returns false.
  virtual void walk_range(DatumView from, std::optional<DatumView> to, bool backwards,
                          const ShowPair& visit) const = 0;
  virtual void walk_prefix(DatumView bytes, bool backwards, const ShowPair& visit) const = 0;
  virtual std::uint64_t erase_range(DatumView from, std::optional<DatumView> to) = 0;
  virtual std::uint64_t clear() = 0;
  virtual std::uint64_t size() const = 0;
  virtual IndexStats stats() const = 0;
  virtual CheckReport check() const = 0;
  virtual Kind key_kind() const = 0;
  virtual Kind value_kind() const = 0;
  virtual bool ordered() const = 0;  ///< false: scan() throws std::logic_error

  /// Moves the engine's object into a new one, by its move constructor.
  virtual std::unique_ptr<ErasedIndex> move_out() = 0;

  /// Moves another object of the same class over this one, by its move assignment.
  virtual void assign(ErasedIndex& other) = 0;
};

/// Constructed, moved and destroyed as the engine's object is.
class AnyIndex {
 public:
  explicit AnyIndex(std::unique_ptr<ErasedIndex> index) : index_(std::move(index)) {}
  ~AnyIndex() = default;
  AnyIndex(AnyIndex&& other) noexcept : index_(other.index_->move_out()) {}
  AnyIndex& operator=(AnyIndex&& other) noexcept {
    index_->assign(*other.index_);
    return *this;
  }

  void put(DatumView key, DatumView value) { index_->put(key, value); }
  bool insert(DatumView key, DatumView value) { return index_->insert(key, value); }
  bool update(DatumView key, DatumView value) { return index_->update(key, value); }
  bool erase(DatumView key) { return index_->erase(key); }
  void insert_ahead(DatumView key, DatumView value) { index_->insert_ahead(key, value); }
  bool compare_exchange(DatumView key, std::optional<DatumView> expected,
                        std::optional<DatumView> desired) {
    return index_->compare_exchange(key, expected, desired);
  }
  bool update_with(DatumView key, const ChangeValue& change) {
    return index_->update_with(key, change);
  }
  std::optional<Datum> get(DatumView key) const { return index_->get(key); }
  bool get(DatumView key, Datum& value) const { return index_->get(key, value); }
  bool contains(DatumView key) const { return index_->contains(key); }
  std::vector<std::optional<Datum>> get_many(const std::vector<Datum>& keys) const {
    return index_->get_many(keys);
  }
  void for_each(const ShowPair& visit) const { index_->for_each(visit); }
  void scan(DatumView from, const ShowPair& visit) const { index_->scan(from, visit); }
  Rows scan(DatumView from, std::size_t limit) const { return index_->scan(from, limit); }
  std::optional<Row> lower_bound(DatumView key) const { return index_->lower_bound(key); }
  std::optional<Row> floor(DatumView key) const { return index_->floor(key); }
  std::optional<Row> after(DatumView key) const { return index_->after(key); }
  std::optional<Row> before(DatumView key) const { return index_->before(key); }
  std::optional<Row> first() const { return index_->first(); }
  std::optional<Row> last() const { return index_->last(); }
  void walk_range(DatumView from, std::optional<DatumView> to, bool backwards,
                  const ShowPair& visit) const {
    index_->walk_range(from, to, backwards, visit);
  }
  Rows range(DatumView from, std::optional<DatumView> to, bool backwards = false) const {
    Rows rows;
    walk_range(from, to, backwards, kept_in(rows));
    return rows;
  }
  void walk_prefix(DatumView bytes, bool backwards, const ShowPair& visit) const {
    index_->walk_prefix(bytes, backwards, visit);
  }
  Rows prefix(DatumView bytes, bool backwards = false) const {
    Rows rows;
    walk_prefix(bytes, backwards, kept_in(rows));
    return rows;
  }
  std::uint64_t erase_range(DatumView from, std::optional<DatumView> to) {
    return index_->erase_range(from, to);
  }
  std::uint64_t clear() { return index_->clear(); }

  /// Shows all pairs: in order if there is one.
  void visit_all(const ShowPair& visit) const {
    ordered() ? scan(Datum::least(key_kind()), visit) : for_each(visit);
  }

  std::uint64_t size() const { return index_->size(); }
  IndexStats stats() const { return index_->stats(); }
  CheckReport check() const { return index_->check(); }
  Kind key_kind() const { return index_->key_kind(); }
  Kind value_kind() const { return index_->value_kind(); }
  bool ordered() const { return index_->ordered(); }

 private:
  static ShowPair kept_in(Rows& rows) {
    return [&rows](DatumView key, DatumView value) {
      rows.emplace_back(key.copy(), value.copy());
      return true;
    };
  }

  std::unique_ptr<ErasedIndex> index_;
};

}  // namespace perdix::test
