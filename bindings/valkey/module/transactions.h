// Whether a command that a filter sees is queued for an EXEC.
//
// Redis 7.0 does not say whose command it is. There each command counts as queued while any client
// has an open transaction, which is asked for only after a MULTI was seen.
// Used by the server's main thread only.
#pragma once

#include "api.h"

namespace perdix::valkey {

/// Whether a client has an open transaction. For servers that say whose command a filter sees.
bool is_open(unsigned long long client);

class Transactions {
 public:
  /// A client sends MULTI, or may have done so unseen.
  void on_multi() noexcept { may_be_open_ = true; }

  /// Whether the command may be queued.
  bool may_hold(Context* context, RedisModuleCommandFilterCtx* command);

 private:
  bool may_be_open_ = true;
};

}  // namespace perdix::valkey
