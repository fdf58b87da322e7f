// Puts for which there is no reserve (reserve.h): they go into the index within their call, so a
// put that returns has its space.
//
// The record comes first, as for every write: so what a lookup or a scan sees is durable. If there
// is no space for the write, a second record cancels it. After a crash between the two records
// recovery applies the write; that is allowed, since its call has not returned and no thread has
// seen it. The call returns when the write is durable in the index, so no later replay needs space
// for it.
#pragma once

#include "index/tips/attempt.h"
#include "index/tips/cache.h"
#include "index/tips/changes.h"
#include "index/tips/inspection.h"
#include "index/tips/operation_log.h"
#include "index/tips/replayer.h"

namespace perdix::detail::index::tips {

/// Its calls are made in Upkeep::alone().
class WriteThrough {
 public:
  WriteThrough(OperationLogs& logs, const Inspection& inspection, Changes& changes, Cache& cache)
      : logs_(logs), inspection_(inspection), changes_(changes), cache_(cache) {}

  /// Replays all earlier writes, and makes this one in the index, durably. Returns no_space if the
  /// pool has none for it or for an earlier write.
  Attempt write(Entry& entry, const Condition& condition, Replayer& replayer);

 private:
  Attempt log_and_apply(Entry& entry, const Condition& condition);
  Attempt apply_and_show(Cache::Bucket& bucket, Entry& entry, Entry* old);

  OperationLogs& logs_;
  const Inspection& inspection_;
  Changes& changes_;
  Cache& cache_;
};

}  // namespace perdix::detail::index::tips
