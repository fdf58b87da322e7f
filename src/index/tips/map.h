// Keys and values with types: the calls of PointIndex and OrderedIndex over a Core, which knows
// bytes only.
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <perdix/types.h>

#include "index/common/batch.h"
#include "index/common/groups.h"
#include "index/common/limits.h"
#include "index/common/neighbour.h"
#include "index/common/value_of.h"
#include "index/tips/core.h"
#include "index/tips/plugin.h"
#include "index/tips/plugins.h"
#include "pool/index_handle.h"
#include "pool/open_index.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {

/// A key or a value as the bytes that a Core takes, and back.
template <class T>
class Raw;

template <>
class Raw<std::uint64_t> {
 public:
  explicit Raw(std::uint64_t number) : number_(number) {}
  std::string_view bytes() const {
    return {reinterpret_cast<const char*>(&number_), sizeof number_};
  }
  static std::uint64_t view(std::string_view bytes) {
    std::uint64_t number = 0;
    std::memcpy(&number, bytes.data(), sizeof number);
    return number;
  }

 private:
  std::uint64_t number_;
};

template <>
class Raw<std::string> {
 public:
  explicit Raw(std::string_view bytes) : bytes_(bytes) {}
  std::string_view bytes() const { return bytes_; }
  static std::string_view view(std::string_view bytes) { return bytes; }

 private:
  std::string_view bytes_;
};

/// Pairs on their way to a visitor, in copies of their own.
template <class K, class V>
class CopiedPairs {
 public:
  static constexpr std::size_t kMostPairs = 128;
  static constexpr std::size_t kMostBytes = std::size_t{64} << 10;

  void clear() { pairs_.clear(), bytes_ = 0; }
  void add(View<K> key, View<V> value) {
    pairs_.emplace_back(key, value);
    bytes_ += size_of(key) + size_of(value);
  }
  bool is_full() const { return pairs_.size() >= kMostPairs || bytes_ >= kMostBytes; }
  std::size_t size() const { return pairs_.size(); }
  std::vector<std::pair<K, V>>& pairs() { return pairs_; }

  /// As Batch::show().
  bool show(const Visitor<K, V>& visit, const pool::PoolCore& pool) const {
    for (const auto& [key, value] : pairs_) {
      if (!visit(key, value)) return false;
      if (!pool.health().usable()) [[unlikely]]  // in a child that the visitor forked
        pool::as_errors([&] { pool.require_usable(); });
    }
    return true;
  }

 private:
  static std::size_t size_of(std::uint64_t) { return sizeof(std::uint64_t); }
  static std::size_t size_of(std::string_view bytes) { return bytes.size(); }

  std::vector<std::pair<K, V>> pairs_;
  std::size_t bytes_ = 0;
};

/// A durable map over the plug-in that the engine of its index names; without order.
template <class K, class V>
class Map : public pool::OpenIndex {
 public:
  using Key = View<K>;
  using Value = View<V>;

  explicit Map(pool::IndexHandle handle, const IndexOptions& options = {})
      : Map(std::move(handle), options, false) {}

  static void destroy(pool::PoolCore& pool, std::uint64_t& root) {
    Core::destroy(pool, root, kKinds);
  }

  void put(Key key, Value value) { write(Operation::put, key, value, nullptr, nullptr); }
  bool insert(Key key, Value value) {
    return write_if(Operation::put, key, value, [](Core::Found found) { return !found; });
  }
  bool update(Key key, Value value) {
    return write_if(Operation::put, key, value, [](Core::Found found) { return !!found; });
  }
  bool erase(Key key) {
    return write_if(Operation::erase, key, Value{}, [](Core::Found) { return true; });
  }

  /// Replace or remove the value of a key if it is `expected`.
  bool update_if(Key key, Value expected, Value value) {
    return write_if(Operation::put, key, value, is(expected));
  }
  bool erase_if(Key key, Value expected) {
    return write_if(Operation::erase, key, Value{}, is(expected));
  }

  bool get(Key key, V& value) const {
    return core_.get(Raw<K>(key).bytes(),
                     [&](std::string_view found) { value = V(Raw<V>::view(found)); });
  }
  std::optional<V> get(Key key) const { return value_of<V>(*this, key); }
  bool contains(Key key) const {
    return core_.get(Raw<K>(key).bytes(), [](std::string_view) {});
  }
  void get_many(std::span<const Key> keys, std::span<std::optional<V>> out) const {
    in_groups(keys, out, [&](auto some, auto values) {
      for (std::size_t i = 0; i < some.size(); ++i) values[i] = get(some[i]);
    });
  }

  void for_each(Visitor<K, V> visit) const;

  std::uint64_t size() const { return core_.size(); }
  IndexStats stats() const override { return core_.stats(); }
  CheckReport check() const override { return core_.check(); }
  void for_each_block(const pool::BlockVisitor& visit) const override {
    core_.for_each_block(visit);
  }
  bool reclaim_space() noexcept override { return core_.reclaim_space(); }

  pool::PoolCore& pool() const { return handle_.pool(); }
  const Core& core() const { return core_; }

 protected:
  Map(pool::IndexHandle handle, const IndexOptions& options, bool ordered)
      : handle_(std::move(handle)),
        core_(handle_.pool(), handle_.root(),
              find_plugin(handle_.pool(), handle_.info().engine, kKinds.key, ordered), kKinds,
              settings_of(options)),
        listed_(handle_.pool().open_indexes(), *this) {}

  /// Writes that the index does not have yet, since there is no space for them.
  using Pending = std::map<K, std::optional<V>, std::less<>>;

  static constexpr Kinds kKinds{kKindOf<K>, kKindOf<V>};

  Pending pending() const;
  Key key_of(const Word& word) const { return Raw<K>::view(core_.key_view(word)); }
  Value value_of_word(const Word& word) const { return Raw<V>::view(core_.value_view(word)); }

  /// The word of a key that is looked for.
  Core::KeyWord word_of(Key key) const { return core_.key_word(Raw<K>(key).bytes()); }

 private:
  static auto is(Value expected) {
    return [expected](Core::Found found) { return found && Raw<V>::view(*found) == expected; };
  }
  bool write(Operation operation, Key key, Value value, Core::Decide decide, void* context) {
    check_key(key);
    check_value(value);
    const bool erases = operation == Operation::erase;
    return core_.write(operation, Raw<K>(key).bytes(),
                       erases ? std::string_view() : Raw<V>(value).bytes(), decide, context);
  }
  template <class Decide>
  bool write_if(Operation operation, Key key, Value value, Decide decide) {
    return write(
        operation, key, value,
        [](void* context, Core::Found found) { return (*static_cast<Decide*>(context))(found); },
        &decide);
  }

  pool::IndexHandle handle_;  // keeps the pool open
  Core core_;
  pool::OpenIndexes::Entry listed_;  // last: the pool calls no index that is not complete
};

/// The same over a plug-in that keeps its keys in order.
template <class K, class V>
class OrderedMap : public Map<K, V> {
 public:
  using Key = View<K>;
  using Value = View<V>;
  using Pair = std::pair<K, V>;

  explicit OrderedMap(pool::IndexHandle handle, const IndexOptions& options = {})
      : Map<K, V>(std::move(handle), options, true) {}

  std::optional<Pair> find_floor(Key key) const { return find_last(key, false); }
  std::optional<Pair> find_below(Key key) const { return find_last(key, true); }

  /// At most `limit` pairs.
  void scan(Key from, Visitor<K, V> visit, std::size_t limit = kNoLimit) const;
  void for_each(Visitor<K, V> visit) const { scan(Key{}, visit); }

 private:
  using Pending = typename Map<K, V>::Pending;
  struct Read;

  bool read_batch(CopiedPairs<K, V>& batch, K& position, std::size_t limit,
                  const Pending& pending) const;
  std::optional<Pair> last_in_index(Key bound, bool strictly) const;
  std::optional<Pair> find_last(Key bound, bool strictly) const;
};

}  // namespace perdix::detail::index::tips
