// The server's events: loads, forks, flushes, the turns of its loop, its end.
#pragma once

#include "api.h"

namespace perdix::valkey {

void subscribe_to_events(Context* context);

}  // namespace perdix::valkey
