// Any key-value index behind one interface of bytes, for programs that choose the engine at run
// time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <perdix/argument.h>
#include <perdix/change.h>
#include <perdix/cursor.h>
#include <perdix/key_range.h>
#include <perdix/pool.h>
#include <perdix/types.h>

namespace perdix {

/// A u64 as the eight bytes in which Index takes and gives it: big-endian, so that bytes sort as
/// numbers do.
std::array<char, 8> encode_u64(std::uint64_t value) noexcept;

/// The number in eight big-endian bytes. Throws invalid_argument for another length.
std::uint64_t decode_u64(std::string_view bytes);

/// An open index of any engine and kinds. Semantics, errors and thread-safety are those of the
/// engine's class; keys or values of kind u64 are eight big-endian bytes (another length throws
/// invalid_argument). Costs one virtual call more than the typed classes.
class Index {
 public:
  /// Opens an index that exists, whatever its engine. Throws not_found, unsupported if it has no
  /// pairs, and invalid_argument for an option that its engine does not have.
  static std::unique_ptr<Index> open(const Pool& pool, std::string_view name,
                                     const IndexOptions& options = {});

  /// Opens an index or creates it. Throws wrong_engine or wrong_kind if it exists otherwise,
  /// invalid_argument for an engine that is not in engines() and for an option that the engine does
  /// not have, unsupported for a plug-in that the pool was opened without.
  static std::unique_ptr<Index> open_or_create(const Pool& pool, const IndexInfo& info,
                                               const IndexOptions& options = {});

  /// Names of all engines of a pool that is opened with these plug-ins: "sptree", "fastfair",
  /// "nbtree", …
  static std::vector<std::string> engines(std::span<const tips::Plugin* const> plugins = {});

  /// Lists the options of an engine, for IndexOptions::named. Any name of a plug-in ("tips:user:…")
  /// is answered, for plug-ins have the options of Tips. Throws invalid_argument for another engine
  /// that is not in engines().
  static std::vector<OptionInfo> options(std::string_view engine);

  /// How calls take a key.
  using KeyArgument = Argument<std::string>;
  /// How calls take a value.
  using ValueArgument = Argument<std::string>;

  virtual ~Index() = default;

  /// Name, engine and kinds of the index.
  virtual const IndexInfo& info() const = 0;
  /// See PointIndex::put().
  virtual void put(KeyArgument key, ValueArgument value) = 0;
  /// See PointIndex::insert().
  virtual bool insert(KeyArgument key, ValueArgument value) = 0;
  /// See PointIndex::update().
  virtual bool update(KeyArgument key, ValueArgument value) = 0;
  /// See PointIndex::erase().
  virtual bool erase(KeyArgument key) = 0;

  /// Adds a key if it is absent, and does not say whether it was: ElimDa's insert_ahead(), which is
  /// cheaper than insert(); insert() with other engines.
  virtual void insert_ahead(KeyArgument key, ValueArgument value) = 0;

  /// See PointIndex::compare_exchange() and update_with().
  virtual bool compare_exchange(KeyArgument key, std::optional<ValueArgument> expected,
                                std::optional<ValueArgument> desired) = 0;
  /// A function for update_with(), which makes a change of the key's value.
  using ChangeBytes = std::function<Change<std::string>(std::optional<std::string_view>)>;
  /// See PointIndex::update_with().
  virtual bool update_with(KeyArgument key, const ChangeBytes& change) = 0;

  /// The value of a key, or none.
  virtual std::optional<std::string> get(KeyArgument key) const = 0;

  /// Copies the value of `key` into `value`, reusing its capacity. Returns false and leaves `value`
  /// unchanged if the key is absent.
  virtual bool get(KeyArgument key, std::string& value) const = 0;

  /// Returns whether the key is there.
  virtual bool contains(KeyArgument key) const = 0;

  /// out[i] = get(keys[i]) for all i. Throws invalid_argument if `out` is shorter than `keys`.
  virtual void get_many(std::span<const std::string_view> keys,
                        std::span<std::optional<std::string>> out) const = 0;

  /// Shows every pair once, in no order: see PointIndex::for_each().
  virtual void for_each(Visitor<std::string, std::string> visit) const = 0;

  /// Returns whether scan() works: false for hash indexes, whose scan throws unsupported.
  virtual bool ordered() const noexcept = 0;

  /// See OrderedIndex::scan(). `from` may be shorter than the eight bytes of a u64: no bytes sort
  /// before every number.
  virtual void scan(KeyArgument from, Visitor<std::string, std::string> visit) const = 0;

  /// A key and its value, as copies.
  using Pair = std::pair<std::string, std::string>;

  /// At most `limit` pairs with key >= from, see OrderedIndex.
  virtual std::vector<Pair> scan(KeyArgument from, std::size_t limit) const = 0;

  /// See OrderedIndex; without order they throw unsupported. A key may be shorter, as of scan().
  virtual std::optional<Pair> lower_bound(KeyArgument key) const = 0;
  /// See OrderedIndex::floor().
  virtual std::optional<Pair> floor(KeyArgument key) const = 0;
  /// See OrderedIndex::after().
  virtual std::optional<Pair> after(KeyArgument key) const = 0;
  /// See OrderedIndex::before().
  virtual std::optional<Pair> before(KeyArgument key) const = 0;
  /// See OrderedIndex::first().
  virtual std::optional<Pair> first() const = 0;
  /// See OrderedIndex::last().
  virtual std::optional<Pair> last() const = 0;

  /// See OrderedIndex::read_beyond(). The key must not be shorter.
  virtual std::size_t read_beyond(KeyArgument key, Direction direction, std::size_t limit,
                                  std::vector<Pair>& pairs) const = 0;

  /// A position in this index.
  using IndexCursor = Cursor<Index, std::string, std::string>;

  /// A cursor that is nowhere yet.
  IndexCursor cursor() const { return IndexCursor(*this); }

  /// A part of this index.
  using Range = KeyRange<Index, std::string, std::string>;

  /// The pairs with from <= key < to. Both may be shorter, as of scan().
  Range range(KeyArgument from, KeyArgument to) const {
    return Range(*this, std::string(from), std::string(to));
  }

  /// The pairs with key >= from.
  Range range(KeyArgument from) const { return Range(*this, std::string(from), std::nullopt); }

  /// The pairs whose keys begin with these bytes, also if keys are numbers.
  Range prefix(KeyArgument bytes) const {
    return Range(*this, std::string(bytes), end_of_prefix(bytes));
  }

  /// Removes all keys, see PointIndex::clear(). Returns how many.
  virtual std::uint64_t clear() = 0;

  /// Removes the keys with key >= from, see OrderedIndex. Returns how many.
  virtual std::uint64_t erase_range(KeyArgument from) = 0;

  /// Removes the keys with from <= key < to, see OrderedIndex. Returns how many.
  virtual std::uint64_t erase_range(KeyArgument from, KeyArgument to) = 0;

  /// See PointIndex::size().
  virtual std::uint64_t size() const = 0;
  /// See PointIndex::stats().
  virtual IndexStats stats() const = 0;
  /// See PointIndex::check().
  virtual CheckReport check() const = 0;
};

}  // namespace perdix
