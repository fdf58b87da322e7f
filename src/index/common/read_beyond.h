// Several pairs next to a key, for cursors and ranges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <perdix/types.h>

#include "index/common/neighbour.h"

namespace perdix::detail::index {

/// Puts pairs to the beginning of a vector, and reuses the memory of those that it had. Not
/// thread-safe.
template <Storable K, Storable V>
class PairsAhead {
 public:
  explicit PairsAhead(std::vector<std::pair<K, V>>& pairs) : pairs_(pairs) {}

  /// As a visitor of a scan: false if the strings have become as large as a cursor may keep.
  bool operator()(View<K> key, View<V> value) {
    if (count_ == pairs_.size()) pairs_.emplace_back();
    auto& [own_key, own_value] = pairs_[count_++];
    bytes_ += assign(own_key, key) + assign(own_value, value);
    return bytes_ < kMaxBytes;
  }

  /// How many were put.
  std::size_t count() const { return count_; }

 private:
  static constexpr std::size_t kMaxBytes = std::size_t{16} << 10;
  static constexpr std::size_t kMaxKept = 1024;  // of a string's memory, for another one

  static std::size_t assign(std::uint64_t& own, std::uint64_t value) { return own = value, 0; }
  static std::size_t assign(std::string& own, std::string_view bytes) {
    if (own.capacity() > kMaxKept) std::string().swap(own);
    return own.assign(bytes).size();
  }

  std::vector<std::pair<K, V>>& pairs_;
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
};

/// The pairs with greater keys, ascending, at most `limit`: those of engine.read(). Returns how
/// many.
template <Storable K, Storable V, class Engine>
std::size_t read_above(const Engine& engine, View<K> key, std::size_t limit,
                       std::vector<std::pair<K, V>>& pairs) {
  PairsAhead<K, V> ahead(pairs);
  if (const auto from = successor(key)) engine.read(*from, limit, ahead);
  return ahead.count();
}

/// The pairs with smaller keys, descending, at most `limit`: those of engine.read_below(). Returns
/// how many.
template <Storable K, Storable V, class Engine>
std::size_t read_below(const Engine& engine, View<K> key, std::size_t limit,
                       std::vector<std::pair<K, V>>& pairs) {
  PairsAhead<K, V> ahead(pairs);
  engine.read_below(key, limit, ahead);
  return ahead.count();
}

}  // namespace perdix::detail::index
