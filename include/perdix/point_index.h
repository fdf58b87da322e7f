// The calls that all key-value indexes have in common, with or without order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <perdix/argument.h>
#include <perdix/change.h>
#include <perdix/pool.h>
#include <perdix/types.h>

namespace perdix {

namespace detail::pool {
class Health;
}

namespace detail::index {
template <Storable K>
class WordIndex;
}  // namespace detail::index

/// A durable map. `K` and `V` are each std::uint64_t or std::string. The classes of the engines are
/// such maps: each says what the calls cost, and which calls wait for each other.
///
/// Every call is thread-safe and durably linearizable: it survives a crash once it has returned,
/// its effect survives once any thread could have observed it, and a call in flight at the crash
/// happened entirely or not at all. Calls throw too_large for keys above 64 KiB - 1 or values above
/// 4 GiB - 1, out_of_space when the pool can't grow, and no_memory; such a call changed nothing.
/// Once a sync to disk has failed every call throws io_error, reads included: nothing is shown that
/// might be lost. The changes of calls in progress at that moment are undecided, see Pool. In a
/// child of the process that opened the index every call throws forked, and the destructor does
/// nothing.
template <Storable K, Storable V>
class PointIndex {
 public:
  /// How calls show a key: std::uint64_t or std::string_view.
  using Key = View<K>;
  /// How calls show a value: std::uint64_t or std::string_view.
  using Value = View<V>;
  /// How calls take a key.
  using KeyArgument = Argument<K>;
  /// How calls take a value.
  using ValueArgument = Argument<V>;

  /// Takes over the open index; the other object can then only be assigned to or destroyed.
  PointIndex(PointIndex&&) noexcept;
  /// Closes the index that this object had, then takes over the other one as the constructor does.
  PointIndex& operator=(PointIndex&&) noexcept;

  /// Sets the value of a key, new or not.
  void put(KeyArgument key, ValueArgument value);

  /// Adds a key. Returns false and changes nothing if the key is there.
  bool insert(KeyArgument key, ValueArgument value);

  /// Replaces the value of a key. Returns false and changes nothing if the key is absent.
  bool update(KeyArgument key, ValueArgument value);

  /// Removes a key. Returns false if the key is absent.
  bool erase(KeyArgument key);

  /// Atomically compares and replaces. If the value of `key` is `expected` (none: the key is
  /// absent), makes it `desired` (none: removes the key) and returns true; else returns false and
  /// changes nothing. Values are compared, not versions. Cost: that of the write that it does.
  bool compare_exchange(KeyArgument key, std::optional<ValueArgument> expected,
                        std::optional<ValueArgument> desired);

  /// Atomically replaces the value of `key` by the result of change(value). `change` gets the
  /// value, or none if the key is absent, and returns a Change. Returns whether the index changed.
  /// Throws what `change` throws; then nothing has changed.
  ///
  /// `change` runs without locks or guards of this library, so it may read and write any index,
  /// wait for other threads and take its time. It can't change `key` of this index: put(),
  /// insert(), update(), erase(), compare_exchange(), update_with() and insert_ahead() of that key
  /// throw invalid_argument on its thread until it has returned, which must be on that thread.
  ///
  /// `change` runs again if another thread has changed the value before the replacement. So of the
  /// calls for a key one always succeeds, but there is no bound for each: a `change` that takes
  /// longer than the others' writes of the key are apart may run without end. Do slow work before
  /// the call. A `change` that counts its runs may give up: return Change::keep(), or throw.
  ///
  /// Cost: a get() and a compare_exchange() for each run.
  template <ChangeFunction<V> F>
  bool update_with(KeyArgument key, F&& change) {
    const Key view = key;
    for (;;) {
      const std::optional<V> value = get(key);
      const auto before = value ? std::optional<Value>(*value) : std::nullopt;
      const Change<V> wanted = run_change_function(view, before, change);
      if (wanted.keeps()) return false;
      const auto after = wanted.value() ? std::optional<Value>(*wanted.value()) : std::nullopt;
      if (compare_exchange(key, before, after)) return before || after;
    }
  }

  /// The value of a key, or none.
  std::optional<V> get(KeyArgument key) const {
    // Inline, so that no optional is returned: compilers do that through the stack, a byte and a
    // word stored apart and loaded in one, which waits for the stores to complete.
    V value{};
    if (!get(key, value)) return std::nullopt;
    return value;
  }

  /// Copies the value of `key` into `value`, reusing its capacity. Returns false and leaves `value`
  /// unchanged if the key is absent.
  bool get(KeyArgument key, V& value) const;

  /// Returns whether the key is there.
  bool contains(KeyArgument key) const;

  /// out[i] = get(keys[i]) for all i; each lookup is a call by itself. Throws invalid_argument if
  /// `out` is shorter than `keys`. Cost: the lookups of sixteen keys wait for memory together.
  void get_many(std::span<const Key> keys, std::span<std::optional<V>> out) const;

  /// Shows every pair once, in no order, until the visitor returns false. A pair that is present
  /// throughout the call is shown. A key that changes during the call is shown at most once, with a
  /// value that it had at some instant of the call.
  ///
  /// The call reads some pairs, those of a few leaves, and then shows them from a copy. While
  /// the visitor runs, its thread holds nothing of this library. So the visitor may do what it may
  /// do elsewhere: write to this index, read it, open, close and drop others, throw. It may take
  /// any time: neither writers nor the reclamation of memory wait for it. A view that it is shown
  /// is valid until it returns. It must not destroy this index.
  ///
  /// Cost: strings are copied, those of some pairs together or, if they are large, 16 KiB to 1 MiB
  /// at a time (a larger pair alone), into memory that the call reuses; integers need no
  /// allocation.
  void for_each(Visitor<K, V> visit) const;

  /// Removes all keys and returns how many. Each is erased by itself: other threads see some gone
  /// before others, a crash may leave some, and keys inserted during the call may stay. Cost: that
  /// of for_each() and of an erase() for each key; Pool::drop() is cheaper.
  std::uint64_t clear();

  /// Number of keys: exact when no writer is active.
  std::uint64_t size() const;

  /// Sizes of the index, at the moment of the call. What it costs, the class of the engine says.
  IndexStats stats() const;

  /// Verifies every invariant of the index. Writers must be idle. Cost: reads the whole index.
  CheckReport check() const;

 protected:
  /// For the classes of the engines.
  explicit PointIndex(std::unique_ptr<detail::index::WordIndex<K>> words);
  ~PointIndex();

  /// See ElimDa::insert_ahead(); insert() with other engines.
  void insert_ahead(KeyArgument key, ValueArgument value);

  /// Returns call(words), as a call of this index: throws what a call must throw, and Errors only.
  template <class Call>
  auto run(Call call) const;

  /// Like run(), for a call that runs the user's visitor. The visitor's exceptions pass through
  /// unchanged; the engine translates its own. It also looks at the pool on its way: before it
  /// shows what it has read, since a sync of that may have failed, and after that, since in a child
  /// that the visitor forked it must not go on.
  template <class Call>
  void run_visits(Call call) const;

 private:
  template <class F>
  Change<V> run_change_function(const Key& key, const std::optional<Value>& before, F& change) {
    const detail::index::RunningChange running(words_.get(), detail::index::key_bytes(key));
    return change(before);
  }

  /// Like run(), for a call that changes a key. Throws invalid_argument in a function that
  /// update_with() calls for that key.
  template <class Call>
  auto run_write(Key key, Call call);

  /// Destroys the engine; in a child of the process that opened it, leaves it alone.
  struct Close {
    void operator()(detail::index::WordIndex<K>* words) const noexcept;
  };

  const detail::pool::Health* health_;  // of the pool, which the engine keeps open
  std::unique_ptr<detail::index::WordIndex<K>, Close> words_;
};

}  // namespace perdix
