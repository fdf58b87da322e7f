#include "restorer.h"

#include <chrono>

#include "databases.h"
#include "table_type.h"

namespace perdix::valkey {
namespace {

// Keys that are given back between two looks at the clock.
constexpr std::uint64_t kKeysAtOnce = 16;

/// Whether replicas get the command, too.
constexpr const char* kAlone = "blbcc";
constexpr const char* kReplicated = "!blbcc";

/// Whether the server took it. A node of a cluster refuses the command now, or for this slot.
/// Throws unsupported if the server can't read the value.
bool restore_dump(Context* context, const char* how, const Record& record, std::string_view name) {
  const long long expires = record.expires == Record::kNever ? 0 : record.expires;
  const CallReply reply(RedisModule_Call(context, "RESTORE", how, name.data(), name.size(), expires,
                                         record.payload.data(), record.payload.size(), "REPLACE",
                                         "ABSTTL"));
  if (reply.is_null()) return false;
  if (reply.is_error()) throw Error(Errc::unsupported, std::string(reply.bytes()));
  return true;
}

/// By a command, so that the server encodes the string as it would a client's.
bool set_text(Context* context, const Record& record, std::string_view name) {
  const std::string_view text = record.payload;
  if (record.expires == Record::kNever)
    return !CallReply(RedisModule_Call(context, "SET", "bb", name.data(), name.size(), text.data(),
                                       text.size()))
                .is_error();
  return !CallReply(RedisModule_Call(context, "SET", "bbcl", name.data(), name.size(), text.data(),
                                     text.size(), "PXAT", record.expires))
              .is_error();
}

/// In a node of a cluster that is not up, which refuses the command.
void set_text_directly(Context* context, const Record& record, std::string_view name) {
  const String key_name(name);
  const String text(record.payload);
  const Key key(context, key_name.get(), REDISMODULE_READ | REDISMODULE_WRITE);
  RedisModule_StringSet(key.get(), text.get());
  if (record.expires != Record::kNever) RedisModule_SetAbsExpire(key.get(), record.expires);
}

bool has_keys(Context* context) {
  bool found = false;
  for_each_database(context, [&](int) { found = found || RedisModule_DbSize(context) > 0; });
  return found;
}

/// Whether the server is a replica, or a node of a cluster that is to become one: it does not call
/// itself one before its first routine.
bool will_be_replica(Context* context) {
  if (is_replica()) return true;
  if (!is_in_cluster()) return false;
  int flags = 0;
  const std::string id(RedisModule_GetMyClusterID(), REDISMODULE_NODE_ID_LEN);  // no NUL ends it
  return RedisModule_GetClusterNodeInfo(context, id.c_str(), nullptr, nullptr, nullptr, &flags) ==
             REDISMODULE_OK &&
         (flags & REDISMODULE_NODE_SLAVE) != 0;
}

/// A field of INFO; no bytes if there is none.
std::string server_info(Context* context, const char* section, const char* name) {
  RedisModuleServerInfoData* info = RedisModule_GetServerInfo(context, section);
  const char* value = RedisModule_ServerInfoGetFieldC(info, name);
  const std::string found(value != nullptr ? value : "");
  RedisModule_FreeServerInfo(context, info);
  return found;
}

bool replicate(Context* context, const char* host, const char* port) {
  return !CallReply(RedisModule_Call(context, "REPLICAOF", "cc", host, port)).is_error();
}

/// Makes a replica ask its primary for all keys: a server that was none for a moment has a place in
/// a stream of its own only.
bool follow_anew(Context* context) {
  const std::string host = server_info(context, "replication", "master_host");
  const std::string port = server_info(context, "replication", "master_port");
  return replicate(context, "NO", "ONE") && replicate(context, host.c_str(), port.c_str());
}

/// Makes replicas, and a node of a cluster that becomes one, ask for all keys.
bool change_identity(Context* context) {
  return !CallReply(RedisModule_Call(context, "DEBUG", "c", "CHANGE-REPL-ID")).is_error();
}

/// The commands that gave the keys to the server are none of a client's.
void forget_commands(Context* context) {
  for (const auto& [command, argument] : {std::pair("CONFIG", "RESETSTAT"), {"SLOWLOG", "RESET"}})
    CallReply(RedisModule_Call(context, command, "c", argument));
}

/// Lets clients in while keys come back. The server does so for a context that has existed for its
/// `busy-reply-threshold`, five seconds unless an operator has set it. So that is 0 until the end.
class Door {
 public:
  explicit Door(Context* context) : context_(context) {
    const CallReply before(RedisModule_Call(context, "CONFIG", "cc", "GET", kThreshold));
    threshold_ = before.element_bytes(1);
    set("0");
  }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  ~Door() { set(threshold_.c_str()); }

  /// To be called often.
  void open() {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    Context* own = RedisModule_GetDetachedThreadSafeContext(context_);
    RedisModule_Yield(own, REDISMODULE_YIELD_FLAG_CLIENTS, "keys are coming back");
    RedisModule_FreeThreadSafeContext(own);
    next_ = std::chrono::steady_clock::now() + kPause;
  }

 private:
  static constexpr const char* kThreshold = "busy-reply-threshold";
  static constexpr std::chrono::milliseconds kPause{50};

  void set(const char* value) {
    if (threshold_.empty()) return;
    CallReply(RedisModule_Call(context_, "CONFIG", "ccc", "SET", kThreshold, value));
  }

  Context* context_;
  std::string threshold_;
  std::chrono::steady_clock::time_point next_;
};

bool cluster_is_up(Context* context) {
  const CallReply reply(RedisModule_Call(context, "CLUSTER", "c", "INFO"));
  return reply.bytes().find("cluster_state:ok") != std::string_view::npos;
}

}  // namespace

Restorer::Restorer(const Settings& settings, Catalogue& catalogue, Tables& tables, Reaper& reaper,
                   Refusal& refusal, WriteThrough& write_through)
    : settings_(settings),
      catalogue_(catalogue),
      tables_(tables),
      reaper_(reaper),
      refusal_(refusal),
      write_through_(write_through),
      takes_file_(catalogue.is_new()) {}

void Restorer::check(Context* context) {
  server_has_keys_ = has_keys(context);
  const std::string clients = server_info(context, "clients", "connected_clients");
  runs_ = !clients.empty() && clients != "0";
  if (server_has_keys_ && !catalogue_.is_new())
    throw Error(Errc::already_exists,
                "the server has keys, and the pool has those of another run: load the module with "
                "the server's start, or give it a new pool");
  if (is_of_no_use() && !will_be_replica(context))
    throw Error(Errc::truncated,
                "the pool has a part of a primary's keys, since its server ended in the middle of "
                "a full synchronisation; start the server as a replica, or with a new pool to take "
                "its file, or load the module with `partial serve` to go on with that part");
}

/// Whether the pool has a part of a primary's keys, which must not be served.
bool Restorer::is_of_no_use() const {
  return catalogue_.is_partial() && !settings_.serves_partial();
}

void Restorer::begin(Context* context) {
  if (server_has_keys_) finish(context);
}

void Restorer::on_loading(Context* context, Source source) {
  loading_ = true;
  loaded_ = loaded_ || source == Source::rdb_file || source == Source::append_only_file;
  has_place_ = has_place_ || (starting_ && source == Source::rdb_file);
  synchronising_ = source == Source::primary;
  if (!synchronising_) return;
  write_through_.set_whole(false);
  if (!withholds_) return;
  // The server does not have what the pool still has, so what it empties now is no flush of that.
  write_through_.flush(context, Catalogue::kAllDatabases);
  write_through_.commit(context);
  tables_.drop_orphans();
}

void Restorer::on_loaded(Context* context, bool complete) {
  loading_ = false;
  if (starting_) finish(context);
  if (synchronising_ && complete) {
    withholds_ = false;
    write_through_.set_whole(true);
  }
  synchronising_ = false;
}

void Restorer::on_promotion(Context* context) {
  if (following_anew_) return;
  if (withholds_) {
    failed_ = true;
    throw Error(Errc::truncated,
                "the server was promoted before its primary had sent all keys, and its pool has a "
                "part of them: load the module with `partial serve` to go on with that part");
  }
  if (write_through_.is_whole()) return;
  log(context, "warning", "the server was promoted, and may lack keys of its former primary");
  write_through_.set_whole(true);
}

void Restorer::on_first_turn(Context* context) {
  if (starting_) finish(context);
  if (has_stale_place_) forget_place(context);
}

/// Makes the server forget which commands of its primary it has had. A primary forgets which ones
/// it has sent: its pool may have more than any replica. In a cluster a replica is one later.
void Restorer::forget_place(Context* context) {
  has_stale_place_ = false;
  const bool fails = will_be_replica(context);
  following_anew_ = true;
  const bool forgets = is_replica() ? follow_anew(context) : change_identity(context);
  following_anew_ = false;
  if (forgets) return;
  const std::string why =
      "the server does not forget the place of the RDB file in the stream of commands; remove the "
      "file, since the pool is newer";
  failed_ = fails;
  if (fails) throw Error(Errc::unsupported, why);
  log(context, "warning", why);
}

void Restorer::finish(Context* context) {
  const auto begin = std::chrono::steady_clock::now();
  failed_ = true;  // until the end
  if (!takes_file_) {
    if (loaded_) clear_loaded(context);
    is_of_no_use() ? withhold(context) : give_keys(context);
    // What is withheld comes with all keys only, and not with the commands from a place on.
    has_stale_place_ = has_place_ && (withholds_ || settings_.keeps_native_keys());
  }
  starting_ = false;
  write_through_.set_active(true);
  if (takes_file_) adopt_loaded(context);
  // What could not be read, or is withheld, may have tables.
  if (unreadable_ == 0 && !withholds_) tables_.drop_orphans();
  for (const std::uint32_t space : catalogue_.abandoned()) reaper_.erase_space(space);
  failed_ = false;
  if (keys_ > 0 && !server_has_keys_) forget_commands(context);
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  log(context, "notice",
      std::to_string(keys_) + " keys of the pool are back after " +
          std::to_string(static_cast<long long>(seconds_ * 1e6)) + " us, " +
          std::to_string(expired_) + " had expired");
}

void Restorer::withhold(Context* context) {
  withholds_ = true;
  write_through_.set_whole(false);
  log(context, "warning", "the pool has a part of a primary's keys, which is not served");
}

void Restorer::give_keys(Context* context) {
  // A client that is there already may have queued a part of a transaction.
  const bool lets_clients_in = settings_.keeps_native_keys() && !is_in_cluster() && !runs_;
  if (!lets_clients_in) return give_all(context, [] {});
  refusal_.set_loading(true);
  Door door(context);
  std::uint64_t given = 0;
  give_all(context, [&] {
    if (given++ % kKeysAtOnce == 0) door.open();
  });
  refusal_.set_loading(false);
}

template <class BeforeEach>
void Restorer::give_all(Context* context, BeforeEach before_each) {
  catalogue_.for_each([&](int database, std::string_view name, std::string_view bytes) {
    before_each();
    give_key(context, database, name, bytes);
  });
}

void Restorer::give_key(Context* context, int database, std::string_view name,
                        std::string_view bytes) {
  const SelectedDatabase selected(context, database);
  if (!selected.exists())
    throw Error(Errc::invalid_argument, "the pool has keys of database " +
                                            std::to_string(database) +
                                            ", which this server has not: raise `databases`");
  give_or_refuse(context, database, name, [&] {
    const Record record = decode_record(bytes);
    if (record.type == Record::Type::table) write_through_.remember(database, name);
    return !forget_expired(database, name, record) && give_value(context, record, name);
  });
}

/// A replica expires nothing: its primary says when.
bool Restorer::forget_expired(int database, std::string_view name, const Record& record) {
  const bool native = record.type == Record::Type::text || record.type == Record::Type::dump;
  if (!native || record.expires == Record::kNever || record.expires > RedisModule_Milliseconds() ||
      is_replica())
    return false;
  write_through_.forget(database, name);
  ++expired_;
  return true;
}

/// give() says whether the server has the key now.
template <class Give>
void Restorer::give_or_refuse(Context* context, int database, std::string_view name, Give give) {
  try {
    if (give()) ++keys_;
  } catch (const Error& error) {
    if (error.code() != Errc::unsupported && error.code() != Errc::corrupt) throw;
    const std::string what = "the key '" + std::string(name) + "' of database " +
                             std::to_string(database) + " can't be read: " + error.what();
    if (!settings_.skips_unreadable())
      throw Error(error.code(), what +
                                    "; start the server and the module that wrote the pool, or "
                                    "load this one with `unreadable skip` to go without such keys");
    ++unreadable_;
    log(context, "warning", what);
  }
}

bool Restorer::give_value(Context* context, const Record& record, std::string_view name) {
  switch (record.type) {
    case Record::Type::table:
      give_table(context, String(name).get(), table_in(record), record.expires);
      return true;
    case Record::Type::text:
      if (!set_text(context, record, name)) set_text_directly(context, record, name);
      return true;
    case Record::Type::dump: return give_dump(context, record, name);
  }
  throw Error(Errc::unsupported,
              "its record has the unknown type " + std::to_string(static_cast<int>(record.type)));
}

bool Restorer::give_dump(Context* context, const Record& record, std::string_view name) {
  if (restore_dump(context, kAlone, record, name)) return true;
  if (!is_in_cluster()) throw Error(Errc::unsupported, "the server refuses RESTORE");
  waits_for_cluster_ = true;
  return false;
}

void Restorer::on_turn(Context* context) {
  // While clients are paused nothing may be replicated.
  if (RedisModule_AvoidReplicaTraffic() != 0 || !cluster_is_up(context)) return;
  waits_for_cluster_ = false;
  if (is_replica()) return;  // its primary has them
  failed_ = true;
  write_through_.set_active(false);
  catalogue_.for_each([&](int database, std::string_view name, std::string_view bytes) {
    const Record record = decode_record(bytes);
    if (record.type != Record::Type::dump) return;
    const SelectedDatabase selected(context, database);  // not 0: Valkey 9 has cluster-databases
    if (forget_expired(database, name, record)) return;
    give_or_refuse(context, database, name, [&] { return give_waiting(context, record, name); });
  });
  write_through_.set_active(true);
  failed_ = false;
}

bool Restorer::give_waiting(Context* context, const Record& record, std::string_view name) {
  if (restore_dump(context, kReplicated, record, name)) return true;
  log(context, "warning",
      "the slot of the key '" + std::string(name) +
          "' belongs to another node: the key stays away");
  ++foreign_;
  return false;
}

void Restorer::give_table(Context* context, RedisModuleString* name, std::uint64_t id,
                          long long expires) {
  auto table = tables_.adopt(id);
  if (table == nullptr) throw Error(Errc::corrupt, "the pool has no table " + std::to_string(id));
  const Key key(context, name, REDISMODULE_READ | REDISMODULE_WRITE);
  set_table(key.get(), std::move(table));
  if (expires != Record::kNever) RedisModule_SetAbsExpire(key.get(), expires);
}

void Restorer::clear_loaded(Context* context) {
  if (settings_.keeps_native_keys()) {
    RedisModule_ResetDataset(0, 0);
    return;
  }
  for_each_database(context, [context](int) {
    const auto stubs = key_names(context, [](RedisModuleKey* key) {
      const TableValue* value = key != nullptr ? table_value(key) : nullptr;
      return value != nullptr && value->table == nullptr;
    });
    for (const std::string& name : stubs) {
      const String key_name(name);
      const Key key(context, key_name.get(), REDISMODULE_READ | REDISMODULE_WRITE);
      RedisModule_DeleteKey(key.get());
    }
  });
}

void Restorer::adopt_loaded(Context* context) {
  const bool native = settings_.keeps_native_keys();
  for_each_database(context, [&](int database) {
    const auto names = key_names(context, [native](RedisModuleKey* key) {
      return native || (key != nullptr && table_value(key) != nullptr);
    });
    for (const std::string& name : names) write_through_.mark(database, name);
    write_through_.commit(context);
  });
}

}  // namespace perdix::valkey
