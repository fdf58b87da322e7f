// The server's module API as C++: the header of the crate valkey-module, and owners of what it
// hands out.
//
// The API's functions are pointers that RedisModule_Init() fills in. A pointer is null where the
// server is too old for the function.
#pragma once

#define REDISMODULE_API inline
#define REDISMODULE_ATTR
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <redismodule.h>

namespace perdix::valkey {

using Context = RedisModuleCtx;

/// The arguments of a command, its name first.
using Arguments = std::span<RedisModuleString*>;

/// The bytes of a server's string. They live as long as the string.
inline std::string_view view(const RedisModuleString* string) {
  std::size_t size = 0;
  const char* bytes = RedisModule_StringPtrLen(string, &size);
  return {bytes, size};
}

/// A string of the server's.
class String {
 public:
  explicit String(std::string_view bytes)
      : string_(RedisModule_CreateString(nullptr, bytes.data(), bytes.size())) {}
  String(String&& other) noexcept : string_(std::exchange(other.string_, nullptr)) {}
  String& operator=(String&&) = delete;
  ~String() {
    if (string_ != nullptr) RedisModule_FreeString(nullptr, string_);
  }

  RedisModuleString* get() const noexcept { return string_; }

 private:
  RedisModuleString* string_;
};

/// Opens a key for a look that the server does not take for a client's: it changes no statistics
/// and no age of the key, causes no event, and removes no key that has expired. Redis 7.0 knows the
/// first flag of these only, but it counts no looks of those who may write. So a key that is opened
/// may be absent.
inline int peek_mode() {
  constexpr int kLook = REDISMODULE_READ | REDISMODULE_OPEN_KEY_NOTOUCH;
  return RedisModule_GetOpenKeyModesAll != nullptr
             ? kLook | REDISMODULE_OPEN_KEY_NONOTIFY | REDISMODULE_OPEN_KEY_NOSTATS |
                   REDISMODULE_OPEN_KEY_NOEXPIRE
             : kLook | REDISMODULE_WRITE;
}

/// An open key; null if it is absent and opened for reading. The server does not tell clients that
/// it has changed (REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED).
class Key {
 public:
  Key(Context* context, RedisModuleString* name, int mode)
      : key_(static_cast<RedisModuleKey*>(RedisModule_OpenKey(context, name, mode))) {}
  Key(const Key&) = delete;
  Key& operator=(const Key&) = delete;
  ~Key() {
    if (key_ != nullptr) RedisModule_CloseKey(key_);
  }

  RedisModuleKey* get() const noexcept { return key_; }

  /// A REDISMODULE_KEYTYPE_ constant.
  int type() const { return RedisModule_KeyType(key_); }

  bool is_absent() const { return key_ == nullptr || type() == REDISMODULE_KEYTYPE_EMPTY; }

 private:
  RedisModuleKey* key_;
};

/// Until its end a command that reads a key changes neither its age nor its frequency. The command
/// may find that the key has expired, and remove it.
class UntouchedKey {
 public:
  UntouchedKey(Context* context, RedisModuleString* name, RedisModuleKey* key)
      : context_(context), name_(name) {
    RedisModule_GetLRU(key, &idle_);
    RedisModule_GetLFU(key, &frequency_);
  }
  UntouchedKey(const UntouchedKey&) = delete;
  UntouchedKey& operator=(const UntouchedKey&) = delete;
  ~UntouchedKey() {
    const Key key(context_, name_, peek_mode());
    if (key.is_absent()) return;
    if (idle_ >= 0) set_idle(key.get());
    if (frequency_ >= 0) RedisModule_SetLFU(key.get(), frequency_);
  }

 private:
  /// Valkey 9.1 takes another unit than it gives. There the command counts as a touch: a key that
  /// looks older than it is would be evicted first.
  void set_idle(RedisModuleKey* key) const {
    constexpr mstime_t kMayDiffer = 10'000;  // clocks of ages are coarse
    mstime_t set = -1;
    RedisModule_SetLRU(key, idle_);
    RedisModule_GetLRU(key, &set);
    if (std::abs(set - idle_) > kMayDiffer) RedisModule_SetLRU(key, 0);
  }

  Context* context_;
  RedisModuleString* name_;
  mstime_t idle_ = -1;  // the server has one of the two, as its policy of eviction needs
  long long frequency_ = -1;
};

/// Selects a database until its end. The context may be that of a client, which must not notice.
class SelectedDatabase {
 public:
  SelectedDatabase(Context* context, int database)
      : context_(context),
        before_(RedisModule_GetSelectedDb(context)),
        exists_(RedisModule_SelectDb(context, database) == REDISMODULE_OK) {}
  SelectedDatabase(const SelectedDatabase&) = delete;
  SelectedDatabase& operator=(const SelectedDatabase&) = delete;
  ~SelectedDatabase() { RedisModule_SelectDb(context_, before_); }

  /// Whether the server has it.
  bool exists() const noexcept { return exists_; }

 private:
  Context* context_;
  int before_;
  bool exists_;
};

/// What a command that the module called has replied. Null if the call was refused.
class CallReply {
 public:
  explicit CallReply(RedisModuleCallReply* reply) : reply_(reply) {}
  CallReply(const CallReply&) = delete;
  CallReply& operator=(const CallReply&) = delete;
  ~CallReply() {
    if (reply_ != nullptr) RedisModule_FreeCallReply(reply_);
  }

  bool is_string() const { return type() == REDISMODULE_REPLY_STRING; }
  bool is_null() const { return reply_ == nullptr; }
  bool is_error() const { return reply_ == nullptr || type() == REDISMODULE_REPLY_ERROR; }

  /// An element of an array; null if there is none. It lives as long as this.
  RedisModuleCallReply* element(std::size_t place) const {
    return type() == REDISMODULE_REPLY_ARRAY ? RedisModule_CallReplyArrayElement(reply_, place)
                                             : nullptr;
  }

  /// The bytes of a string or an error, and of an element that is one.
  std::string_view bytes() const { return bytes_of(reply_); }
  std::string_view element_bytes(std::size_t place) const { return bytes_of(element(place)); }

 private:
  int type() const {
    return reply_ != nullptr ? RedisModule_CallReplyType(reply_) : REDISMODULE_REPLY_UNKNOWN;
  }

  static std::string_view bytes_of(RedisModuleCallReply* reply) {
    std::size_t size = 0;
    const char* bytes = reply != nullptr ? RedisModule_CallReplyStringPtr(reply, &size) : nullptr;
    return bytes != nullptr ? std::string_view(bytes, size) : std::string_view();
  }

  RedisModuleCallReply* reply_;
};

/// Writes a line to the server's log. The context may be null, as in threads of the module.
inline void log(Context* context, const char* level, const std::string& message) {
  RedisModule_Log(context, level, "%s", message.c_str());
}

/// Whether the server is loading a file or a full synchronisation.
inline bool is_loading(Context* context) {
  return (RedisModule_GetContextFlags(context) & REDISMODULE_CTX_FLAGS_LOADING) != 0;
}

/// Whether a script or a transaction is being executed.
inline bool is_in_unit() {
  return (RedisModule_GetContextFlags(nullptr) &
          (REDISMODULE_CTX_FLAGS_LUA | REDISMODULE_CTX_FLAGS_MULTI)) != 0;
}

/// Whether the server is a node of a cluster.
inline bool is_in_cluster() {
  return (RedisModule_GetContextFlags(nullptr) & REDISMODULE_CTX_FLAGS_CLUSTER) != 0;
}

/// Whether the server is a replica.
inline bool is_replica() {
  return (RedisModule_GetContextFlags(nullptr) & REDISMODULE_CTX_FLAGS_SLAVE) != 0;
}

}  // namespace perdix::valkey
