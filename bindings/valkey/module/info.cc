#include "info.h"

#include "module.h"

namespace perdix::valkey {
namespace {

void number(RedisModuleInfoCtx* info, const char* name, std::uint64_t value) {
  RedisModule_InfoAddFieldULongLong(info, name, value);
}

void text(RedisModuleInfoCtx* info, const char* name, const std::string& value) {
  RedisModule_InfoAddFieldCString(info, name, value.c_str());
}

void show_pool(RedisModuleInfoCtx* info) {
  const PoolInfo pool = module().pool().info();
  RedisModule_InfoAddSection(info, "pool");
  text(info, "pool_path", pool.path.string());
  text(info, "pool_durability", pool.durability == Durability::power ? "power" : "process");
  text(info, "pool_domain", pool.domain);
  number(info, "pool_size_bytes", pool.size);
  number(info, "pool_allocated_bytes", pool.allocated);
  number(info, "pool_max_size_bytes", pool.max_size);
  number(info, "pool_was_clean", pool.was_clean ? 1 : 0);
}

void show_tables(RedisModuleInfoCtx* info) {
  const auto tables = module().tables().all();
  std::uint64_t open = 0;
  for (const auto& table : tables)
    if (table->index_if_open() != nullptr) ++open;
  RedisModule_InfoAddSection(info, "tables");
  number(info, "tables", tables.size());
  number(info, "tables_open", open);
  number(info, "drops_waiting", module().reaper().waiting());
}

void show_keyspace(RedisModuleInfoCtx* info) {
  const WriteThrough& write_through = module().write_through();
  const WriteThrough::Counters& counters = write_through.counters();
  RedisModule_InfoAddSection(info, "keyspace");
  text(info, "mode", module().settings().keeps_native_keys() ? "keyspace" : "tables");
  number(info, "commits_total", counters.commits);
  number(info, "committed_keys_total", counters.keys);
  number(info, "committed_bytes_total", counters.bytes);
  number(info, "commit_failures_total", counters.failures);
  number(info, "client_closings_total", counters.closings);
  number(info, "oversize_values_total", counters.oversize);
  number(info, "undurable_keys", write_through.waiting());
  number(info, "refuses_writes", module().refusal().refuses() ? 1 : 0);
  number(info, "device_failed", module().refusal().device_failed() ? 1 : 0);
  number(info, "restored_keys", module().restorer().keys());
  number(info, "unreadable_keys", module().restorer().unreadable());
  number(info, "expired_keys", module().restorer().expired());
  number(info, "partial", module().catalogue().is_partial() ? 1 : 0);
  number(info, "restore_microseconds",
         static_cast<std::uint64_t>(module().restorer().seconds() * 1e6));
}

void show(RedisModuleInfoCtx* info, int for_crash_report) {
  // A report of the server's crash must not wait for locks that the crashed thread holds.
  if (for_crash_report != 0) return;
  // A pool whose device has failed says nothing of itself.
  for (const auto show_section : {show_tables, show_keyspace, show_pool}) {
    try {
      show_section(info);
    } catch (const std::exception& error) {
      text(info, "error", error.what());
      return;
    }
  }
}

}  // namespace

void register_info(Context* context) { RedisModule_RegisterInfoFunc(context, show); }

}  // namespace perdix::valkey
