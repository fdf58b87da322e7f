// A pool with one map in it, of a shape so small that few keys split segments.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "index/cceh/cceh.h"
#include "index/common/test_pool.h"
#include "index/common/typed.h"

namespace perdix::detail::index::cceh {

template <class K, class V>
using Map = TypedEngine<WordTable<K>, K, V>;

/// Eight buckets in a segment; halves of strings and numbers are rewritten from three bits on.
inline constexpr Shape kSmall{8, 3};

/// Of indexes whose shape has none, so that a test does the same in each run.
inline constexpr std::uint64_t kTestSeed = 7;

template <class K, class V>
class TestMap : public TestPool<TestMap<K, V>> {
 public:
  using TestPool<TestMap>::core;
  static constexpr bool kUnordered = true;

  explicit TestMap(const Shape& shape = kSmall, const CcehOptions& options = {})
      : shape_(shape), options_(options) {
    if (shape_.seed == 0) shape_.seed = kTestSeed;
    open();
  }

  /// How it is opened from now on.
  void set_options(const CcehOptions& options) { options_ = options; }

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

  KeyHash hash_of(View<K> key) { return {util::SeededHash(root().seed)(key)}; }

  Root& root() { return *core().template at<Root>(root_); }
  Reference directory() { return Reference::unpack(root().directory); }
  std::uint64_t& entry(std::uint64_t number) {
    return core().template at<std::uint64_t>(directory().offset)[number];
  }
  std::uint64_t last_entry() { return (std::uint64_t{1} << directory().log) - 1; }
  SegmentHead& head(std::uint64_t number) {
    return *core().template at<SegmentHead>(Entry::unpack(entry(number)).offset());
  }
  Pair* slots(std::uint64_t number) { return reinterpret_cast<Pair*>(&head(number) + 1); }

 private:
  friend class TestPool<TestMap>;

  void open() {
    auto handle = core().open_index("t", kEngineName, kKindOf<K>, kKindOf<V>);
    std::uint64_t& root = handle.root();
    map_.emplace(std::move(handle), shape_, options_);
    root_ = root;
  }
  void close() { map_.reset(); }

  Shape shape_;
  CcehOptions options_;
  std::optional<Map<K, V>> map_;
  pm::Offset root_ = pm::kNull;
};

}  // namespace perdix::detail::index::cceh
