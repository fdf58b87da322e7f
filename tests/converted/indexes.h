// The indexes of examples/converted.
#pragma once

#include <vector>

#include <perdix/tips_plugin.h>

#include "support/engines.h"

namespace perdix::test {

/// The plug-ins, for both kinds of keys. None where examples/converted was left out.
std::vector<const tips::Plugin*> converted_plugins();

/// The classes of them, one for each kind of keys.
std::vector<IndexType> converted_types();

}  // namespace perdix::test
