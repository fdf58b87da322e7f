// Marks streams that commands for consumer groups change without a keyspace event: XREADGROUP,
// XACK, XCLAIM, XAUTOCLAIM and their like. For the mode `keyspace`.
//
// A filter sees each command before it is executed and marks its streams; the commit comes after.
// Two cases need a second mark, since a commit may come between:
//
// 1. In a transaction the streams that a client has queued are marked again by its EXEC.
// 2. A reader that blocks changes its streams when a later event of them wakes it. The job after
//    that event commits before the server serves the reader. So a stream that is awaited and has
//    an event is marked again before the server sends replies.
//
// Used by the server's main thread only.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

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

  /// A key has changed; any key may have, by SWAPDB.
  void on_event(std::string_view name);
  void on_swap();

  /// Marks the streams whose readers may have been served since the last call.
  void before_sleep(Context* context);

 private:
  using Names = std::set<std::string, std::less<>>;

  // Where the server does not say which client sends a command, as Redis 7.0.
  static constexpr unsigned long long kAnyClient = 0;

  void mark(unsigned long long client, const Names& streams);
  void mark_queued(unsigned long long client);
  void mark_in_all(const Names& streams);
  bool mark_where_present(Context* context, const std::string& name);

  const Catalogue& catalogue_;
  WriteThrough& write_through_;
  std::map<unsigned long long, Names> seen_;  // queued, by client, until its EXEC
  Names awaited_;                             // streams that a blocked reader may wait for
  Names woken_;                               // those with an event in this turn
};

}  // namespace perdix::valkey
