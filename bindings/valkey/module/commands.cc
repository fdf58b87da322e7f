#include "commands.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <vector>

#include "command.h"

namespace perdix::valkey {
namespace {

constexpr const char* kSince = "0.1.0";

using Argument = RedisModuleCommandArg;

Argument argument(const char* name, RedisModuleCommandArgType type = REDISMODULE_ARG_TYPE_STRING,
                  int flags = REDISMODULE_CMD_ARG_NONE, const char* token = nullptr) {
  Argument result{};
  result.name = name;
  result.type = type;
  result.key_spec_index = type == REDISMODULE_ARG_TYPE_KEY ? 0 : -1;
  result.token = token;
  result.flags = flags;
  return result;
}

Argument option(const char* name, const char* token,
                RedisModuleCommandArgType type = REDISMODULE_ARG_TYPE_STRING) {
  return argument(name, type, REDISMODULE_CMD_ARG_OPTIONAL, token);
}

Argument fields() {
  return argument("field", REDISMODULE_ARG_TYPE_STRING, REDISMODULE_CMD_ARG_MULTIPLE);
}

// The server copies what it is told, so that these may end.
using ArgumentList = std::array<Argument, 8>;  // the rest is zero, which ends the list

ArgumentList with_key(std::initializer_list<Argument> others) {
  ArgumentList list{argument("key", REDISMODULE_ARG_TYPE_KEY)};
  std::copy(others.begin(), others.end(), list.begin() + 1);
  return list;
}

ArgumentList create_arguments() {
  return with_key({option("engine", "ENGINE"), option("keys", "KEYS"), option("values", "VALUES")});
}

ArgumentList put_arguments() {
  static std::array<Argument, 3> pair{argument("field"), argument("value"), Argument{}};
  Argument block = argument("data", REDISMODULE_ARG_TYPE_BLOCK, REDISMODULE_CMD_ARG_MULTIPLE);
  block.subargs = pair.data();
  return with_key({block});
}

ArgumentList range_arguments(const char* first, const char* second) {
  return with_key({argument(first), argument(second),
                   option("count", "LIMIT", REDISMODULE_ARG_TYPE_INTEGER),
                   option("novalues", "NOVALUES", REDISMODULE_ARG_TYPE_PURE_TOKEN)});
}

ArgumentList scan_arguments() {
  return with_key({argument("cursor"), option("pattern", "MATCH", REDISMODULE_ARG_TYPE_PATTERN),
                   option("count", "COUNT", REDISMODULE_ARG_TYPE_INTEGER)});
}

constexpr std::uint64_t kReads = REDISMODULE_CMD_KEY_RO | REDISMODULE_CMD_KEY_ACCESS;
constexpr std::uint64_t kLooks = REDISMODULE_CMD_KEY_RO;
constexpr std::uint64_t kInserts = REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_INSERT;
constexpr std::uint64_t kUpdates = REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_UPDATE;
constexpr std::uint64_t kChanges = kUpdates | REDISMODULE_CMD_KEY_ACCESS;
constexpr std::uint64_t kErases = REDISMODULE_CMD_KEY_RW | REDISMODULE_CMD_KEY_DELETE;

constexpr const char* kFastRead = "readonly fast";
constexpr const char* kSlowRead = "readonly";
// Without deny-oom: what they write lies in the pool, not in the server's memory.
constexpr const char* kFastWrite = "write fast";
constexpr const char* kSlowWrite = "write";

struct Command {
  const char* name;
  RedisModuleCmdFunc function;
  const char* flags;
  const char* categories;  // of access control; Redis 7.0 has none for commands of modules
  int arity;
  std::uint64_t key_flags;
  const char* summary;
  const char* complexity;
  ArgumentList arguments;
};

/// The command as the server calls it.
template <Handler handler>
int call(Context* context, RedisModuleString** arguments, int count) noexcept {
  try {
    // An append-only file of before the pool's last write.
    if (module().restorer().ignores_loads())
      return RedisModule_ReplyWithSimpleString(context, "OK");
    return handler(context, {arguments, static_cast<std::size_t>(count)});
  } catch (const std::exception& error) {
    return reply_error(context, error);
  }
}

std::vector<Command> table_commands() {
  return {{"px.create", call<create_table>, kSlowWrite, "write", -2, kInserts,
           "Creates a table of an engine and kinds of keys and values", "O(1)", create_arguments()},
          {"px.info", call<describe_table>, kSlowRead, "read", 2, kLooks,
           "Describes a table: engine, kinds, sizes", "O(1)", with_key({})},
          {"px.len", call<count_pairs>, kSlowRead, "read", 2, kLooks, "Counts the pairs of a table",
           "O(1), after a restart once O(N)", with_key({})}};
}

std::vector<Command> pair_commands() {
  const auto one_field = with_key({argument("field")});
  const auto many_fields = with_key({fields()});
  const auto with_value = with_key({argument("field"), argument("value")});
  return {{"px.put", call<put_pairs>, kFastWrite, "write fast", -4, kUpdates,
           "Sets values of fields, durably", "O(log N) for each pair", put_arguments()},
          {"px.insert", call<insert_pair>, kFastWrite, "write fast", 4, kInserts,
           "Sets the value of a field that is absent, durably", "O(log N)", with_value},
          {"px.get", call<get_value>, kFastRead, "read fast", 3, kReads,
           "Gets the value of a field", "O(log N)", one_field},
          {"px.mget", call<get_values>, kFastRead, "read fast", -3, kReads,
           "Gets the values of several fields", "O(log N) for each field", many_fields},
          {"px.del", call<erase_fields>, kFastWrite, "write fast", -3, kErases,
           "Removes fields, durably", "O(log N) for each field", many_fields},
          {"px.exists", call<count_fields>, kFastRead, "read fast", -3, kLooks,
           "Counts those of several fields that exist", "O(log N) for each field", many_fields}};
}

std::vector<Command> change_commands() {
  const auto increment_arguments =
      with_key({argument("field"), argument("increment", REDISMODULE_ARG_TYPE_INTEGER)});
  const auto exchange_arguments =
      with_key({argument("field"), argument("expected"), argument("desired")});
  return {
      {"px.incrby", call<increment>, kFastWrite, "write fast", 4, kChanges,
       "Adds to the number that is the value of a field, durably", "O(log N)", increment_arguments},
      {"px.cas", call<compare_and_set>, kFastWrite, "write fast", 5, kChanges,
       "Sets the value of a field if it is the expected one, durably", "O(log N)",
       exchange_arguments}};
}

std::vector<Command> walk_commands() {
  return {
      {"px.range", call<show_range>, kSlowRead, "read slow", -4, kReads,
       "Shows pairs in ascending order of their fields", "O(log N + M) for M pairs shown",
       range_arguments("min", "max")},
      {"px.revrange", call<show_range_backwards>, kSlowRead, "read slow", -4, kReads,
       "Shows pairs in descending order of their fields", "O(M log N) for M pairs shown",
       range_arguments("max", "min")},
      {"px.scan", call<scan_pairs>, kSlowRead, "read slow", -3, kReads,
       "Shows the pairs of a table in steps",
       "O(log N + COUNT) for a step with an ordered engine, O(N) with others", scan_arguments()}};
}

void describe(RedisModuleCommand* command, Command& wanted) {
  RedisModuleCommandKeySpec key{};
  key.flags = wanted.key_flags;
  key.begin_search_type = REDISMODULE_KSPEC_BS_INDEX;
  key.bs.index.pos = 1;
  key.find_keys_type = REDISMODULE_KSPEC_FK_RANGE;
  key.fk.range.lastkey = 0;
  key.fk.range.keystep = 1;
  std::array<RedisModuleCommandKeySpec, 2> keys{key, {}};
  RedisModuleCommandInfo info{};
  info.version = REDISMODULE_COMMAND_INFO_VERSION;
  info.summary = wanted.summary;
  info.complexity = wanted.complexity;
  info.since = kSince;
  info.arity = wanted.arity;
  info.key_specs = keys.data();
  info.args = wanted.arguments.data();
  if (RedisModule_SetCommandInfo(command, &info) != REDISMODULE_OK)
    throw Error(Errc::unsupported,
                std::string("the server does not take the description of ") + wanted.name);
  if (RedisModule_SetCommandACLCategories != nullptr)
    RedisModule_SetCommandACLCategories(command, wanted.categories);
}

void add(Context* context, Command& wanted) {
  if (RedisModule_CreateCommand(context, wanted.name, wanted.function, wanted.flags, 1, 1, 1) !=
      REDISMODULE_OK)
    throw Error(Errc::already_exists,
                std::string("the server has a command ") + wanted.name + " of another module");
  describe(RedisModule_GetCommand(context, wanted.name), wanted);
}

}  // namespace

void register_commands(Context* context) {
  for (auto group : {table_commands(), pair_commands(), change_commands(), walk_commands()})
    for (Command& command : group) add(context, command);
}

}  // namespace perdix::valkey
