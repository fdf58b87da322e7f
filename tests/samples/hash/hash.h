// The sample hash index: an engine of pairs without order, as small as one can be. It stays in the
// suites as the example of "Add an engine" in CONTRIBUTING.md. A lock makes it thread-safe.
#pragma once

#include <array>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <perdix/point_index.h>

#include "index/common/bytes.h"
#include "index/common/engine_options.h"
#include "index/common/engine_type.h"
#include "index/common/word_index.h"
#include "pool/index_handle.h"
#include "samples/hash/slots.h"

namespace perdix::samples {

/// What all engines have; nothing comes back in this one.
struct SampleHashOptions {
  bool resume_in_background = true;
};

namespace hash {

inline constexpr std::string_view kEngineName = "sample_hash";

inline constexpr std::array kOptions = {detail::index::resume_in_background<SampleHashOptions>()};
static_assert(detail::index::is_complete(kOptions));

template <class K>
class Table final : public detail::index::WordIndex<K> {
 public:
  using Key = View<K>;

  explicit Table(detail::pool::IndexHandle handle, const SampleHashOptions& = {})
      : handle_(std::move(handle)), slots_(handle_.pool(), handle_.root()) {}

  static void destroy(detail::pool::PoolCore& pool, std::uint64_t& root, Kind) {
    Slots::destroy(pool, root);
  }

  detail::pool::PoolCore& pool() const override { return handle_.pool(); }
  const IndexInfo& info() const override { return handle_.info(); }

  bool write(Key key, detail::index::NewValue value, detail::index::Mode mode,
             const detail::index::NewValue* expected) override;
  bool erase(Key key, const detail::index::NewValue* expected) override;

  bool contains(Key key) const override {
    return look_up(key, [](std::string_view) {});
  }
  bool find(Key key, std::uint64_t& value) const override {
    return look_up(key, [&](std::string_view found) { value = decode_u64(found); });
  }
  bool find(Key key, std::string& value) const override {
    return look_up(key, [&](std::string_view found) { value = found; });
  }
  void find_many(std::span<const Key> keys,
                 std::span<std::optional<std::uint64_t>> out) const override {
    find_each(keys, out);
  }
  void find_many(std::span<const Key> keys,
                 std::span<std::optional<std::string>> out) const override {
    find_each(keys, out);
  }

  /// Copies all pairs first, so that they are shown without the lock.
  void for_each(const detail::index::PairSink<K>& show) const override;

  std::uint64_t size() const override {
    const std::lock_guard guard(lock_);
    return slots_.pairs();
  }
  IndexStats stats() const override;
  CheckReport check() const override {
    const std::lock_guard guard(lock_);
    return slots_.check();
  }
  void for_each_block(const detail::pool::BlockVisitor& visit) const override {
    slots_.for_each_block(visit);
  }

 private:
  /// Values lie in the slots as perdix::Index has them: numbers as eight bytes.
  std::string bytes_of(detail::index::NewValue value) const;

  template <class Use>
  bool look_up(Key key, const Use& use) const {
    const std::lock_guard guard(lock_);
    std::string_view found;
    if (!slots_.find(detail::index::Bytes<K>::encode(key), found)) return false;
    use(found);
    return true;
  }
  template <class V>
  void find_each(std::span<const Key> keys, std::span<std::optional<V>> out) const {
    for (std::size_t i = 0; i < keys.size(); ++i)
      if (!find(keys[i], out[i].emplace())) out[i].reset();
  }

  detail::pool::IndexHandle handle_;  // keeps the pool open
  mutable std::mutex lock_;
  Slots slots_;  // guarded by lock_
};

extern const detail::index::EngineType kEngine;

}  // namespace hash

/// A durable map without order.
template <Storable K, Storable V>
class SampleHash : public PointIndex<K, V> {
 public:
  SampleHash(const Pool& pool, std::string_view name, const SampleHashOptions& options = {});
};

}  // namespace perdix::samples
