// Parts that the module's commands share: arguments, tables, replies, errors.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "api.h"
#include "fields.h"
#include "module.h"
#include "table_type.h"

namespace perdix::valkey {

/// A command: its arguments have the number that it was registered with. Throws Error.
using Handler = int (*)(Context* context, Arguments arguments);

/// Replies with an error: PXFULL for a full pool, PXIO for a failed device, else ERR.
int reply_error(Context* context, const std::exception& error);

int reply_wrong_type(Context* context);

inline int reply_bytes(Context* context, std::string_view bytes) {
  return RedisModule_ReplyWithStringBuffer(context, bytes.data(), bytes.size());
}

inline int reply_number(Context* context, std::uint64_t number) {
  return RedisModule_ReplyWithLongLong(context, static_cast<long long>(number));
}

/// The key of a command, open, and its table.
class TableKey {
 public:
  /// Throws io_error for a command that writes after the device has failed. A replica follows its
  /// primary, whatever it can keep.
  TableKey(Context* context, RedisModuleString* name, int mode)
      : key_(context, name, mode),
        value_(key_.get() != nullptr ? table_value(key_.get()) : nullptr) {
    if ((mode & REDISMODULE_WRITE) == 0) return;
    if (!is_replica()) module().refusal().check_device();
    context_ = context;
    name_ = name;
  }
  TableKey(const TableKey&) = delete;
  TableKey& operator=(const TableKey&) = delete;

  /// Tells clients that watch the key, or have it in a cache, that it has changed.
  ~TableKey() {
    if (context_ != nullptr) RedisModule_SignalModifiedKey(context_, name_);
  }

  /// Whether the key holds a value of another type, or a table that is being loaded.
  bool is_wrong_type() const {
    return !is_absent() && (value_ == nullptr || value_->table == nullptr);
  }
  bool is_absent() const { return key_.is_absent(); }

  Table& table() const { return *value_->table; }
  const IndexInfo& info() const { return table().info(); }

  /// Makes a new table the value.
  void set(std::shared_ptr<Table> table) {
    set_table(key_.get(), std::move(table));
    value_ = table_value(key_.get());
  }

 private:
  Key key_;
  TableValue* value_;
  Context* context_ = nullptr;  // of a command that writes
  RedisModuleString* name_ = nullptr;
};

/// Tells clients that listen to keyspace events.
inline void notify(Context* context, const char* event, RedisModuleString* name) {
  RedisModule_NotifyKeyspaceEvent(context, REDISMODULE_NOTIFY_MODULE, event, name);
}

/// Compares an argument with a word, whatever its case.
bool is_word(const RedisModuleString* argument, std::string_view word);

/// A number in an argument. Throws invalid_argument.
std::uint64_t count_in(const RedisModuleString* argument);

/// Creates a table as the default of the settings, and replicates its creation.
void create_default(Context* context, TableKey& key, RedisModuleString* name);

int create_table(Context* context, Arguments arguments);
int describe_table(Context* context, Arguments arguments);
int put_pairs(Context* context, Arguments arguments);
int insert_pair(Context* context, Arguments arguments);
int get_value(Context* context, Arguments arguments);
int get_values(Context* context, Arguments arguments);
int erase_fields(Context* context, Arguments arguments);
int count_fields(Context* context, Arguments arguments);
int count_pairs(Context* context, Arguments arguments);
int show_range(Context* context, Arguments arguments);
int show_range_backwards(Context* context, Arguments arguments);
int scan_pairs(Context* context, Arguments arguments);
int increment(Context* context, Arguments arguments);
int compare_and_set(Context* context, Arguments arguments);

}  // namespace perdix::valkey
