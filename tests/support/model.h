// The reference map: what every index must do, as plainly as it can be said. Not thread-safe.
#pragma once

#include <perdix/types.h>

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace perdix::test {

template <Storable K, Storable V>
class Model {
 public:
  using Key = View<K>;
  using Value = View<V>;

  void put(Key key, Value value) { pairs_.insert_or_assign(K(key), V(value)); }

  bool insert(Key key, Value value) { return pairs_.try_emplace(K(key), V(value)).second; }

  bool update(Key key, Value value) {
    const auto found = pairs_.find(key);
    if (found == pairs_.end()) return false;
    found->second = V(value);
    return true;
  }

  bool erase(Key key) { return pairs_.erase(K(key)) == 1; }

  std::optional<V> get(Key key) const {
    const auto found = pairs_.find(key);
    return found == pairs_.end() ? std::nullopt : std::optional<V>(found->second);
  }

  bool contains(Key key) const { return pairs_.find(key) != pairs_.end(); }

  std::vector<std::pair<K, V>> scan(Key from, std::size_t limit) const {
    std::vector<std::pair<K, V>> rows;
    for (auto i = pairs_.lower_bound(from); i != pairs_.end() && rows.size() < limit; ++i) {
      rows.emplace_back(*i);
    }
    return rows;
  }

  std::size_t size() const { return pairs_.size(); }
  auto begin() const { return pairs_.begin(); }
  auto end() const { return pairs_.end(); }

 private:
  std::map<K, V, std::less<>> pairs_;  // std::string compares as unsigned bytes
};

}  // namespace perdix::test
