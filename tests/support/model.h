// The reference map: what every index must do, as plainly as it can be said. Not thread-safe.
#pragma once

#include <cstddef>
#include <functional>
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

  std::size_t size() const { return pairs_.size(); }
  auto begin() const { return pairs_.begin(); }
  auto end() const { return pairs_.end(); }

 private:
  std::map<Datum, Datum, std::less<>> pairs_;
};

}  // namespace perdix::test
