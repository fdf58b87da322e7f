// What is tested: a map of small numbers that lies in memory which survives a crash.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "testing/linearizability/operation.h"
#include "testing/linearizability/sparse_bytes.h"

namespace perdix::testing {

/// Thread-safe, as the index behind it claims to be.
class Map {
 public:
  virtual ~Map() = default;
  virtual std::optional<Value> get(Key key) = 0;
  virtual void put(Key key, Value value) = 0;
  virtual bool insert(Key key, Value value) = 0;
  virtual bool update(Key key, Value value) = 0;
  virtual bool erase(Key key) = 0;
  virtual std::optional<Value> swap(Key key, Value value) = 0;
  virtual std::optional<Value> take(Key key) = 0;

  /// An insert that does not say whether it has done anything.
  virtual void insert_ahead(Key key, Value value) { (void)insert(key, value); }

  virtual bool ordered() const = 0;

  /// Shows the pairs from a key on, or, if they are not ordered, all pairs.
  virtual void scan(Key from, const std::function<bool(Key, Value)>& visit) = 0;

  /// Does what the system's own threads would do, in part; `what` chooses.
  virtual void tend(std::uint64_t /*what*/) {}
};

/// What the threads of a run begin with (schedule_plan.h).
enum class Beginning { few, full, little, contested, contested_full, sparse, edge, many };

/// When the leaves of an index change their structure, in pairs.
struct LeafSizes {
  unsigned full = 64;      ///< an insert into a leaf with this many splits it, or makes it larger
  unsigned most = 64;      ///< what a leaf has at most; more than `full` if leaves grow first
  unsigned joinable = 32;  ///< two neighbours with this many in all, or few less, become one
  unsigned leaves = 0;     ///< that a large beginning may have; 0: there is none

  bool inserts_ahead = false;  ///< half of the inserts are insert_ahead()
};

/// A map and its memory.
class System {
 public:
  virtual ~System() = default;
  virtual Map& map() = 0;

  /// The memory that survives a crash, all of it, at a fixed place while the system lives.
  virtual std::span<std::byte> memory() = 0;

  /// Whether stores survive only once their lines were flushed and fenced.
  virtual bool needs_flushes() const = 0;

  virtual LeafSizes leaf_sizes() const { return {}; }

  /// About how many scheduling points a call has.
  virtual std::uint64_t points_per_call() const { return 12; }

  /// If it is not to be drawn.
  virtual std::optional<Beginning> beginning() const { return std::nullopt; }

  /// A new system that finds this memory after a crash. This one ends first, since both may need
  /// the same addresses. Throws what opening throws.
  virtual std::unique_ptr<System> recover(const SparseBytes& image) = 0;

  /// Whether it may have no space: then calls that need some throw, and have changed nothing.
  virtual bool may_be_full() const { return false; }

  /// Called between filling the map and the operations of the threads of the run with that seed.
  virtual void prepared(std::uint64_t /*seed*/) {}

  /// The problems that the map's own verification finds. No operation is running.
  virtual std::vector<std::string> problems() { return {}; }
};

using MakeSystem = std::function<std::unique_ptr<System>()>;

}  // namespace perdix::testing
