// The adapter between AnyIndex and the class of an engine: all that is compiled for each engine and
// combination of kinds, in engines.cc.
#pragma once

#include <stdexcept>
#include <type_traits>

#include "support/any_index.h"

namespace perdix::test {

/// An index with scan(); hash indexes have none, and the cases for scans skip them.
template <class I>
concept OrderedIndex = requires(const I& index, typename I::Key from) {
  index.scan(from, std::size_t{1});
};

/// `View` is View<K> or View<V> of the index.
template <class View>
View typed(DatumView datum) {
  if constexpr (std::is_same_v<View, std::uint64_t>)
    return datum.number();
  else
    return datum.bytes();
}

template <class Index>
class TypedIndex final : public ErasedIndex {
 public:
  using Key = typename Index::Key;
  using Value = typename Index::Value;
  using Owned = std::conditional_t<std::is_same_v<Value, std::uint64_t>, Value, std::string>;

  template <class... Options>
  TypedIndex(const Pool& pool, std::string_view name, const Options&... options)
      : index_(pool, name, options...) {}
  explicit TypedIndex(Index&& index) : index_(std::move(index)) {}

  void put(DatumView key, DatumView value) override {
    index_.put(typed<Key>(key), typed<Value>(value));
  }

  bool insert(DatumView key, DatumView value) override {
    return index_.insert(typed<Key>(key), typed<Value>(value));
  }

  bool update(DatumView key, DatumView value) override {
    return index_.update(typed<Key>(key), typed<Value>(value));
  }

  bool erase(DatumView key) override { return index_.erase(typed<Key>(key)); }

  void insert_ahead(DatumView key, DatumView value) override {
    if constexpr (requires(Key k, Value v) { index_.insert_ahead(k, v); })
      index_.insert_ahead(typed<Key>(key), typed<Value>(value));
    else
      (void)index_.insert(typed<Key>(key), typed<Value>(value));
  }

  bool compare_exchange(DatumView key, std::optional<DatumView> expected,
                        std::optional<DatumView> desired) override {
    const auto value = [](std::optional<DatumView> datum) {
      return datum ? std::optional<Value>(typed<Value>(*datum)) : std::nullopt;
    };
    return index_.compare_exchange(typed<Key>(key), value(expected), value(desired));
  }

  bool update_with(DatumView key, const ChangeValue& change) override {
    return index_.update_with(typed<Key>(key), [&](std::optional<Value> before) {
      const std::optional<Datum> after =
          change(before ? std::optional<DatumView>(*before) : std::nullopt);
      if (!after) return before ? Change<Owned>::erase() : Change<Owned>::keep();
      return Change<Owned>::store(Owned(typed<Value>(*after)));
    });
  }

  std::optional<Datum> get(DatumView key) const override {
    auto value = index_.get(typed<Key>(key));
    return value ? std::optional<Datum>(std::move(*value)) : std::nullopt;
  }

  bool get(DatumView key, Datum& value) const override {
    Owned owned(typed<Value>(value));
    const bool found = index_.get(typed<Key>(key), owned);
    value = Datum(std::move(owned));
    return found;
  }

  bool contains(DatumView key) const override { return index_.contains(typed<Key>(key)); }

  std::vector<std::optional<Datum>> get_many(const std::vector<Datum>& keys) const override {
    std::vector<Key> typed_keys;
    for (const Datum& key : keys) typed_keys.push_back(typed<Key>(key));
    std::vector<std::optional<Owned>> values(keys.size());
    index_.get_many(typed_keys, values);
    return {std::make_move_iterator(values.begin()), std::make_move_iterator(values.end())};
  }

  void for_each(const ShowPair& visit) const override {
    index_.for_each([&](Key key, Value value) { return visit(key, value); });
  }

  void scan(DatumView from, const ShowPair& visit) const override {
    if constexpr (OrderedIndex<Index>)
      index_.scan(typed<Key>(from), [&](Key key, Value value) { return visit(key, value); });
    else
      throw std::logic_error("scan() of an index without order");
  }

  Rows scan(DatumView from, std::size_t limit) const override {
    Rows rows;
    if constexpr (OrderedIndex<Index>) {
      for (auto& [key, value] : index_.scan(typed<Key>(from), limit)) {
        rows.emplace_back(std::move(key), std::move(value));
      }
    } else {
      throw std::logic_error("scan() of an index without order");
    }
    return rows;
  }

  std::optional<Row> lower_bound(DatumView key) const override {
    return row([&](auto& index) { return index.lower_bound(typed<Key>(key)); });
  }
  std::optional<Row> floor(DatumView key) const override {
    return row([&](auto& index) { return index.floor(typed<Key>(key)); });
  }
  std::optional<Row> after(DatumView key) const override {
    return row([&](auto& index) { return index.after(typed<Key>(key)); });
  }
  std::optional<Row> before(DatumView key) const override {
    return row([&](auto& index) { return index.before(typed<Key>(key)); });
  }
  std::optional<Row> first() const override {
    return row([](auto& index) { return index.first(); });
  }
  std::optional<Row> last() const override {
    return row([](auto& index) { return index.last(); });
  }

  void walk_range(DatumView from, std::optional<DatumView> to, bool backwards,
                  const ShowPair& visit) const override {
    if constexpr (OrderedIndex<Index>) {
      walk(to ? index_.range(typed<Key>(from), typed<Key>(*to)) : index_.range(typed<Key>(from)),
           backwards, visit);
    } else {
      throw std::logic_error("a range of an index without order");
    }
  }

  void walk_prefix(DatumView bytes, bool backwards, const ShowPair& visit) const override {
    if constexpr (requires { index_.prefix(bytes.bytes()); }) {
      walk(index_.prefix(bytes.bytes()), backwards, visit);
    } else {
      throw std::logic_error("prefix() of integers, or without order");
    }
  }

  std::uint64_t erase_range(DatumView from, std::optional<DatumView> to) override {
    if constexpr (OrderedIndex<Index>)
      return to ? index_.erase_range(typed<Key>(from), typed<Key>(*to))
                : index_.erase_range(typed<Key>(from));
    else
      throw std::logic_error("erase_range() of an index without order");
  }

  std::uint64_t clear() override { return index_.clear(); }

  std::uint64_t size() const override { return index_.size(); }
  IndexStats stats() const override { return index_.stats(); }
  CheckReport check() const override { return index_.check(); }
  Kind key_kind() const override { return kind_of<Key>; }
  Kind value_kind() const override { return kind_of<Value>; }
  bool ordered() const override { return OrderedIndex<Index>; }

  std::unique_ptr<ErasedIndex> move_out() override {
    return std::make_unique<TypedIndex>(std::move(index_));
  }

  void assign(ErasedIndex& other) override {
    index_ = std::move(dynamic_cast<TypedIndex&>(other).index_);
  }

 private:
  template <class Find>
  std::optional<Row> row(const Find& find) const {
    if constexpr (OrderedIndex<Index>) {
      auto pair = find(index_);
      if (!pair) return std::nullopt;
      return Row(std::move(pair->first), std::move(pair->second));
    } else {
      throw std::logic_error("a neighbour in an index without order");
    }
  }

  template <class Range>
  static void walk(const Range& range, bool backwards, const ShowPair& visit) {
    if (backwards) return walk(range.reversed(), false, visit);
    for (const auto& [key, value] : range)
      if (!visit(key, value)) return;
  }

  template <class View>
  static constexpr Kind kind_of = std::is_same_v<View, std::uint64_t> ? Kind::u64 : Kind::bytes;

  Index index_;
};

}  // namespace perdix::test
