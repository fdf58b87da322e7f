// What an engine of pairs is for the layers above: an index whose keys have a type and whose values
// are numbers or strings by its kind. The calls with types (typed.h) are compiled once, above this
// interface, and not for each engine.
//
// Every call is one virtual call: of a group of lookups, of a batch of pairs, not of each. What an
// engine cannot do is data (Capabilities in engine_type.h); such a call throws here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include <perdix/types.h>

#include "index/common/copied_pairs.h"
#include "index/common/value_codec.h"
#include "pool/open_index.h"

namespace perdix::detail::pool {
class PoolCore;
}

namespace perdix::detail::index {

/// For scans that end where their caller wants, or at the last key.
inline constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

/// How a write treats a key: `put` in any case, `insert` only if it is absent, `update` only if
/// it is there, `ahead` as insert() does, but without looking first (insert_ahead()).
enum class Mode : std::uint8_t { put, insert, update, ahead };

/// Throws unsupported: an index without order was asked for it.
[[noreturn]] void throw_without_order(const IndexInfo& info);

/// An open index of pairs. Values are of its kind: a call for the other kind of values is a mistake
/// that nothing finds. Thread-safe. Calls throw what those of PointIndex throw, and bad_alloc.
template <Storable K>
class WordIndex : public pool::OpenIndex {
 public:
  using Key = View<K>;

  /// The pool that it lies in, and stays open.
  virtual pool::PoolCore& pool() const = 0;

  /// As the pool's directory has it. Only of an index that is in the directory.
  virtual const IndexInfo& info() const = 0;

  /// Gives a key a value, or returns false. `expected`: the value that is replaced, null if it may
  /// be any. The size of a value that is a string was checked.
  virtual bool write(Key key, NewValue value, Mode mode, const NewValue* expected) = 0;

  /// Removes a key, or returns false. `expected`: its value, null if it may be any.
  virtual bool erase(Key key, const NewValue* expected) = 0;

  /// Adds a key if it is absent. Engines that cannot do so without looking look.
  virtual void insert_ahead(Key key, NewValue value) {
    (void)write(key, value, Mode::insert, nullptr);
  }

  virtual bool contains(Key key) const = 0;

  /// Copy the value of a key, or return false and copy nothing.
  virtual bool find(Key key, std::uint64_t& value) const = 0;
  virtual bool find(Key key, std::string& value) const = 0;

  /// As find() for each of at most kGroup keys (groups.h).
  virtual void find_many(std::span<const Key> keys,
                         std::span<std::optional<std::uint64_t>> out) const = 0;
  virtual void find_many(std::span<const Key> keys,
                         std::span<std::optional<std::string>> out) const = 0;

  virtual std::uint64_t size() const = 0;

  /// Shows copies of all pairs, as PointIndex::for_each() says. The sink is called outside of
  /// locks and guards. What it throws leaves unchanged, other exceptions as perdix::Error.
  virtual void for_each(const PairSink<K>& show) const = 0;

  /// Like for_each(), with the pairs with key >= from, ascending, at most `limit`.
  virtual void scan(Key from, std::size_t limit, const PairSink<K>& show) const;

  /// Takes a pair that lies in the pool, and returns whether it takes more.
  using Take = std::function<bool(Key key, NewValue value)>;

  /// Shows the pair of the greatest key that is not above, or is below, and some next to it further
  /// down: as many as cost little more, at most `limit`, descending, until one is the last that
  /// `take` wants. Shows nothing if there is none. `take` is the library's own and only copies: it
  /// is called in a guard, and all exceptions leave unchanged.
  virtual void scan_down(Key from, bool strictly, std::size_t limit, const Take& take) const;
};

template <Storable K>
void WordIndex<K>::scan(Key, std::size_t, const PairSink<K>&) const {
  throw_without_order(info());
}

template <Storable K>
void WordIndex<K>::scan_down(Key, bool, std::size_t, const Take&) const {
  throw_without_order(info());
}

}  // namespace perdix::detail::index
