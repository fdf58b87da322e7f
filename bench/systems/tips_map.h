// An index that is plugged into Tips, as a system.
#pragma once

#include <cstdint>
#include <string>

#include <perdix/tips.h>

#include "systems/perdix_map.h"
#include "systems/systems.h"

namespace perdix::bench {

inline TipsOptions tips_options(const Setup& setup) {
  TipsOptions options;
  const auto set = [&](std::uint32_t& option, const char* name) {
    option = static_cast<std::uint32_t>(setup.parameter(name, option));
  };
  options.cached_pairs = setup.parameter("cached_pairs", setup.max_records / 4);
  set(options.chain, "chain");
  set(options.log_bytes, "log_bytes");
  set(options.undo_records, "undo_records");
  set(options.max_workers, "max_workers");
  return options;
}

/// Those of an index that is no part of the library.
template <class Plugin>
Setup with_plugins(Setup setup) {
  if constexpr (requires { Plugin::plugins(); }) setup.plugins = Plugin::plugins();
  return setup;
}

template <class Plugin>
struct Plugged {
  template <class K, class V>
  using Index = Tips<Plugin, K, V>;
};

template <class Plugin, class K, class V>
class TipsMap : public PerdixMap<Plugged<Plugin>::template Index, K, V> {
 public:
  explicit TipsMap(const Setup& setup)
      : PerdixMap<Plugged<Plugin>::template Index, K, V>(with_plugins<Plugin>(setup),
                                                         tips_options(setup)) {}

  /// What the logs hold is replayed.
  void resume() const { this->index().size(); }

  OwnFootprint footprint() const {
    const IndexStats stats = this->index().stats();
    return {stats.dram_bytes, stats.pm_bytes, {}, stats.tips};
  }
};

template <class Plugin>
struct Made {
  template <class K, class V>
  using Map = TipsMap<Plugin, K, V>;
};

template <class Plugin>
System system_on_tips(const std::string& what,
                      const std::string& name = std::string(Plugin::kEngine)) {
  using Form = Made<Plugin>;
  System made{name,          "perdix::Tips, " + what + " made durable",
              true,          open_store<Form::template Map>,
              pool_settings, calls_of<Form::template Map>()};
  made.parameters = {"cached_pairs", "chain", "log_bytes", "undo_records", "max_workers"};
  return made;
}

}  // namespace perdix::bench
