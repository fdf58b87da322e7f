#include "crash/plugged_subjects.h"

#include <string>

#include <fmt/format.h>

#include <perdix/tips.h>

#include "converted/indexes.h"
#include "index/common/engine_traits.h"
#include "index/tips/c_plugin.h"
#include "install/outside/list.h"
#include "testing/subjects/index_subject.h"
#include "tips_c/skiplist.h"

extern "C" {
#include "install/outside/table.h"
}

namespace perdix::testing {
namespace {

using Lists = tips::User<"list", SortedList>;
using detail::index::tips::CPlugin;

// They have no leaves, so any few will do.
constexpr detail::index::EngineTraits kTraits = {
    .engine = {},
    .full = 8,
    .most = 8,
    .joinable = 6,
    .fills = {0, 1, 2, 3, 5, 8, 16, 32, 64, 100, 180},
    .crowds = nullptr,
    .uses_background = true,
    .magic = {},
};

PluggedIndex plugged(const std::string& engine, Kind key, Kind value, const tips::Plugin& plugin) {
  return {{"index", engine, key, value}, &kTraits, {&plugin}};
}

void add(std::vector<SubjectEntry>& all, const PluggedIndex& index, bool full) {
  all.push_back({fmt::format("{}{}:{}:{}", index.info.engine, full ? "+full" : "",
                             to_string(index.info.key_kind), to_string(index.info.value_kind)),
                 full ? 1U : 4U, [=](detail::pm::Domain domain) {
                   return make_plugged_index_subject(index, full, domain);
                 }});
}

}  // namespace

std::vector<SubjectEntry> plugged_subjects() {
  static const CPlugin table(hash_table), list(skip_list);
  const std::string engine(Lists::kEngine);
  std::vector<PluggedIndex> indexes = {
      plugged(engine, Kind::u64, Kind::u64, Lists::plugin<std::uint64_t>()),
      plugged(engine, Kind::bytes, Kind::bytes, Lists::plugin<std::string>()),
      plugged("tips:user:table", Kind::u64, Kind::bytes, table),
      plugged("tips:user:skiplist", Kind::bytes, Kind::u64, list)};
  for (const tips::Plugin* plugin : test::converted_plugins())
    indexes.push_back(plugged(plugin->engine(), plugin->keys, plugin->keys, *plugin));
  std::vector<SubjectEntry> all;
  for (const PluggedIndex& index : indexes)
    for (const bool full : {false, true}) add(all, index, full);
  return all;
}

}  // namespace perdix::testing
