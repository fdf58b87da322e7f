// The sample hash index: an engine of pairs without order, as small as one can be. It stays in the
// suites as the example of "Add an engine" in CONTRIBUTING.md. A lock makes it thread-safe.
#pragma once

#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <perdix/point_index.h>

#include "index/common/bytes.h"
#include "index/common/groups.h"
#include "index/common/retry.h"
#include "index/common/value_of.h"
#include "pool/index_handle.h"
#include "pool/open_index.h"
#include "samples/hash/slots.h"

namespace perdix::samples {

namespace hash {

inline constexpr std::string_view kEngineName = "sample_hash";

template <class K, class V>
class Table final : public detail::pool::OpenIndex {
 public:
  using Key = View<K>;
  using Value = View<V>;

  explicit Table(detail::pool::IndexHandle handle, const IndexOptions& = {});

  static void destroy(detail::pool::PoolCore& pool, std::uint64_t& root) {
    Slots::destroy(pool, root);
  }

  void put(Key key, Value value) {
    write(key, value, [](const Value*) { return true; });
  }
  bool insert(Key key, Value value) {
    return write(key, value, [](const Value* found) { return !found; });
  }
  bool update(Key key, Value value) {
    return write(key, value, [](const Value* found) { return !!found; });
  }
  bool update_if(Key key, Value expected, Value value) {
    return write(key, value, [&](const Value* found) { return found && *found == expected; });
  }
  bool erase(Key key) {
    return erase(key, [](const Value*) { return true; });
  }
  bool erase_if(Key key, Value expected) {
    return erase(key, [&](const Value* found) { return *found == expected; });
  }

  bool get(Key key, V& value) const {
    const std::lock_guard guard(lock_);
    std::string_view found;
    if (!slots_.find(detail::index::Bytes<K>::encode(key), found)) return false;
    value = V(detail::index::Bytes<V>::decode(found));
    return true;
  }
  std::optional<V> get(Key key) const { return detail::index::value_of<V>(*this, key); }
  bool contains(Key key) const {
    const std::lock_guard guard(lock_);
    std::string_view found;
    return slots_.find(detail::index::Bytes<K>::encode(key), found);
  }
  void get_many(std::span<const Key> keys, std::span<std::optional<V>> out) const {
    detail::index::in_groups(keys, out, [&](auto some, auto values) {
      for (std::size_t i = 0; i < some.size(); ++i) values[i] = get(some[i]);
    });
  }

  /// Copies all pairs first, so that the visitor runs without the lock.
  void for_each(Visitor<K, V> visit) const;

  std::uint64_t size() const {
    const std::lock_guard guard(lock_);
    return slots_.pairs();
  }
  IndexStats stats() const override;
  CheckReport check() const override {
    const std::lock_guard guard(lock_);
    return slots_.check();
  }
  void for_each_block(const detail::pool::BlockVisitor& visit) const override {
    slots_.for_each_block(visit);
  }

  detail::pool::PoolCore& pool() const { return handle_.pool(); }

 private:
  /// Does it if wants(value of the key) says so; nullptr if the key is not there.
  template <class Wants>
  bool write(Key key, Value value, Wants wants);
  template <class Wants>
  bool erase(Key key, Wants wants);

  detail::pool::IndexHandle handle_;  // keeps the pool open
  mutable std::mutex lock_;
  Slots slots_;  // guarded by lock_
};

}  // namespace hash

/// A durable map without order.
template <Storable K, Storable V>
class SampleHash : public PointIndex<hash::Table<K, V>, K, V> {
 public:
  SampleHash(const Pool& pool, std::string_view name);
};

}  // namespace perdix::samples
