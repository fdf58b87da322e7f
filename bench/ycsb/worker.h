// The measured loop, compiled once for each system and kind of record.
//
// A system is a class template `Map<K, V>` (K, V: std::uint64_t or std::string) that satisfies
// BenchMap. Its client() gives a thread what the thread keeps between operations (BenchClient). The
// concepts CanUpdate, CanScan, CanSeek and CanInsertAhead, and calls_of(), find the optional calls.
// Three more calls are optional:
//
//   Client::get_many(std::span<const View<K>>, Sink&)   returns how many of the keys are present
//   Client::settle()   waits for background threads whose progress would change what an operation
//                      does
//   Map::resume()      waits until everything that the map keeps in DRAM is back after opening
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <perdix/error.h>

#include "util/random.h"
#include "ycsb/keys.h"
#include "ycsb/store.h"

namespace perdix::bench {

/// Takes what systems read, so that the compiler cannot remove the reads. A number and its eight
/// big-endian bytes add the same to the sum.
class Sink {
 public:
  void take(std::uint64_t number) noexcept { sum_ += __builtin_bswap64(number) + sizeof number; }

  void take(std::string_view value) noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, value.data(), std::min(value.size(), sizeof word));
    sum_ += word + value.size();
  }

  std::uint64_t sum() const noexcept { return sum_; }

 private:
  std::uint64_t sum_ = 0;
};

/// What a thread holds of a map during a phase. A system that cannot tell whether a key is present
/// answers true.
template <class T, class K, class V>
concept BenchClient = std::move_constructible<T> &&
    requires(T& client, View<K> key, View<V> value, Sink& sink) {
  // Shows the value to the sink. Returns false if the key is absent.
  { client.get(key, sink) } -> std::same_as<bool>;
  // Returns false if the key is present already.
  { client.insert(key, value) } -> std::same_as<bool>;
  // Returns false if the key is absent.
  { client.erase(key) } -> std::same_as<bool>;
};

/// A map that the benchmark can run. The constructor opens or creates it, the destructor closes it.
template <class T, class K, class V>
concept BenchMap = std::constructible_from<T, const Setup&> && requires(T& map, const T& same) {
  { map.client() } -> BenchClient<K, V>;
  { same.footprint() } -> std::same_as<OwnFootprint>;
};

/// Has an update, which returns false if the key is absent.
template <class T, class K, class V>
concept CanUpdate = requires(T& client, View<K> key, View<V> value) {
  { client.update(key, value) } -> std::convertible_to<bool>;
};

/// Has a scan, which shows up to a number of pairs from a key on and returns how many it has shown.
template <class T, class K>
concept CanScan = requires(T& client, View<K> from, Sink& sink) {
  { client.scan(from, std::size_t{1}, sink) } -> std::convertible_to<std::size_t>;
};

/// Finds the first pair from a key on by a cursor. Without it, a scan for one pair does that.
template <class T, class K>
concept CanSeek = requires(T& client, View<K> from, Sink& sink) {
  { client.seek(from, sink) } -> std::same_as<bool>;
};

/// Has an insert that does not tell whether the key was absent.
template <class T, class K, class V>
concept CanInsertAhead = requires(T& client, View<K> key, View<V> value) {
  client.insert_ahead(key, value);
};

/// Executes operations on a client. Latencies are sampled: on average one operation in
/// `sample_every` is timed, and the others run without reading the clock. The gap between timed
/// operations is random, so it cannot fall into step with anything periodic in the index, such as
/// node splits.
template <class Client, Storable K, Storable V>
requires BenchClient<Client, K, V>
class Worker {
 public:
  Worker(Client client, const Dataset& data, const Share& share)
      : client_(std::move(client)),
        keys_(data),
        values_(data),
        share_(share),
        random_(share.seed) {}

  ShareResult run() {
    const std::span<const Op> ops = share_.ops;
    result_.begin = Clock::now();
    std::size_t i = 0;
    while (i < ops.size() && !stopped()) {
      const std::size_t end = std::min(ops.size(), i + gap());
      while (i < end) i += step(ops.subspan(i), end - i);
      if (i < ops.size()) i += timed_step(ops.subspan(i));
      if (share_.progress != nullptr) share_.progress->store(i, std::memory_order_relaxed);
    }
    result_.end = Clock::now();
    result_.done = i;
    result_.checksum = sink_.sum();
    return std::move(result_);
  }

 private:
  bool stopped() const {
    return share_.stop != nullptr && share_.stop->load(std::memory_order_relaxed);
  }

  // Between 0 and 2 * (sample_every - 1): together with the timed one, sample_every on average.
  std::size_t gap() { return random_.below(2 * std::uint64_t{share_.sample_every} - 1); }

  /// A batch counts as one operation here.
  std::size_t timed_step(std::span<const Op> ops) {
    const Clock::time_point begin = Clock::now();
    const std::size_t done = step(ops, 1);
    result_.latency.record(static_cast<std::uint64_t>((Clock::now() - begin).count()));
    return done;
  }

  /// Executes up to `most` operations of the first one's kind, or a whole batch. Returns how many
  /// operations it has executed.
  std::size_t step(std::span<const Op> ops, std::size_t most) {
    switch (ops[0].op()) {
      case OpKind::get: return each<OpKind::get>(ops, most);
      case OpKind::absent: return each<OpKind::absent>(ops, most);
      case OpKind::insert: return each<OpKind::insert>(ops, most);
      case OpKind::update: return each<OpKind::update>(ops, most);
      case OpKind::rmw: return each<OpKind::rmw>(ops, most);
      case OpKind::scan: return each<OpKind::scan>(ops, most);
      case OpKind::erase: return each<OpKind::erase>(ops, most);
      case OpKind::insert_ahead: return each<OpKind::insert_ahead>(ops, most);
      case OpKind::batched_get: break;
    }
    const std::size_t done = get_batch(ops);
    settle();
    return done;
  }

  // Each kind has its own loop, so that few instructions separate two calls of a system. A
  // processor then begins the next lookup while the current one waits for memory, as in a program
  // that looks up many keys.
  template <OpKind kKind>
  std::size_t each(std::span<const Op> ops, std::size_t most) {
    std::size_t wrong = 0;
    std::size_t done = 0;
    do {
      {
        const MeteredOperation metered(share_.meter, kKind);
        wrong += as_expected<kKind>(ops[done]) ? 0 : 1;
      }
      settle();
      ++done;
    } while (done < most && ops[done].op() == kKind);
    result_.wrong += wrong;
    return done;
  }

  std::size_t get_batch(std::span<const Op> ops) {
    const MeteredOperation metered(share_.meter, OpKind::batched_get);
    const auto is_other = [](const Op& op) { return op.op() != OpKind::batched_get; };
    ops = ops.first(std::min(ops.size(), kBatch));
    ops = ops.first(static_cast<std::size_t>(std::ranges::find_if(ops, is_other) - ops.begin()));
    if constexpr (requires(std::span<const View<K>> keys) { client_.get_many(keys, sink_); }) {
      for (std::size_t i = 0; i < ops.size(); ++i) batch_[i] = keys_.present(ops[i].number);
      std::array<View<K>, kBatch> views;
      std::copy(batch_.begin(), batch_.end(), views.begin());
      const std::span<const View<K>> keys(views.data(), ops.size());
      result_.wrong += ops.size() - client_.get_many(keys, sink_);
    } else {
      for (const Op& op : ops) result_.wrong += !client_.get(keys_.present(op.number), sink_);
    }
    return ops.size();
  }

  // A metered run must count the same each time, so it must not depend on when a background thread
  // is scheduled.
  void settle() {
    if constexpr (requires { client_.settle(); }) {
      if (detail::pm::kInstrumented && share_.meter != nullptr) client_.settle();
    }
  }

  template <OpKind kKind>
  bool as_expected(const Op& op) {
    const std::uint64_t number = op.number;
    switch (kKind) {
      case OpKind::get:
      case OpKind::batched_get: return client_.get(keys_.present(number), sink_);
      case OpKind::absent: return !client_.get(keys_.absent(number), sink_);
      case OpKind::insert: return client_.insert(keys_.present(number), values_.of(number, 0));
      case OpKind::update: return update(keys_.present(number), number);
      case OpKind::rmw: {
        const View<K> key = keys_.present(number);
        return client_.get(key, sink_) && update(key, number);
      }
      case OpKind::scan: return scan(keys_.present(number), op.length);
      case OpKind::insert_ahead: return insert_ahead(keys_.present(number), values_.of(number, 0));
      case OpKind::erase: return client_.erase(keys_.present(number));
    }
    return false;
  }

  // The driver refuses workloads with calls that a system lacks before it runs any (why_not()).
  bool update(View<K> key, std::uint64_t number) {
    if constexpr (CanUpdate<Client, K, V>)
      return client_.update(key, values_.of(number, ++version_));
    return false;
  }

  // A scan of one pair uses a cursor if the system has cursors.
  bool scan(View<K> from, std::size_t length) {
    if constexpr (CanSeek<Client, K>) {
      if (length == 1) return client_.seek(from, sink_);
    }
    if constexpr (CanScan<Client, K>) return client_.scan(from, length, sink_) > 0;
    return false;
  }

  // A system without such a call inserts, and its answer is checked.
  bool insert_ahead(View<K> key, View<V> value) {
    if constexpr (CanInsertAhead<Client, K, V>) {
      client_.insert_ahead(key, value);
      return true;
    } else {
      return client_.insert(key, value);
    }
  }

  Client client_;
  KeySource<K> keys_;
  ValueSource<V> values_;
  const Share& share_;
  detail::util::Random random_;
  Sink sink_;
  std::array<K, kBatch> batch_{};
  std::uint64_t version_ = 0;
  ShareResult result_;
};

/// A system's map as a Store.
template <template <class, class> class Map, Storable K, Storable V>
requires BenchMap<Map<K, V>, K, V>
class MapStore final : public Store {
 public:
  explicit MapStore(const Setup& setup) : data_(setup.data), map_(setup) {}

  ShareResult run(const Share& share, const std::function<void()>& ready) override {
    Worker<decltype(map_.client()), K, V> worker(map_.client(), data_, share);
    ready();
    return worker.run();
  }

  OwnFootprint footprint() const override { return map_.footprint(); }
  void resume() override {
    if constexpr (requires { map_.resume(); }) map_.resume();
  }

 private:
  Dataset data_;
  Map<K, V> map_;
};

/// Which calls a system has.
template <template <class, class> class Map>
constexpr Calls calls_of() {
  using Number = std::uint64_t;
  using Client = decltype(std::declval<Map<Number, Number>&>().client());
  return {.update = CanUpdate<Client, Number, Number>,
          .scan = CanScan<Client, Number>,
          .insert_ahead = CanInsertAhead<Client, Number, Number>};
}

/// Opens a system for the kinds of record in the setup. Throws unsupported for strings in a build
/// that has none of them.
template <template <class, class> class Map>
std::unique_ptr<Store> open_store(const Setup& setup) {
  const Shape& shape = setup.data.shape;
  if (shape.key_kind == Kind::u64 && shape.value_kind == Kind::u64)
    return std::make_unique<MapStore<Map, std::uint64_t, std::uint64_t>>(setup);
#if PERDIX_BENCH_STRINGS
  if (shape.key_kind == Kind::u64)
    return std::make_unique<MapStore<Map, std::uint64_t, std::string>>(setup);
  return std::make_unique<MapStore<Map, std::string, std::string>>(setup);
#else
  throw Error(Errc::unsupported, "this program measures integers only");
#endif
}

}  // namespace perdix::bench
