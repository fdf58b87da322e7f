// The parts of a list of numbers in a new pool, without the list around them.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "index/common/path_budget.h"
#include "index/skiplist/buffers.h"
#include "index/skiplist/recovery.h"
#include "index/skiplist/test_list.h"
#include "pool/test_pool.h"
#include "util/test_directory.h"

namespace perdix::detail::index::skiplist {

/// Tests enter an epoch::Guard after it is made: it waits for grace periods when it goes.
class TestParts {
  using Number = std::uint64_t;

 public:
  /// `options`: what the cached path and write buffers may take.
  explicit TestParts(const SkipListOptions& options = {})
      : ways(*core_, open_head(*core_, handle_.root()), path_budget(options)) {
    if (!has_log(*core_, log_of(head()), buffer_budget(options) != 0)) return;
    buffers.emplace(RangeBuffers<Number>::Parts{ways, towers, writer, values, pairs},
                    pm::load(log_of(head())), buffer_budget(options));
    buffers->buffers().start_resumption(false);
  }

  pool::PoolCore& core() { return *core_; }
  Nodes<Number>& nodes() { return ways.nodes(); }
  Node& head() { return nodes().head(); }

  /// Adds a node, whose value is its key.
  Node& add(Number key) {
    Erased erased;
    const PairWrite<Number> write{HashedKey<Number>(key), NewValue(key), Mode::insert, nullptr};
    EXPECT_EQ(writer.write(write, erased), true);
    return *ways.descend({key}).next;
  }

  std::vector<Number> keys(unsigned level = 0) {
    std::vector<Number> found;
    nodes().for_each(level, [&](const Node& node) { found.push_back(node.key); });
    return found;
  }

 private:
  const testing_files::TempDirectory directory_{testing_files::memory_directory()};
  const std::shared_ptr<pool::PoolCore> core_ =
      pool::PoolCore::create(directory_.file("test.pool"), pool::small_options());
  pool::IndexHandle handle_ = core_->open_index("parts", "none", Kind::u64, Kind::u64);

 public:
  const ValueCodec values{*core_, Kind::u64};
  Ways<Number> ways;
  PairCount pairs;
  Towers<Number> towers{ways, values, pairs, kTestSeed};
  NodeWriter<Number> writer{ways, towers, values};
  std::optional<RangeBuffers<Number>> buffers;
};

}  // namespace perdix::detail::index::skiplist
