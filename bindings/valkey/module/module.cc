#include "module.h"

#include <memory>
#include <string_view>
#include <vector>

#include <perdix/bus_errors.h>
#include <perdix/tips_indexes.h>

#include "command_traits.h"
#include "commands.h"
#include "events.h"
#include "info.h"
#include "table_type.h"

namespace perdix::valkey {
namespace {

/// Never destroyed: the server's end is close().
struct Instance {
  Settings settings;
  std::unique_ptr<Module> module;
};

Instance& instance() {
  static auto* const only = new Instance;
  return *only;
}

PoolOptions pool_options(const Settings& settings) {
  PoolOptions options;
  options.plugins = tips::further_plugins();
  options.durability = static_cast<Durability>(settings.durability);
  options.max_size = static_cast<std::uint64_t>(settings.max_size);
  return options;
}

/// Does not ask the pool for what it would have to count: a start takes as long at any size.
void say_what_was_opened(Context* context, const Settings& settings) {
  log(context, "notice",
      "pool " + settings.path + " is open, mode " +
          (settings.keeps_native_keys() ? "keyspace" : "tables") + "; INFO perdix has more");
}

/// Before the module has a pool: a server that can't keep what it acknowledges must not start.
void check_commands(Context* context, const Settings& settings) {
  std::vector<std::string_view> called{"command", "client"};
  if (is_in_cluster()) called.emplace_back("cluster");
  if (!settings.keeps_native_keys()) return check_names(context, called, {});
  called.insert(called.end(), {"getex", "set", "dump", "restore"});
  check_names(context, called,
              {"multi", "exec", "xreadgroup", "xack", "xclaim", "xautoclaim", "xackdel", "xdelex"});
}

void start(Context* context, Arguments arguments) {
  load_settings(context, arguments, instance().settings);
  check_commands(context, instance().settings);
  handle_bus_errors();  // stays: the module is never unloaded (-z nodelete)
  instance().module = std::make_unique<Module>(instance().settings);
  Module& module = *instance().module;
  say_what_was_opened(context, module.settings());
  module.restorer().check(context);
  RedisModule_SetModuleOptions(context, REDISMODULE_OPTIONS_HANDLE_IO_ERRORS |
                                            REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED);
  register_table_type(context);
  register_commands(context);
  register_info(context);
  if (module.settings().keeps_native_keys()) {
    module.refusal().prepare(context);
    module.stream_watch().install(context);
  }
  module.write_through().subscribe(context);
  subscribe_to_events(context);
  module.restorer().begin(context);
}

}  // namespace

Module::Module(const Settings& settings)
    : settings_(settings),
      pool_(Pool::open_or_create(settings.path, pool_options(settings))),
      pool_file_(settings.path),
      catalogue_(pool_),
      reaper_(pool_, catalogue_),
      tables_(pool_, settings_, reaper_),
      feeder_(tables_),
      refusal_(pool_, settings_, catalogue_),
      write_through_(settings_, catalogue_, tables_, reaper_, refusal_),
      stream_watch_(catalogue_, write_through_),
      restorer_(settings_, catalogue_, tables_, reaper_, refusal_, write_through_) {}

void Module::close(Context* context) {
  write_through_.commit(context);
  write_through_.set_active(false);
  reaper_.stop();
  feeder_.stop();
  tables_.close();
  catalogue_.close();
  pool_.close();
}

/// After a start that failed: closes the pool. A server that was running goes on without the
/// module.
void give_up() { instance().module.reset(); }

Module& module() { return *instance().module; }

bool has_module() { return instance().module != nullptr; }

}  // namespace perdix::valkey

extern "C" __attribute__((visibility("default"))) int RedisModule_OnLoad(
    RedisModuleCtx* context, RedisModuleString** arguments, int count) {
  constexpr int kVersion = 1;
  if (RedisModule_Init(context, "perdix", kVersion, REDISMODULE_APIVER_1) == REDISMODULE_ERR)
    return REDISMODULE_ERR;
  try {
    perdix::valkey::start(context, {arguments, static_cast<std::size_t>(count)});
    return REDISMODULE_OK;
  } catch (const std::exception& error) {
    perdix::valkey::log(context, "warning", std::string("perdix: ") + error.what());
    perdix::valkey::give_up();
    return REDISMODULE_ERR;
  }
}
