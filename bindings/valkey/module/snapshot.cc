#include "snapshot.h"

#include "databases.h"
#include "record.h"
#include "table_type.h"

namespace perdix::valkey {
namespace {

// Shorter strings may be encoded as numbers or together with their object, which direct access
// would undo at each write. Longer ones are plain bytes, or become so at little cost (Valkey 9).
constexpr std::size_t kPlainText = 64;

long long expiry_of(RedisModuleKey* key) {
  const mstime_t expires = RedisModule_GetAbsExpire(key);
  return expires == REDISMODULE_NO_EXPIRE ? Record::kNever : expires;
}

/// What a short string is, by a command; none if the server refused it, as a node of a cluster does
/// where it would refuse a client.
std::optional<std::string> short_text_record(Context* context, const Key& key,
                                             RedisModuleString* name, long long expires) {
  const UntouchedKey untouched(context, name, key.get());
  // Not GET: what a command that may write has read, no client is told of (CLIENT TRACKING).
  const CallReply reply(RedisModule_Call(context, "GETEX", "s", name));
  if (!reply.is_string()) return std::nullopt;
  return encode({Record::Type::text, expires, reply.bytes()});
}

std::optional<std::string> text_record(Context* context, const Key& key, RedisModuleString* name,
                                       long long expires) {
  const bool is_short = RedisModule_ValueLength(key.get()) <= kPlainText;
  if (is_short) {
    if (auto record = short_text_record(context, key, name, expires)) return record;
  }
  const Key again(context, name, peek_mode());  // the command may have removed the key: it expired
  if (again.is_absent()) return std::nullopt;
  std::size_t size = 0;
  const char* bytes = RedisModule_StringDMA(again.get(), &size, REDISMODULE_READ);
  return encode({Record::Type::text, expires, {bytes, size}});
}

std::optional<std::string> dump_record(Context* context, const Key& key, RedisModuleString* name,
                                       long long expires) {
  const UntouchedKey untouched(context, name, key.get());
  const CallReply reply(RedisModule_Call(context, "DUMP", "s", name));
  if (reply.is_string()) return encode({Record::Type::dump, expires, reply.bytes()});
  if (!is_present(context, name)) return std::nullopt;  // it has just expired
  throw Error(Errc::unsupported, "DUMP of a key was refused by the server");
}

}  // namespace

std::optional<std::string> record_of(Context* context, int database, std::string_view name,
                                     bool native) {
  const SelectedDatabase selected(context, database);
  const String key_name(name);
  const Key key(context, key_name.get(), peek_mode());
  if (key.is_absent()) return std::nullopt;
  const long long expires = expiry_of(key.get());
  if (const TableValue* value = table_value(key.get()); value != nullptr)
    return value->table ? std::optional(table_record(value->table->id(), expires)) : std::nullopt;
  if (!native) return std::nullopt;
  // The commands below would remove what has expired before the server does.
  if (expires != Record::kNever && expires <= RedisModule_Milliseconds()) return std::nullopt;
  if (key.type() == REDISMODULE_KEYTYPE_STRING)
    return text_record(context, key, key_name.get(), expires);
  return dump_record(context, key, key_name.get(), expires);
}

}  // namespace perdix::valkey
