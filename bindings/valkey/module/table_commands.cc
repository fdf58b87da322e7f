// PX.CREATE, PX.INFO, PX.LEN: tables as a whole.
#include <algorithm>
#include <array>

#include "command.h"

namespace perdix::valkey {
namespace {

struct Wanted {
  std::string engine;
  Kind key_kind = Kind::bytes;
  Kind value_kind = Kind::bytes;
};

Kind kind_in(const RedisModuleString* argument) {
  if (is_word(argument, "U64")) return Kind::u64;
  if (is_word(argument, "BYTES")) return Kind::bytes;
  throw Error(Errc::invalid_argument, "keys and values are u64 or bytes");
}

Wanted parse(Arguments options) {
  Wanted wanted{.engine = module().settings().engine};
  if (options.size() % 2 != 0) throw Error(Errc::invalid_argument, "syntax error");
  for (std::size_t i = 0; i < options.size(); i += 2) {
    const auto* value = options[i + 1];
    if (is_word(options[i], "ENGINE")) {
      wanted.engine = view(value);
    } else if (is_word(options[i], "KEYS")) {
      wanted.key_kind = kind_in(value);
    } else if (is_word(options[i], "VALUES")) {
      wanted.value_kind = kind_in(value);
    } else {
      throw Error(Errc::invalid_argument, "syntax error");
    }
  }
  return wanted;
}

bool agrees(const IndexInfo& info, const Wanted& wanted) {
  return info.engine == wanted.engine && info.key_kind == wanted.key_kind &&
         info.value_kind == wanted.value_kind;
}

/// With all options spelt out: a replica may have other defaults.
void replicate_creation(Context* context, RedisModuleString* name, const IndexInfo& info) {
  RedisModule_Replicate(context, "PX.CREATE", "scccccc", name, "ENGINE", info.engine.c_str(),
                        "KEYS", std::string(to_string(info.key_kind)).c_str(), "VALUES",
                        std::string(to_string(info.value_kind)).c_str());
}

void create(Context* context, TableKey& key, RedisModuleString* name, const Wanted& wanted) {
  key.set(module().tables().create(wanted.engine, wanted.key_kind, wanted.value_kind));
  replicate_creation(context, name, key.info());
  module().write_through().on_event(context, "px.create", name);
  notify(context, "px.create", name);
}

}  // namespace

void create_default(Context* context, TableKey& key, RedisModuleString* name) {
  create(context, key, name, Wanted{.engine = module().settings().engine});
}

int create_table(Context* context, Arguments arguments) {
  const Wanted wanted = parse(arguments.subspan(2));
  TableKey key(context, arguments[1], REDISMODULE_READ | REDISMODULE_WRITE);
  if (key.is_wrong_type()) return reply_wrong_type(context);
  if (key.is_absent()) {
    create(context, key, arguments[1], wanted);
  } else if (!agrees(key.info(), wanted)) {
    throw Error(Errc::wrong_engine, "the key is a table of engine " + key.info().engine +
                                        ", keys " + std::string(to_string(key.info().key_kind)) +
                                        ", values " +
                                        std::string(to_string(key.info().value_kind)));
  }
  return RedisModule_ReplyWithSimpleString(context, "OK");
}

int describe_table(Context* context, Arguments arguments) {
  const TableKey key(context, arguments[1], REDISMODULE_READ);
  if (key.is_wrong_type()) return reply_wrong_type(context);
  if (key.is_absent()) throw Error(Errc::not_found, "no such key");
  const Index& index = key.table().index();
  const IndexStats stats = index.stats();
  const std::array<std::pair<const char*, std::string>, 4> words{
      {{"engine", key.info().engine},
       {"keys", std::string(to_string(key.info().key_kind))},
       {"values", std::string(to_string(key.info().value_kind))},
       {"index", key.info().name}}};
  const std::array<std::pair<const char*, std::uint64_t>, 6> numbers{
      {{"ordered", index.ordered() ? 1 : 0},
       {"pairs", index.size()},
       {"pm_bytes", stats.pm_bytes},
       {"dram_bytes", stats.dram_bytes},
       {"resumed_percent", static_cast<std::uint64_t>(stats.resumed * 100)},
       {"recovery_microseconds", static_cast<std::uint64_t>(stats.recovery_seconds * 1e6)}}};
  RedisModule_ReplyWithMap(context, static_cast<long>(words.size() + numbers.size()));
  for (const auto& [name, value] : words) {
    RedisModule_ReplyWithCString(context, name);
    reply_bytes(context, value);
  }
  for (const auto& [name, value] : numbers) {
    RedisModule_ReplyWithCString(context, name);
    reply_number(context, value);
  }
  return REDISMODULE_OK;
}

int count_pairs(Context* context, Arguments arguments) {
  const TableKey key(context, arguments[1], REDISMODULE_READ);
  if (key.is_wrong_type()) return reply_wrong_type(context);
  return reply_number(context, key.is_absent() ? 0 : key.table().index().size());
}

}  // namespace perdix::valkey
