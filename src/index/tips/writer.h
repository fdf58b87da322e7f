// Writes. A write looks the key up, appends its record to a ring (operation_log.h), and puts its
// entry into the cache, all with the lock of the key's bucket. If it gets no room, the logs are
// replayed; if it gets no space for its replay, it is written through (write_through.h).
//
// Invariants:
//   1. No thread sees a write before its record is durable.
//   2. Records and entries of a key are in the same order.
//   3. A put that waits in a log has its space in the reserve.
//
// Thread-safe.
#pragma once

#include <string_view>

#include "index/tips/attempt.h"
#include "index/tips/cache.h"
#include "index/tips/changes.h"
#include "index/tips/framework.h"
#include "index/tips/inspection.h"
#include "index/tips/upkeep.h"
#include "index/tips/write_through.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {

class Writer {
 public:
  Writer(pool::PoolCore& pool, Framework& framework, const Inspection& inspection, Changes& changes,
         Cache& cache, Upkeep& upkeep)
      : pool_(pool),
        framework_(framework),
        inspection_(inspection),
        changes_(changes),
        cache_(cache),
        upkeep_(upkeep),
        through_(framework.logs, inspection, changes, cache) {}

  /// Sets or removes the value of a key if the condition allows it. Returns whether it did. Throws
  /// out_of_space, bad_alloc, corrupt: then nothing has happened.
  bool write(Operation operation, std::string_view key, std::string_view value,
             const Condition& condition);

 private:
  Attempt try_to_log(Entry& entry, const Condition& condition);
  Attempt write_through(Entry& entry, const Condition& condition);
  Attempt log(Entry& entry, const Condition& condition);
  void show_and_queue(Cache::Bucket& bucket, OperationLogs::Ring& ring, Entry& entry, Entry* old);

  pool::PoolCore& pool_;
  Framework& framework_;
  const Inspection& inspection_;
  const Changes& changes_;
  Cache& cache_;
  Upkeep& upkeep_;
  WriteThrough through_;
};

}  // namespace perdix::detail::index::tips
