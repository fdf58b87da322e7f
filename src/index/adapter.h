// Turns any engine into the interface of bytes, through the calls that its typed class has too, and
// calls a template with the types of two kinds.
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include <perdix/ordered_index.h>

#include "index/engine.h"

namespace perdix::index {

/// Bytes to a typed view and back: strings are bytes already, integers are eight big-endian bytes.
template <Storable T>
struct Bytes;

template <>
struct Bytes<std::string> {
  static std::string_view decode(std::string_view bytes) { return bytes; }
  static std::string_view encode(std::string_view value) { return value; }
  static std::string own(std::string value) { return value; }
};

template <>
struct Bytes<std::uint64_t> {
  static std::uint64_t decode(std::string_view bytes) { return decode_u64(bytes); }
  static std::string own(std::uint64_t value) {
    const auto bytes = encode_u64(value);
    return {bytes.data(), bytes.size()};
  }
  static std::string encode(std::uint64_t value) { return own(value); }
};

template <template <class, class> class Typed, Storable K, Storable V>
class Adapter final : public EngineIndex {
 public:
  Adapter(pool::IndexHandle handle, IndexInfo info, const IndexOptions& options)
      : info_(std::move(info)), index_(open(std::move(handle), options)) {}

  const IndexInfo& info() const override { return info_; }
  void put(std::string_view key, std::string_view value) override {
    index_.put(Bytes<K>::decode(key), Bytes<V>::decode(value));
  }
  bool insert(std::string_view key, std::string_view value) override {
    return index_.insert(Bytes<K>::decode(key), Bytes<V>::decode(value));
  }
  bool update(std::string_view key, std::string_view value) override {
    return index_.update(Bytes<K>::decode(key), Bytes<V>::decode(value));
  }
  bool erase(std::string_view key) override { return index_.erase(Bytes<K>::decode(key)); }
  std::optional<std::string> get(std::string_view key) const override {
    auto value = index_.get(Bytes<K>::decode(key));
    if (!value) return std::nullopt;
    return Bytes<V>::own(std::move(*value));
  }
  bool contains(std::string_view key) const override {
    return index_.contains(Bytes<K>::decode(key));
  }
  bool ordered() const noexcept override { return true; }
  /// `from` of an integer index may be shorter than eight bytes: it stands for the least key that
  /// starts so.
  void scan(std::string_view from, Visitor<std::string, std::string> visit) const override {
    index_.scan(start_of(from), [&](View<K> key, View<V> value) {
      return visit(Bytes<K>::encode(key), Bytes<V>::encode(value));
    });
  }
  std::uint64_t size() const override { return index_.size(); }
  IndexStats stats() const override { return index_.stats(); }
  CheckReport check() const override { return index_.check(); }
  void for_each_block(const std::function<void(pm::Offset)>& visit) const override {
    index_.engine().for_each_block(visit);
  }

 private:
  using Engine = Typed<K, V>;

  class Opened : public OrderedIndex<Engine, K, V> {
   public:
    explicit Opened(std::unique_ptr<Engine> tree) : OrderedIndex<Engine, K, V>(std::move(tree)) {}
    using OrderedIndex<Engine, K, V>::engine;
  };

  /// Engines without options take none.
  static std::unique_ptr<Engine> open(pool::IndexHandle handle, const IndexOptions& options) {
    if constexpr (std::is_constructible_v<Engine, pool::IndexHandle, const IndexOptions&>)
      return std::make_unique<Engine>(std::move(handle), options);
    else
      return std::make_unique<Engine>(std::move(handle));
  }

  static View<K> start_of(std::string_view from) {
    if constexpr (std::is_same_v<K, std::uint64_t>) {
      std::string padded(from);
      if (padded.size() < sizeof(std::uint64_t)) padded.resize(sizeof(std::uint64_t), '\0');
      return decode_u64(padded);
    } else {
      return from;
    }
  }

  IndexInfo info_;
  Opened index_;
};

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

/// The Engine::open of a typed class template.
template <template <class, class> class Typed>
std::unique_ptr<EngineIndex> open_adapter(pool::IndexHandle handle, const IndexInfo& info,
                                          const IndexOptions& options) {
  return with_types(info.key_kind, info.value_kind, [&]<class K, class V>() {
    return std::unique_ptr<EngineIndex>(
        std::make_unique<Adapter<Typed, K, V>>(std::move(handle), info, options));
  });
}

}  // namespace perdix::index
