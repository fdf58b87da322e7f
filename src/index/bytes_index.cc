#include "index/bytes_index.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <perdix/ordered_index.h>

#include "index/common/bytes.h"
#include "index/common/word_index.h"
#include "pool/as_errors.h"
#include "pool/pool_core.h"

namespace perdix::detail::index {
namespace {

/// An index through the calls with types. Those that need order throw if its engine has none.
template <Storable K, Storable V>
class BytesIndex final : public Index {
 public:
  BytesIndex(std::unique_ptr<WordIndex<K>> words, Capabilities can)
      : can_(can), info_(words->info()), index_(std::move(words)) {}

  const IndexInfo& info() const override { return info_; }
  void put(KeyArgument key, ValueArgument value) override {
    index_.put(Bytes<K>::decode(key), Bytes<V>::decode(value));
  }
  bool insert(KeyArgument key, ValueArgument value) override {
    return index_.insert(Bytes<K>::decode(key), Bytes<V>::decode(value));
  }
  void insert_ahead(KeyArgument key, ValueArgument value) override {
    index_.insert_ahead(Bytes<K>::decode(key), Bytes<V>::decode(value));
  }
  bool update(KeyArgument key, ValueArgument value) override {
    return index_.update(Bytes<K>::decode(key), Bytes<V>::decode(value));
  }
  bool erase(KeyArgument key) override { return index_.erase(Bytes<K>::decode(key)); }
  bool compare_exchange(KeyArgument key, std::optional<ValueArgument> expected,
                        std::optional<ValueArgument> desired) override {
    const auto typed = [](const std::optional<ValueArgument>& bytes) {
      return bytes ? std::optional<View<V>>(Bytes<V>::decode(*bytes)) : std::nullopt;
    };
    return index_.compare_exchange(Bytes<K>::decode(key), typed(expected), typed(desired));
  }
  bool update_with(KeyArgument key, const ChangeBytes& change) override {
    const auto typed = [&](std::optional<View<V>> before) {
      if constexpr (std::is_same_v<V, std::string>) {
        return change(before);
      } else {
        std::optional<std::string> bytes;
        if (before) bytes = Bytes<V>::encode(*before);
        const Change<std::string> wanted = change(bytes);
        if (wanted.keeps()) return Change<V>::keep();
        return wanted.value() ? Change<V>::store(Bytes<V>::decode(*wanted.value()))
                              : Change<V>::erase();
      }
    };
    return index_.update_with(Bytes<K>::decode(key), typed);
  }

  std::optional<std::string> get(KeyArgument key) const override {
    auto value = index_.get(Bytes<K>::decode(key));
    if (!value) return std::nullopt;
    return Bytes<V>::own(std::move(*value));
  }
  bool get(KeyArgument key, std::string& value) const override {
    if constexpr (std::is_same_v<V, std::string>) {
      return index_.get(Bytes<K>::decode(key), value);
    } else {
      V number;
      if (!index_.get(Bytes<K>::decode(key), number)) return false;
      const auto bytes = encode_u64(number);
      value.assign(bytes.data(), bytes.size());
      return true;
    }
  }
  bool contains(KeyArgument key) const override { return index_.contains(Bytes<K>::decode(key)); }
  void get_many(std::span<const std::string_view> keys,
                std::span<std::optional<std::string>> out) const override;

  bool ordered() const noexcept override { return can_.ordered; }
  void scan(KeyArgument from, Visitor<std::string, std::string> visit) const override {
    require_order();
    index_.scan(start_of(from), in_bytes(visit));
  }
  std::vector<Pair> scan(KeyArgument from, std::size_t limit) const override {
    require_order();
    return pool::as_errors([&] {
      std::vector<Pair> pairs;
      own(index_.scan(start_of(from), limit), pairs);
      return pairs;
    });
  }
  std::optional<Pair> lower_bound(KeyArgument key) const override {
    return in_order([&](const auto& index) { return index.lower_bound(start_of(key)); });
  }
  std::optional<Pair> floor(KeyArgument key) const override {
    return in_order([&](const auto& index) {
      return is_short(key) ? index.before(start_of(key)) : index.floor(start_of(key));
    });
  }
  std::optional<Pair> after(KeyArgument key) const override {
    return in_order([&](const auto& index) {
      return is_short(key) ? index.lower_bound(start_of(key)) : index.after(start_of(key));
    });
  }
  std::optional<Pair> before(KeyArgument key) const override {
    return in_order([&](const auto& index) { return index.before(start_of(key)); });
  }
  std::optional<Pair> first() const override {
    return in_order([&](const auto& index) { return index.first(); });
  }
  std::optional<Pair> last() const override {
    return in_order([&](const auto& index) { return index.last(); });
  }
  std::size_t read_beyond(KeyArgument key, Direction direction, std::size_t limit,
                          std::vector<Pair>& pairs) const override {
    require_order();
    if constexpr (std::is_same_v<std::pair<K, V>, Pair>) {
      return index_.read_beyond(key, direction, limit, pairs);
    } else {
      return pool::as_errors([&] {
        std::vector<std::pair<K, V>> typed;
        typed.resize(index_.read_beyond(Bytes<K>::decode(key), direction, limit, typed));
        const std::size_t count = typed.size();
        own(std::move(typed), pairs);
        return count;
      });
    }
  }
  std::uint64_t clear() override { return index_.clear(); }
  std::uint64_t erase_range(KeyArgument from) override {
    require_order();
    return index_.erase_range(start_of(from));
  }
  std::uint64_t erase_range(KeyArgument from, KeyArgument to) override {
    require_order();
    return index_.erase_range(start_of(from), start_of(to));
  }

  void for_each(Visitor<std::string, std::string> visit) const override {
    index_.for_each(in_bytes(visit));
  }

  std::uint64_t size() const override { return index_.size(); }
  IndexStats stats() const override { return index_.stats(); }
  CheckReport check() const override { return index_.check(); }

 private:
  /// What its public class has of this index.
  struct Opened final : OrderedIndex<K, V> {
    explicit Opened(std::unique_ptr<WordIndex<K>> index) : OrderedIndex<K, V>(std::move(index)) {}
    using PointIndex<K, V>::insert_ahead;
  };

  void require_order() const {
    if (!can_.ordered) throw_without_order(info());
  }

  static auto in_bytes(const Visitor<std::string, std::string>& visit) {
    return [&visit](View<K> key, View<V> value) {
      return visit(Bytes<K>::encode(key), Bytes<V>::encode(value));
    };
  }

  /// A pair of the ordered index, in bytes.
  template <class Find>
  std::optional<Pair> in_order(const Find& find) const {
    require_order();
    return pool::as_errors([&]() -> std::optional<Pair> {
      auto pair = find(index_);
      if (!pair) return std::nullopt;
      return own(std::move(*pair));
    });
  }

  /// Typed pairs in bytes.
  static Pair own(std::pair<K, V> pair) {
    return {Bytes<K>::own(std::move(pair.first)), Bytes<V>::own(std::move(pair.second))};
  }
  /// To the beginning of `pairs`, which never shrinks.
  static void own(std::vector<std::pair<K, V>> typed, std::vector<Pair>& pairs) {
    if (pairs.size() < typed.size()) pairs.resize(typed.size());
    for (std::size_t i = 0; i < typed.size(); ++i) pairs[i] = own(std::move(typed[i]));
  }

  /// A key that stands for the least integer that begins so, and is below it.
  static bool is_short(std::string_view key) {
    return std::is_same_v<K, std::uint64_t> && key.size() < sizeof(std::uint64_t);
  }

  /// `from` of an integer index may be shorter than eight bytes: it stands for the least key that
  /// starts so.
  static View<K> start_of(std::string_view from) {
    if constexpr (std::is_same_v<K, std::uint64_t>) {
      return pool::as_errors([&] {
        std::string padded(from);
        if (padded.size() < sizeof(std::uint64_t)) padded.resize(sizeof(std::uint64_t), '\0');
        return decode_u64(padded);
      });
    } else {
      return from;
    }
  }

  const Capabilities can_;
  const IndexInfo& info_;  // of what `index_` holds
  Opened index_;
};

template <Storable K, Storable V>
void BytesIndex<K, V>::get_many(std::span<const std::string_view> keys,
                                std::span<std::optional<std::string>> out) const {
  if constexpr (std::is_same_v<K, std::string> && std::is_same_v<V, std::string>) {
    index_.get_many(keys, out);
  } else {
    pool::as_errors([&] {
      std::vector<View<K>> typed_keys;
      typed_keys.reserve(keys.size());
      for (const std::string_view key : keys) typed_keys.push_back(Bytes<K>::decode(key));
      std::vector<std::optional<V>> values(out.size());
      index_.get_many(typed_keys, values);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        out[i].reset();
        if (values[i]) out[i] = Bytes<V>::own(std::move(*values[i]));
      }
    });
  }
}

/// Calls f.template operator()<K, V>() with the types that two kinds stand for.
template <class F>
decltype(auto) with_types(Kind key, Kind value, F&& f) {
  using U64 = std::uint64_t;
  if (key == Kind::u64) {
    return value == Kind::u64 ? f.template operator()<U64, U64>()
                              : f.template operator()<U64, std::string>();
  }
  return value == Kind::u64 ? f.template operator()<std::string, U64>()
                            : f.template operator()<std::string, std::string>();
}

}  // namespace

std::unique_ptr<Index> open_bytes_index(const EngineType& engine, pool::IndexHandle handle,
                                        const IndexOptions& options) {
  const IndexInfo info = handle.info();
  return with_types(info.key_kind, info.value_kind, [&]<class K, class V>() {
    return std::unique_ptr<Index>(std::make_unique<BytesIndex<K, V>>(
        engine.template open_words<K>()(std::move(handle), options), engine.can));
  });
}

}  // namespace perdix::detail::index
