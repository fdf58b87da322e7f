// Names of types for people.
#pragma once

#include <string>

namespace perdix::detail::index::tips_of {

/// The type that a compiler's name stands for, or the name itself.
std::string demangled(const char* name);

}  // namespace perdix::detail::index::tips_of
