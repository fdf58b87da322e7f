// The calls that all key-value indexes have in common, with or without order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <perdix/change.h>
#include <perdix/pool.h>
#include <perdix/types.h>

namespace perdix {

namespace detail::pool {
class Health;
}

/// A durable map. `K` and `V` are each std::uint64_t or std::string; `Engine` implements it. What
/// the calls cost, and who waits for whom, says the class of the engine.
///
/// Every call is thread-safe, and durably linearizable: it survives a crash once it has returned,
/// its effect survives once any thread could have observed it, and a call in flight at the crash
/// happened entirely or not at all. Calls throw too_large for keys above 64 KiB - 1 or values above
/// 4 GiB - 1, out_of_space when the pool can't grow, and no_memory; such a call changed nothing.
/// Once a sync to disk has failed every call throws io_error, reads included: nothing is shown that
/// might be lost. What the calls were to change that were going on at that moment is undecided, see
/// Pool. In a child of the process that opened the index every call throws forked, and the
/// destructor does nothing.
template <class Engine, Storable K, Storable V>
class PointIndex {
 public:
  using Key = View<K>;
  using Value = View<V>;

  PointIndex(PointIndex&&) noexcept;
  PointIndex& operator=(PointIndex&&) noexcept;

  /// Sets the value of a key, new or not.
  void put(Key key, Value value);

  /// Adds a key; false, and nothing changes, if it is there.
  bool insert(Key key, Value value);

  /// Replaces the value of a key; false, and nothing changes, if it is not there.
  bool update(Key key, Value value);

  /// Removes a key; false if it is not there.
  bool erase(Key key);

  /// Atomically: if the value of `key` is `expected` (none: the key is absent), makes it `desired`
  /// (none: removes the key) and returns true; else returns false and changes nothing. Values are
  /// compared, not versions. Cost: as the write that it does.
  bool compare_exchange(Key key, std::optional<Value> expected, std::optional<Value> desired);

  /// Atomically replaces the value of `key` by what change(value) says: change gets the value, none
  /// if the key is absent, and returns a Change. It holds nothing of this library while it runs, so
  /// it may call anything; it runs again if another thread changed the value meanwhile. Returns
  /// whether the index changed. Throws what `change` throws; then nothing has changed. Cost: a
  /// get() and a compare_exchange() for each time that it runs.
  template <ChangeFunction<V> F>
  bool update_with(Key key, F&& change) {
    for (;;) {
      const std::optional<V> value = get(key);
      const auto before = value ? std::optional<Value>(*value) : std::nullopt;
      const Change<V> wanted = change(before);
      if (wanted.keeps()) return false;
      const auto after = wanted.value() ? std::optional<Value>(*wanted.value()) : std::nullopt;
      if (compare_exchange(key, before, after)) return before || after;
    }
  }

  /// The value of a key.
  std::optional<V> get(Key key) const {
    // Inline, so that no optional is returned: compilers do that through the stack, a byte and a
    // word stored apart and loaded in one, which waits for the stores to complete.
    V value{};
    if (!get(key, value)) return std::nullopt;
    return value;
  }

  /// The same into an object of the caller's, whose memory is used again if it is a string; false,
  /// and `value` is as before, if the key is not there.
  bool get(Key key, V& value) const;

  bool contains(Key key) const;

  /// out[i] = get(keys[i]) for all i, each as by a call of its own. Throws invalid_argument if
  /// `out` is shorter than `keys`. Cost: the lookups of sixteen keys wait for memory together.
  void get_many(std::span<const Key> keys, std::span<std::optional<V>> out) const;

  /// Shows every pair once, in no order, until the visitor returns false. A pair that is present
  /// throughout the call is shown; of what changes meanwhile each key is shown at most once, with a
  /// value that it had at some moment of the call.
  ///
  /// Some pairs are read, at most those of one leaf, then shown from a copy. While the visitor
  /// runs, its thread holds nothing of this library. So it may do what it may do elsewhere: write
  /// to this index, read it, open, close and drop others, throw. It may take any time: neither
  /// writers nor the reclamation of memory wait for it. A view that it is shown is valid until it
  /// returns. Must not destroy this index.
  ///
  /// Cost: strings are copied, a leaf's at once or, of large ones, 16 KiB to 1 MiB at once (a
  /// larger pair alone), into memory that the call uses again; integers need no allocation.
  void for_each(Visitor<K, V> visit) const;

  /// Number of keys: exact when no writer is active.
  std::uint64_t size() const;

  IndexStats stats() const;

  /// Verifies every invariant of the index. Writers must be idle. Cost: reads the whole index.
  CheckReport check() const;

 protected:
  explicit PointIndex(std::unique_ptr<Engine> engine);
  ~PointIndex();

  Engine& engine() const noexcept { return *engine_; }

  /// Returns call(engine), as a call of this index: throws what a call must throw, and Errors only.
  template <class Call>
  auto run(Call call) const;

  /// The same of what calls a visitor, whose exceptions are its caller's: only the engine knows
  /// which ones to translate (scan_by_batches). It also looks at the pool on its way: before it
  /// shows what it has read, since a sync of that may have failed, and after each visit, since in a
  /// child that the visitor forked it must not go on.
  template <class Call>
  void run_visits(Call call) const;

 private:
  /// Ends the engine; in a child of the process that opened it, leaves it alone.
  struct Close {
    void operator()(Engine* engine) const noexcept;
  };

  const detail::pool::Health* health_;  // of the pool, which the engine keeps open
  std::unique_ptr<Engine, Close> engine_;
};

}  // namespace perdix
