// Marks streams that commands for consumer groups change without a keyspace event: XREADGROUP,
// XACK, XCLAIM, XAUTOCLAIM and their like. For the mode `keyspace`.
//
// A filter sees each command before it is executed and marks its streams; the commit comes after.
// Only in a transaction a commit may come between, so the streams that a client has queued are
// marked again by its EXEC. Used by the server's main thread only.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "api.h"
#include "write_through.h"

namespace perdix::valkey {

class StreamWatch {
 public:
  StreamWatch(const Catalogue& catalogue, WriteThrough& write_through)
      : catalogue_(catalogue), write_through_(write_through) {}

  /// Installs the filter.
  void install(Context* context);

  /// Looks at a command that is about to be executed or queued.
  void look_at(RedisModuleCommandFilterCtx* command);

 private:
  // Where the server does not say which client sends a command, as Redis 7.0.
  static constexpr unsigned long long kAnyClient = 0;

  void mark(unsigned long long client, const std::string& name);
  void mark_queued(unsigned long long client);

  const Catalogue& catalogue_;
  WriteThrough& write_through_;
  std::map<unsigned long long, std::set<std::string>> seen_;  // names by client, until its EXEC
};

}  // namespace perdix::valkey
