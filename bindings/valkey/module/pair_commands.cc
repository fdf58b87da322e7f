// PX.PUT, PX.INSERT, PX.GET, PX.MGET, PX.DEL, PX.EXISTS: pairs by their fields.
//
// A write is durable when the call of the index has returned, so before its reply leaves. Of a
// command with several pairs each is durable by itself.
#include <algorithm>
#include <vector>

#include "command.h"

namespace perdix::valkey {
namespace {

/// Replicates the pairs that were written before one failed, so that replicas have the same.
class WrittenPairs {
 public:
  WrittenPairs(Context* context, Arguments arguments) : context_(context), arguments_(arguments) {}
  ~WrittenPairs() {
    if (count_ == 0) return;
    if (2 * count_ + 2 == arguments_.size()) {
      RedisModule_ReplicateVerbatim(context_);
    } else {
      RedisModule_Replicate(context_, "PX.PUT", "sv", arguments_[1], arguments_.data() + 2,
                            2 * count_);
    }
    notify(context_, "px.put", arguments_[1]);
  }

  void add() { ++count_; }

 private:
  Context* context_;
  Arguments arguments_;
  std::size_t count_ = 0;
};

}  // namespace

int put_pairs(Context* context, Arguments arguments) {
  if (arguments.size() % 2 != 0) return RedisModule_WrongArity(context);
  TableKey key(context, arguments[1], REDISMODULE_READ | REDISMODULE_WRITE);
  if (key.is_wrong_type()) return reply_wrong_type(context);
  if (key.is_absent()) create_default(context, key, arguments[1]);
  Index& index = key.table().index();
  WrittenPairs written(context, arguments);
  for (std::size_t i = 2; i < arguments.size(); i += 2) {
    const Encoded field(key.info().key_kind, view(arguments[i]));
    index.put(field.bytes(), Encoded(key.info().value_kind, view(arguments[i + 1])).bytes());
    written.add();
  }
  return RedisModule_ReplyWithSimpleString(context, "OK");
}

int insert_pair(Context* context, Arguments arguments) {
  TableKey key(context, arguments[1], REDISMODULE_READ | REDISMODULE_WRITE);
  if (key.is_wrong_type()) return reply_wrong_type(context);
  if (key.is_absent()) create_default(context, key, arguments[1]);
  const Encoded field(key.info().key_kind, view(arguments[2]));
  const Encoded value(key.info().value_kind, view(arguments[3]));
  const bool added = key.table().index().insert(field.bytes(), value.bytes());
  if (added) {
    RedisModule_Replicate(context, "PX.PUT", "sss", arguments[1], arguments[2], arguments[3]);
    notify(context, "px.insert", arguments[1]);
  }
  return reply_number(context, added ? 1 : 0);
}

int get_value(Context* context, Arguments arguments) {
  const TableKey key(context, arguments[1], REDISMODULE_READ);
  if (key.is_wrong_type()) return reply_wrong_type(context);
  if (key.is_absent()) return RedisModule_ReplyWithNull(context);
  Table& table = key.table();
  const Encoded field(key.info().key_kind, view(arguments[2]));
  if (!table.index().get(field.bytes(), table.scratch())) return RedisModule_ReplyWithNull(context);
  return reply_bytes(context, Decoded(key.info().value_kind, table.scratch()).text());
}

int get_values(Context* context, Arguments arguments) {
  const TableKey key(context, arguments[1], REDISMODULE_READ);
  if (key.is_wrong_type()) return reply_wrong_type(context);
  const Arguments fields = arguments.subspan(2);
  std::vector<std::optional<std::string>> values(fields.size());
  if (!key.is_absent()) {
    std::vector<Encoded> encoded;
    encoded.reserve(fields.size());
    for (const auto* field : fields) encoded.emplace_back(key.info().key_kind, view(field));
    std::vector<std::string_view> keys;
    keys.reserve(fields.size());
    for (const Encoded& field : encoded) keys.push_back(field.bytes());
    key.table().index().get_many(keys, values);
  }
  RedisModule_ReplyWithArray(context, static_cast<long>(values.size()));
  for (const auto& value : values) {
    if (value) {
      reply_bytes(context, Decoded(key.info().value_kind, *value).text());
    } else {
      RedisModule_ReplyWithNull(context);
    }
  }
  return REDISMODULE_OK;
}

int erase_fields(Context* context, Arguments arguments) {
  const TableKey key(context, arguments[1], REDISMODULE_READ | REDISMODULE_WRITE);
  if (key.is_wrong_type()) return reply_wrong_type(context);
  if (key.is_absent()) return reply_number(context, 0);
  Index& index = key.table().index();
  std::vector<Encoded> fields;
  for (const auto* field : arguments.subspan(2))
    fields.emplace_back(key.info().key_kind, view(field));
  // An erase needs no space. If one fails all the same, the replicas get the same error.
  RedisModule_ReplicateVerbatim(context);
  std::uint64_t erased = 0;
  for (const Encoded& field : fields) erased += index.erase(field.bytes()) ? 1 : 0;
  if (erased > 0) notify(context, "px.del", arguments[1]);
  return reply_number(context, erased);
}

int count_fields(Context* context, Arguments arguments) {
  const TableKey key(context, arguments[1], REDISMODULE_READ);
  if (key.is_wrong_type()) return reply_wrong_type(context);
  if (key.is_absent()) return reply_number(context, 0);
  const Index& index = key.table().index();
  std::uint64_t there = 0;
  for (const auto* field : arguments.subspan(2)) {
    const Encoded encoded(key.info().key_kind, view(field));
    there += index.contains(encoded.bytes()) ? 1 : 0;
  }
  return reply_number(context, there);
}

}  // namespace perdix::valkey
