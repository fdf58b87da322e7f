// The engines that a program has, and how they are found by name.
//
// A program that is linked with the static library has the engines whose classes it uses, or all of
// them if it uses perdix::Index; one that is linked with the shared library has all. An index of
// another engine is left alone.
#pragma once

#include <span>
#include <string_view>

#include "index/common/engine_type.h"

namespace perdix::detail::index {

/// The engines of this release that are linked into the program. CMake writes it.
std::span<const EngineSet* const> linked_engine_sets();

/// All engines that this library was built with (PERDIX_ENGINES). A reference to it links all of
/// them into the program. CMake writes it.
std::span<const EngineSet* const> all_engine_sets();

/// The engines that there are: those of this release, and in test programs the sample engines too.
/// A null pointer stands for a set that is not linked.
std::span<const EngineSet* const> engine_sets();

/// Calls visit(engine) for each engine that there is, plug-ins aside.
template <class Visit>
void for_each_engine(Visit visit) {
  for (const EngineSet* set : engine_sets()) {
    if (set == nullptr) continue;
    for (const EngineType& engine : set->engines) visit(engine);
  }
}

/// The engine of that name; null if there is none.
const EngineType* look_up_engine(std::string_view name);

/// The engine of that name. Throws invalid_argument, with the names that there are.
const EngineType& find_engine(std::string_view name);

/// The engine of an index that a pool has or is to have: one that there is, or a plug-in that the
/// pool was opened with. Null if there is none with that data model.
const EngineType* look_up_engine(const IndexInfo& info, const pool::PoolCore& pool);

/// Like look_up_engine(), but throws invalid_argument, with the names that there are, and
/// unsupported for a plug-in that the pool was opened without.
const EngineType& find_engine(const IndexInfo& info, const pool::PoolCore& pool);

/// The engine of an index that exists. Throws unsupported if neither this program nor a plug-in of
/// the pool has it, or not with that data model.
const EngineType& engine_of(const IndexInfo& info, const pool::PoolCore& pool);

/// Whose plug-in an engine is, known or not; null if it is none.
const PluginHost* plugin_host_of(std::string_view engine);

/// Throws unless these can be the plug-ins of a pool: invalid_argument, and unsupported if the
/// program has no engine that takes plug-ins.
void require_plugins(std::span<const perdix::tips::Plugin* const> plugins);

}  // namespace perdix::detail::index
