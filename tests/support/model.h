// The reference map: a simple implementation of what every index must do. Not thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <iterator>
#include <map>
#include <optional>

#include "support/any_index.h"
#include "support/datum.h"

namespace perdix::test {

class Model {
 public:
  void put(DatumView key, DatumView value) { pairs_.insert_or_assign(key.copy(), value.copy()); }

  bool insert(DatumView key, DatumView value) {
    return pairs_.try_emplace(key.copy(), value.copy()).second;
  }

  bool update(DatumView key, DatumView value) {
    const auto found = pairs_.find(key);
    if (found == pairs_.end()) return false;
    found->second = value.copy();
    return true;
  }

  bool erase(DatumView key) { return pairs_.erase(key.copy()) == 1; }

  std::optional<Datum> get(DatumView key) const {
    const auto found = pairs_.find(key);
    return found == pairs_.end() ? std::nullopt : std::optional<Datum>(found->second);
  }

  bool contains(DatumView key) const { return pairs_.find(key) != pairs_.end(); }

  Rows scan(DatumView from, std::size_t limit) const {
    Rows rows;
    for (auto i = pairs_.lower_bound(from); i != pairs_.end() && rows.size() < limit; ++i) {
      rows.emplace_back(*i);
    }
    return rows;
  }

  /// The pairs with from <= key < to.
  Rows range(DatumView from, DatumView to) const {
    Rows rows;
    for (auto i = pairs_.lower_bound(from); i != pairs_.end() && DatumView(i->first) < to; ++i)
      rows.emplace_back(*i);
    return rows;
  }

  std::optional<Row> lower_bound(DatumView key) const { return at(pairs_.lower_bound(key)); }
  std::optional<Row> after(DatumView key) const { return at(pairs_.upper_bound(key)); }
  std::optional<Row> floor(DatumView key) const { return left_of(pairs_.upper_bound(key)); }
  std::optional<Row> before(DatumView key) const { return left_of(pairs_.lower_bound(key)); }
  std::optional<Row> first() const { return at(pairs_.begin()); }
  std::optional<Row> last() const { return left_of(pairs_.end()); }

  std::size_t size() const { return pairs_.size(); }
  auto begin() const { return pairs_.begin(); }
  auto end() const { return pairs_.end(); }

 private:
  using Pairs = std::map<Datum, Datum, std::less<>>;

  std::optional<Row> at(Pairs::const_iterator i) const {
    return i == pairs_.end() ? std::nullopt : std::optional<Row>(*i);
  }
  std::optional<Row> left_of(Pairs::const_iterator i) const {
    return i == pairs_.begin() ? std::nullopt : std::optional<Row>(*std::prev(i));
  }

  Pairs pairs_;
};

}  // namespace perdix::test
