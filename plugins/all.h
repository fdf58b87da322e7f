// The list of the plug-ins of this library.
#pragma once

#include <span>

#include <perdix/tips_plugin.h>

namespace perdix::tips::plugins {

/// All of them, for both kinds of keys. Allocates nothing.
std::span<const Plugin* const> all() noexcept;

}  // namespace perdix::tips::plugins
