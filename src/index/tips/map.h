// An index over a Core, which knows keys and values as bytes only.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <perdix/types.h>

#include "index/common/batch.h"
#include "index/common/copied_pairs.h"
#include "index/common/limits.h"
#include "index/common/neighbour.h"
#include "index/common/value_codec.h"
#include "index/common/word_index.h"
#include "index/tips/core.h"
#include "index/tips/destroy.h"
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

/// The bytes of a value that is to be stored.
class RawValue {
 public:
  RawValue(NewValue value, Kind kind) : value_(value), number_(value.word()), kind_(kind) {}
  std::string_view bytes() const {
    if (kind_ == Kind::bytes) return value_.bytes();
    return {reinterpret_cast<const char*>(&number_), sizeof number_};
  }

 private:
  NewValue value_;
  std::uint64_t number_;
  Kind kind_;
};

/// Pairs on their way to a visitor, in copies of their own.
template <class K>
class PairCopies {
 public:
  static constexpr std::size_t kMaxPairs = 128;
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 10;

  explicit PairCopies(Kind values) : values_(values) {}

  /// Empties it; few allocations follow if no more than `expected` pairs do.
  void clear(std::size_t expected = kMaxPairs) {
    pairs_.clear();
    pairs_.reserve(std::min(expected, kMaxPairs));
    bytes_.clear(2 * kMaxBytes);
  }

  /// `value`: its bytes, as a Core has them.
  void add(View<K> key, std::string_view value) {
    append(key);
    if (values_ == Kind::u64) {
      pairs_.push_back({key, Raw<std::uint64_t>::view(value)});
    } else {
      append(value);
      pairs_.push_back({key, value.size()});
    }
  }

  bool is_full() const { return size() >= kMaxPairs || bytes_.size() >= kMaxBytes; }
  std::size_t size() const { return pairs_.size(); }
  CopiedPairs<K> copied() const { return {pairs_, bytes_.begin()}; }

 private:
  void append(std::uint64_t) {}
  void append(std::string_view bytes) {
    bytes_.make_room(bytes.size());
    bytes_.append(bytes);
  }

  const Kind values_;
  std::vector<CopiedPair<K>> pairs_;
  ByteBuffer bytes_;
};

/// A durable map over the plug-in that the engine of its index names. All that changes lies in its
/// Core, also in calls that are const: those that count or check pairs bring it up to date.
template <class K>
class Map : public WordIndex<K> {
 public:
  using Key = View<K>;

  static void destroy(pool::PoolCore& pool, std::uint64_t& root, Kind values) {
    tips::destroy(pool, root, {kKindOf<K>, values});
  }

  bool write(Key key, NewValue value, Mode mode, const NewValue* expected) final;
  bool erase(Key key, const NewValue* expected) final {
    check_key(key);
    return write_if(Operation::erase, key, {}, [&](Found found) { return is(found, expected); });
  }

  bool contains(Key key) const final {
    return core_->get(Raw<K>(key).bytes(), [](std::string_view) {});
  }
  bool find(Key key, std::uint64_t& value) const final {
    return core_->get(Raw<K>(key).bytes(),
                      [&](std::string_view found) { value = Raw<std::uint64_t>::view(found); });
  }
  bool find(Key key, std::string& value) const final {
    return core_->get(Raw<K>(key).bytes(), [&](std::string_view found) { value = found; });
  }
  void find_many(std::span<const Key> keys,
                 std::span<std::optional<std::uint64_t>> out) const final {
    find_each(keys, out);
  }
  void find_many(std::span<const Key> keys, std::span<std::optional<std::string>> out) const final {
    find_each(keys, out);
  }

  std::uint64_t size() const final { return core_->size(); }
  IndexStats stats() const final { return core_->stats(); }
  CheckReport check() const final { return core_->check(); }
  void for_each_block(const pool::BlockVisitor& visit) const final { core_->for_each_block(visit); }
  bool reclaim_space() noexcept final { return core_->reclaim_space(); }

  pool::PoolCore& pool() const final { return handle_.pool(); }
  const IndexInfo& info() const final { return handle_.info(); }

 protected:
  Map(pool::IndexHandle handle, const TipsOptions& options, bool ordered)
      : handle_(std::move(handle)),
        core_(std::make_unique<Core>(
            handle_.pool(), handle_.root(),
            find_plugin(handle_.pool(), handle_.info().engine, kKindOf<K>, ordered),
            Kinds{kKindOf<K>, handle_.info().value_kind}, settings_of(options))) {}

  Kind value_kind() const { return handle_.info().value_kind; }
  Core& core() const { return *core_; }
  const Guest& plugged() const { return core_->index(); }
  void require_readable() const;

  static Key key_of(const Word& word) { return Raw<K>::view(bytes_of(word, kKindOf<K>)); }
  std::string_view value_of(const Word& word) const { return bytes_of(word, value_kind()); }

 private:
  /// Whether a key is there, with that value; null: with any.
  bool is(Found found, const NewValue* expected) const {
    if (!found || expected == nullptr) return found.has_value();
    return *found == RawValue(*expected, value_kind()).bytes();
  }
  template <class Decide>
  bool write_if(Operation operation, Key key, std::string_view value, Decide decide) {
    return core_->write(
        operation, Raw<K>(key).bytes(), value,
        [](void* context, Found found) { return (*static_cast<Decide*>(context))(found); },
        &decide);
  }
  template <class V>
  void find_each(std::span<const Key> keys, std::span<std::optional<V>> out) const {
    for (std::size_t i = 0; i < keys.size(); ++i)
      if (!find(keys[i], out[i].emplace())) out[i].reset();
  }

  pool::IndexHandle handle_;  // keeps the pool open
  const std::unique_ptr<Core> core_;
};

template <class K>
bool Map<K>::write(Key key, NewValue value, Mode mode, const NewValue* expected) {
  check_key(key);
  const RawValue raw(value, value_kind());
  if (mode == Mode::put)
    return core_->write(Operation::put, Raw<K>(key).bytes(), raw.bytes(), nullptr, nullptr);
  return write_if(Operation::put, key, raw.bytes(),
                  [&](Found found) { return mode == Mode::update ? is(found, expected) : !found; });
}

/// Over a plug-in that keeps its keys in no order.
template <class K>
class UnorderedMap final : public Map<K> {
 public:
  explicit UnorderedMap(pool::IndexHandle handle, const TipsOptions& options = {})
      : Map<K>(std::move(handle), options, false), listed_(this->pool().open_indexes(), *this) {}

  void for_each(const PairSink<K>& show) const override;

 private:
  /// Writes that the index does not have yet, since there is no space for them: the bytes of
  /// values, or nothing for keys that were erased.
  using Pending = std::map<K, std::optional<std::string>, std::less<>>;
  struct Read;

  Pending pending() const;

  pool::OpenIndexes::Entry listed_;  // last: the pool calls no index that is not complete
};

/// Over a plug-in that keeps its keys in order.
template <class K>
class OrderedMap final : public Map<K> {
 public:
  using Key = View<K>;

  explicit OrderedMap(pool::IndexHandle handle, const TipsOptions& options = {})
      : Map<K>(std::move(handle), options, true), listed_(this->pool().open_indexes(), *this) {}

  void for_each(const PairSink<K>& show) const final { scan(Key{}, kNoLimit, show); }
  void scan(Key from, std::size_t limit, const PairSink<K>& show) const final;
  void scan_down(Key from, bool strictly, std::size_t limit,
                 const typename WordIndex<K>::Take& take) const final;

 private:
  /// A key and the bytes of its value.
  using Pair = std::pair<K, std::string>;
  struct Read;

  void read_index(Read& read, const K& position) const;
  bool read_batch(PairCopies<K>& batch, K& position, std::size_t limit) const;
  std::optional<Pair> last_in_index(Key bound, bool strictly) const;
  static Key key_at(const Waiting::Cursor& cursor);
  std::optional<Pair> find_last(Key bound, bool strictly) const;

  mutable std::atomic<std::size_t> expected_{32};  // pairs that a scan shows: as many as the last
  pool::OpenIndexes::Entry listed_;  // last: the pool calls no index that is not complete
};

}  // namespace perdix::detail::index::tips
