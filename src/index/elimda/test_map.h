// A pool with one map in it, of a shape so small that few keys fill logs and split segments.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "epoch/guard.h"
#include "index/common/test_pool.h"
#include "index/common/typed.h"
#include "index/elimda/elimda.h"

namespace perdix::detail::index::elimda {

template <class K, class V>
using Map = TypedEngine<WordMap<K>, K, V>;

/// Four logs of four pairs, P-buckets of sixteen pairs, two in a segment.
inline constexpr Shape kSmall{4, 4, 4, 16, 2};

/// Four such logs at first, and about as many for every segment, in powers of two.
inline constexpr Shape kGrowing{8192, 4, 4, 16, 2, 0, true};

/// Of indexes whose shape has none, so that a test does the same in each run.
inline constexpr std::uint64_t kTestSeed = 7;

/// Looks into a map.
class TestAccess {
 public:
  template <class M>
  static auto& pm_table(M& map) {
    return map.store_.table;
  }
  template <class M>
  static auto& backup(M& map) {
    return map.store_.backup;
  }
  template <class M>
  static const LogSet& log_set(M& map) {
    return *map.store_.logs.set();
  }
  template <class M>
  static bool has_logs(M& map) {
    return map.store_.logs.set() != nullptr;
  }
  template <class M, class Key>
  static Where where(M& map, Key key) {
    const epoch::Guard guard;
    return map.store_.find(key, map.store_.words.hash_of(key)).where;
  }
  template <class M>
  static std::uint64_t relocations(M& map) {
    return map.relocator_.relocations();
  }
  template <class M, class Key>
  static KeyHash hash_of(M& map, Key key) {
    return map.store_.words.hash_of(key);
  }
  template <class M>
  static unsigned segments(M& map) {
    return map.store_.dram.segments();
  }
  template <class M>
  static unsigned known_segments(M& map) {
    return map.store_.dram.known_segments();
  }
};

template <class K, class V>
class TestMap : public TestPool<TestMap<K, V>> {
 public:
  using TestPool<TestMap>::core;
  static constexpr bool kUnordered = true;
  static constexpr bool kInsertsAhead = true;

  explicit TestMap(const Shape& shape = kSmall, MediaUnits units = MediaUnits::always)
      : shape_(shape) {
    if (shape_.seed == 0) shape_.seed = kTestSeed;
    options_.resume_in_background = false;
    options_.media_units = units;
    open();
  }

  Map<K, V>& operator*() { return *map_; }
  Map<K, V>* operator->() { return &*map_; }

  void reopen() {
    this->reopen_pool();
    open();
  }
  void reopen_index() {
    close();
    open();
  }
  void reopen_with(MediaUnits units) {
    options_.media_units = units;
    reopen();
  }
  /// Makes an empty index one from before there were seeds.
  void forget_seed() {
    root().magic = Root::kUnseededMagic;
    root().seed = 0;
    reopen_index();
  }

  Root& root() { return *core().template at<Root>(root_); }

 private:
  friend class TestPool<TestMap>;

  void open() {
    auto handle = core().open_index("t", kEngineName, kKindOf<K>, kKindOf<V>);
    std::uint64_t& root = handle.root();
    map_.emplace(std::move(handle), options_, shape_);
    root_ = root;
  }
  void close() { map_.reset(); }

  Shape shape_;
  ElimDaOptions options_;
  std::optional<Map<K, V>> map_;
  pm::Offset root_ = pm::kNull;
};

}  // namespace perdix::detail::index::elimda
