// The indexes that can be plugged in: those of the library, and those that a pool was opened with.
#pragma once

#include <span>
#include <string_view>

#include <perdix/types.h>

#include "index/tips/plugin.h"
#include "pool/pool_core.h"

namespace perdix::detail::index::tips {

/// Begins the names of the engines.
inline constexpr std::string_view kEnginePrefix = "tips:";

/// Begins the names of users' plug-ins; what they are called has at most so many characters.
inline constexpr std::string_view kUserPrefix = "user:";
inline constexpr std::size_t kMaxUserName = 19;

/// Whether a name, "user:skiplist" or "art", is one of a plug-in that a pool must be opened with.
bool is_plugged(std::string_view name);

/// The plug-in of that name, "btree", for keys of one kind; null if the library has none.
const Plugin* look_up_plugin(std::string_view name, Kind keys);

/// The plug-in of that name, of the library or of those that the pool was opened with; null if
/// there is none.
const Plugin* look_up_plugin(const pool::PoolCore& pool, std::string_view name, Kind keys);

/// Whether an engine is a plug-in that a pool must be opened with, known or not.
bool is_plugged_engine(std::string_view engine);

/// The plug-in of an engine, "tips:btree". Throws unsupported if the pool was opened without it,
/// and wrong_engine if its keys are in order and `ordered` says otherwise.
const Plugin& find_plugin(const pool::PoolCore& pool, std::string_view engine, Kind keys,
                          bool ordered);

/// Throws unsupported: a pool was opened without a plug-in.
[[noreturn]] void throw_no_plugin(const pool::PoolCore& pool, std::string_view name, Kind keys);

/// Whether two plug-ins have one name and one kind of keys, so that a pool takes but one.
bool is_same(const Plugin* a, const Plugin* b);

/// Throws invalid_argument unless these can be the plug-ins of a pool.
void require_plugins(std::span<const Plugin* const> plugins);

}  // namespace perdix::detail::index::tips
