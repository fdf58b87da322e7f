// The module's commands, and what the server tells clients about them.
#pragma once

#include "api.h"

namespace perdix::valkey {

/// Throws Error if the server does not want one of them.
void register_commands(Context* context);

}  // namespace perdix::valkey
