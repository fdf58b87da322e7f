// The sections that the module adds to INFO. Their fields are also what an exporter for Prometheus
// shows: each is a number with its unit in its name, or a word.
#pragma once

#include "api.h"

namespace perdix::valkey {

void register_info(Context* context);

}  // namespace perdix::valkey
