// The record of a key as it is now in the server.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api.h"

namespace perdix::valkey {

/// The record of a key; none if the key is absent, or is native and `native` is false. Throws
/// unsupported if the server doesn't show the value.
std::optional<std::string> record_of(Context* context, int database, std::string_view name,
                                     bool native);

}  // namespace perdix::valkey
