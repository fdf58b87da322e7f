// All tables of the server, by their numbers.
//
// A table that its key has left is *doomed*: it is dropped from the pool once the catalogue says
// durably that the key is gone, so that a crash in between finds both or neither.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "reaper.h"
#include "settings.h"
#include "table.h"

namespace perdix::valkey {

class Tables {
 public:
  Tables(const Pool& pool, const Settings& settings, Reaper& reaper);

  /// A new, empty table of an engine and kinds. Throws invalid_argument for an unknown engine.
  std::shared_ptr<Table> create(std::string engine, Kind key_kind, Kind value_kind);

  /// A table that the pool has had since before the start; null if it has none of that number.
  std::shared_ptr<Table> adopt(std::uint64_t id);

  /// A table that something holds, else null. Thread-safe.
  std::shared_ptr<Table> find(std::uint64_t id) const;

  /// All tables that something holds. Thread-safe.
  std::vector<std::shared_ptr<Table>> all() const;

  /// Dooms a table. Thread-safe: the server also frees values in its background thread.
  void doom(std::shared_ptr<Table> table);

  /// Hands the doomed tables to the reaper; to be called when the catalogue is up to date.
  void drop_doomed();

  /// Hands the tables that were in the pool at the start, and that no key has, to the reaper.
  void drop_orphans();

  /// Closes all indexes, for the end of the server.
  void close();

 private:
  std::shared_ptr<Table> add(std::uint64_t id, IndexInfo info);

  Pool pool_;
  const Settings& settings_;
  Reaper& reaper_;
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, IndexInfo> found_;  // in the pool at the start, and not adopted
  mutable std::mutex mutex_;                  // of what follows
  std::map<std::uint64_t, std::weak_ptr<Table>> tables_;
  std::vector<std::shared_ptr<Table>> doomed_;
};

}  // namespace perdix::valkey
