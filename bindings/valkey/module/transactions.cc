#include "transactions.h"

namespace perdix::valkey {
namespace {

/// A line of the list for each client: name=value, separated by spaces. The flag of a client with
/// an open transaction is x.
bool any_is_open(Context* context) {
  constexpr std::string_view kFlags = " flags=";
  const CallReply reply(RedisModule_Call(context, "CLIENT", "c", "LIST"));
  const std::string_view list = reply.bytes();
  for (auto at = list.find(kFlags); at != std::string_view::npos; at = list.find(kFlags, at)) {
    at += kFlags.size();
    if (list.substr(at, list.find(' ', at) - at).find('x') != std::string_view::npos) return true;
  }
  return reply.is_error();
}

}  // namespace

bool is_open(unsigned long long client) {
  RedisModuleClientInfoV1 info = REDISMODULE_CLIENTINFO_INITIALIZER_V1;
  return RedisModule_GetClientInfoById(&info, client) == REDISMODULE_OK &&
         (info.flags & REDISMODULE_CLIENTINFO_FLAG_MULTI) != 0;
}

bool Transactions::may_hold(Context* context, RedisModuleCommandFilterCtx* command) {
  if (RedisModule_CommandFilterGetClientId != nullptr)
    return is_open(RedisModule_CommandFilterGetClientId(command));
  if (may_be_open_) may_be_open_ = any_is_open(context);
  return may_be_open_;
}

}  // namespace perdix::valkey
