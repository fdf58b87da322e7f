// Keys and values with types: the calls of PointIndex and OrderedIndex over a Core, which knows
// bytes only.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
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

/// Pairs on their way to a visitor, in copies of their own: words, of which those of strings are
/// places in a buffer. take() and copy_pairs() in one Guard, or add(); then show() without one.
template <class K, class V>
class CopiedPairs {
 public:
  static constexpr std::size_t kMaxPairs = 128;
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 10;

  /// Empties it; few allocations follow if no more than `expected` pairs do.
  void clear(std::size_t expected = kMaxPairs) {
    pairs_.clear();
    pairs_.reserve(std::min(expected, kMaxPairs));
    bytes_.clear(2 * kMaxBytes);
  }

  void add(View<K> key, View<V> value) { pairs_.push_back({copy(key), copy(value)}); }

  /// Words of the index, whose strings stay where they are until copy_pairs() has returned.
  void take(Word key, Word value) {
    if constexpr (kCopies<K>) prefetch(key);
    if constexpr (kCopies<V>) prefetch(value);
    pairs_.push_back({key, value});
  }

  /// Copies the strings of what was taken, as many as fit; false: not those of all pairs.
  bool copy_pairs(const Core& core) {
    if constexpr (!kCopies<K> && !kCopies<V>) return true;
    for (std::size_t i = 0; i < size(); ++i) {
      if (bytes_.size() >= kMaxBytes) return pairs_.resize(i), false;
      Pair& pair = pairs_[i];
      if constexpr (kCopies<K>) pair.key = copy(core.key_view(pair.key));
      if constexpr (kCopies<V>) pair.value = copy(core.value_view(pair.value));
    }
    return true;
  }

  void shrink(std::size_t pairs) { pairs_.resize(std::min(pairs, size())); }

  bool is_full() const { return size() >= kMaxPairs || bytes_.size() >= kMaxBytes; }
  std::size_t size() const { return pairs_.size(); }
  View<K> key(std::size_t i) const { return view<K>(pairs_[i].key); }
  View<V> value(std::size_t i) const { return view<V>(pairs_[i].value); }

  /// As Batch::show(); adds to `shown` how many pairs there were.
  bool show(const Visitor<K, V>& visit, const pool::PoolCore& pool, std::size_t& shown) const {
    for (std::size_t i = 0; i < size(); ++i) {
      ++shown;
      if (!visit(key(i), value(i))) return false;
      if (!pool.health().usable()) [[unlikely]]  // in a child that the visitor forked
        pool::as_errors([&] { pool.require_usable(); });
    }
    return true;
  }

 private:
  struct Pair {
    Word key, value;
  };

  template <class T>
  static constexpr bool kCopies = std::is_same_v<T, std::string>;

  static void prefetch(Word string) { __builtin_prefetch(reinterpret_cast<const void*>(string)); }

  static Word copy(std::uint64_t number) { return number; }
  Word copy(std::string_view bytes) {
    const Word place = bytes_.size();
    const std::size_t size = bytes.size();
    bytes_.make_room(sizeof size + size);
    bytes_.append({reinterpret_cast<const char*>(&size), sizeof size});
    bytes_.append(bytes);
    return place;
  }

  template <class T>
  View<T> view(Word word) const {
    if constexpr (kCopies<T>) {
      std::size_t size = 0;
      std::memcpy(&size, bytes_.begin() + word, sizeof size);
      return {bytes_.begin() + word + sizeof size, size};
    } else {
      return word;
    }
  }

  std::vector<Pair> pairs_;
  ByteBuffer bytes_;
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

  std::optional<K> read_index(CopiedPairs<K, V>& batch, Key position, std::size_t limit) const;
  void require_order(const CopiedPairs<K, V>& batch, Key position) const;
  bool read_batch(CopiedPairs<K, V>& batch, K& position, std::size_t limit,
                  const Pending& pending) const;
  std::optional<Pair> last_in_index(Key bound, bool strictly) const;
  std::optional<Pair> find_last(Key bound, bool strictly) const;

  mutable std::atomic<std::size_t> expected_{32};  // pairs that a scan shows: as many as the last
};

}  // namespace perdix::detail::index::tips
