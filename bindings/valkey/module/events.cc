#include "events.h"

#include <cstdlib>
#include <optional>

#include "module.h"

namespace perdix::valkey {
namespace {

/// Runs what an event asks for. The server wants no answer, so errors go to its log.
template <class Call>
void handle(Context* context, const char* what, Call call) noexcept {
  try {
    call();
  } catch (const std::exception& error) {
    log(context, "warning", std::string(what) + ": " + error.what());
  }
}

/// A server that has not all of the pool's keys must not serve: it ends, and the log says why.
template <class Call>
void handle_start(Context* context, Call call) noexcept {
  handle(context, "at the start", call);
  if (module().restorer().failed()) {
    log(context, "warning", "the server ends, since it could not take all keys from the pool");
    std::_Exit(EXIT_FAILURE);
  }
}

/// None for the end of a load.
std::optional<Restorer::Source> source_of(std::uint64_t event) {
  switch (event) {
    case REDISMODULE_SUBEVENT_LOADING_RDB_START: return Restorer::Source::rdb_file;
    case REDISMODULE_SUBEVENT_LOADING_AOF_START: return Restorer::Source::append_only_file;
    case REDISMODULE_SUBEVENT_LOADING_REPL_START: return Restorer::Source::primary;
    default: return std::nullopt;
  }
}

void on_loading(Context* context, RedisModuleEvent, std::uint64_t event, void*) {
  handle_start(context, [&] {
    Restorer& restorer = module().restorer();
    const std::optional<Restorer::Source> source = source_of(event);
    module().write_through().set_loading(source.has_value());
    if (source) return restorer.on_loading(context, *source);
    restorer.on_loaded(context, event == REDISMODULE_SUBEVENT_LOADING_ENDED);
    module().write_through().commit(context);
  });
}

void on_role(Context* context, RedisModuleEvent, std::uint64_t event, void*) {
  if (event != REDISMODULE_EVENT_REPLROLECHANGED_NOW_MASTER) return;
  handle_start(context, [&] { module().restorer().on_promotion(context); });
}

void on_fork(Context* context, RedisModuleEvent, std::uint64_t event, void*) {
  handle(context, "at a fork", [&] {
    if (event == REDISMODULE_SUBEVENT_FORK_CHILD_BORN) {
      module().feeder().freeze(module().tables().all());
    } else {
      module().feeder().thaw();
    }
  });
}

void on_flush(Context* context, RedisModuleEvent, std::uint64_t event, void* data) {
  if (event != REDISMODULE_SUBEVENT_FLUSHDB_START) return;
  handle(context, "a flush is not durable", [&] {
    module().write_through().flush(context, static_cast<RedisModuleFlushInfo*>(data)->dbnum);
  });
}

void on_swap(Context* context, RedisModuleEvent, std::uint64_t, void* data) {
  handle(context, "a SWAPDB is not durable", [&] {
    const auto* swapped = static_cast<RedisModuleSwapDbInfo*>(data);
    module().write_through().swap(context, swapped->dbnum_first, swapped->dbnum_second);
    module().stream_watch().on_swap();
  });
}

void on_key(Context* context, RedisModuleEvent, std::uint64_t event, void* data) {
  if (event == REDISMODULE_SUBEVENT_KEY_OVERWRITTEN) return;  // what comes instead has an event
  handle(context, "the end of a key is not durable", [&] {
    module().write_through().on_removal(static_cast<RedisModuleKeyInfo*>(data)->key,
                                        event != REDISMODULE_SUBEVENT_KEY_DELETED);
  });
}

/// Redis 7.0 has no notice of keys that go with their slot.
void look_for_lost_keys(Context* context) {
  static const bool needed =
      module().settings().keeps_native_keys() && is_in_cluster() &&
      RedisModule_IsSubEventSupported(RedisModuleEvent_Key, REDISMODULE_SUBEVENT_KEY_DELETED) == 0;
  if (!needed || is_replica() || !module().restorer().gave_all_keys()) return;
  handle(context, "keys that have gone with their slot are still in the pool",
         [&] { module().write_through().look_for_lost_keys(context); });
}

void on_loop(Context* context, RedisModuleEvent, std::uint64_t event, void*) {
  if (event == REDISMODULE_SUBEVENT_EVENTLOOP_BEFORE_SLEEP) {
    if (module().restorer().waits_for_turn())
      handle_start(context, [&] { module().restorer().on_first_turn(context); });
    if (module().restorer().waits_for_cluster())
      handle_start(context, [&] { module().restorer().on_turn(context); });
    handle(context, "what readers were served is not durable",
           [&] { module().stream_watch().before_sleep(context); });
    look_for_lost_keys(context);
    module().write_through().before_sleep(context);
  } else {
    module().write_through().after_sleep();
  }
}

void look_for_file(Context* context) {
  const PoolFile& file = module().pool_file();
  if (module().refusal().device_failed() || !file.is_lost()) return;
  module().refusal().on_device_failure(
      context, "the pool's file " + file.path().string() +
                   " was deleted or replaced: save the server's data before it ends");
}

void on_cron(Context* context, RedisModuleEvent, std::uint64_t, void*) {
  handle(context, "in the server's routine", [&] {
    look_for_file(context);
    module().refusal().try_again(context);
    module().refusal().follow_settings(context);
    module().write_through().try_again(context);
  });
}

void on_shutdown(Context* context, RedisModuleEvent, std::uint64_t, void*) {
  handle(context, "the pool is not closed, and the next start repairs it",
         [&] { module().close(context); });
}

}  // namespace

void subscribe_to_events(Context* context) {
  RedisModule_SubscribeToServerEvent(context, RedisModuleEvent_Loading, on_loading);
  RedisModule_SubscribeToServerEvent(context, RedisModuleEvent_ReplicationRoleChanged, on_role);
  RedisModule_SubscribeToServerEvent(context, RedisModuleEvent_ForkChild, on_fork);
  RedisModule_SubscribeToServerEvent(context, RedisModuleEvent_FlushDB, on_flush);
  RedisModule_SubscribeToServerEvent(context, RedisModuleEvent_SwapDB, on_swap);
  RedisModule_SubscribeToServerEvent(context, RedisModuleEvent_EventLoop, on_loop);
  RedisModule_SubscribeToServerEvent(context, RedisModuleEvent_CronLoop, on_cron);
  RedisModule_SubscribeToServerEvent(context, RedisModuleEvent_Shutdown, on_shutdown);
  // Redis 7.0 has no such event, and its contexts select the database of the change.
  if (module().settings().keeps_native_keys())
    RedisModule_SubscribeToServerEvent(context, RedisModuleEvent_Key, on_key);
}

}  // namespace perdix::valkey
