#include "command_traits.h"

#include <algorithm>

namespace perdix::valkey {
namespace {

// Places in the reply to COMMAND INFO.
constexpr std::size_t kName = 0;
constexpr std::size_t kFlags = 2;
constexpr std::size_t kKeySpecifications = 8;
constexpr std::size_t kSubcommands = 9;

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  return result;
}

std::string_view text_of(RedisModuleCallReply* reply) {
  std::size_t size = 0;
  const char* bytes = reply != nullptr ? RedisModule_CallReplyStringPtr(reply, &size) : nullptr;
  return bytes != nullptr ? std::string_view(bytes, size) : std::string_view();
}

bool has_flag(RedisModuleCallReply* flags, std::string_view wanted) {
  const std::size_t count = RedisModule_CallReplyLength(flags);
  for (std::size_t i = 0; i < count; ++i)
    if (text_of(RedisModule_CallReplyArrayElement(flags, i)) == wanted) return true;
  return false;
}

/// The value in a list of names and values; null if there is none.
RedisModuleCallReply* value_of(RedisModuleCallReply* pairs, std::string_view name) {
  const std::size_t count = RedisModule_CallReplyLength(pairs);
  for (std::size_t i = 0; i + 1 < count; i += 2)
    if (text_of(RedisModule_CallReplyArrayElement(pairs, i)) == name)
      return RedisModule_CallReplyArrayElement(pairs, i + 1);
  return nullptr;
}

/// Whether a command has keys of one kind, and adds to their values.
bool adds_to_all(RedisModuleCallReply* specifications, std::string_view name) {
  if (specifications == nullptr || RedisModule_CallReplyLength(specifications) != 1) return false;
  RedisModuleCallReply* flags =
      value_of(RedisModule_CallReplyArrayElement(specifications, 0), "flags");
  if (flags == nullptr || !has_flag(flags, "RW") || has_flag(flags, "variable_flags")) return false;
  return (has_flag(flags, "insert") || has_flag(flags, "update")) && name != "getset";
}

CommandTraits decode(RedisModuleCallReply* info) {
  RedisModuleCallReply* flags = RedisModule_CallReplyArrayElement(info, kFlags);
  RedisModuleCallReply* subcommands = RedisModule_CallReplyArrayElement(info, kSubcommands);
  CommandTraits traits;
  traits.name = lower(text_of(RedisModule_CallReplyArrayElement(info, kName)));
  traits.writes = has_flag(flags, "write");
  traits.adds = has_flag(flags, "denyoom");
  // The server has no flag for these; no other command has both. EVAL_RO and its like only read.
  traits.runs_script = has_flag(flags, "noscript") && has_flag(flags, "no_mandatory_keys") &&
                       !has_flag(flags, "readonly");
  traits.grows_keys =
      traits.adds &&
      adds_to_all(RedisModule_CallReplyArrayElement(info, kKeySpecifications), traits.name);
  traits.has_subcommands = subcommands != nullptr && RedisModule_CallReplyLength(subcommands) > 0;
  return traits;
}

bool has_own_name(Context* context, std::string_view name) {
  const auto traits = traits_of(context, name);
  return traits && traits->name == name;
}

/// Whether the server has a command under any name. The list has the server's own names.
bool is_listed(Context* context, std::string_view name) {
  const CallReply list(RedisModule_Call(context, "COMMAND", "c", "LIST"));
  for (std::size_t i = 0; RedisModuleCallReply* command = list.element(i); ++i)
    if (text_of(command) == name) return true;
  return false;
}

[[noreturn]] void refuse_name(std::string_view name, const char* why) {
  throw Error(Errc::unsupported, "the configuration renames or disables the command '" +
                                     std::string(name) + "' (rename-command), " + why);
}

}  // namespace

void check_names(Context* context, const std::vector<std::string_view>& called,
                 const std::vector<std::string_view>& watched) {
  for (const std::string_view name : called)
    if (!has_own_name(context, name)) refuse_name(name, "and the module calls it");
  for (const std::string_view name : watched)
    if (!has_own_name(context, name) && is_listed(context, name))
      refuse_name(name, "and the module must know what it changes");
}

std::optional<CommandTraits> traits_of(Context* context, std::string_view word) {
  const CallReply reply(
      RedisModule_Call(context, "COMMAND", "cb", "INFO", word.data(), word.size()));
  RedisModuleCallReply* info = reply.element(0);
  if (info == nullptr || RedisModule_CallReplyType(info) != REDISMODULE_REPLY_ARRAY)
    return std::nullopt;
  return decode(info);
}

const CommandTraits* KnownCommands::find(RedisModuleCommandFilterCtx* command) {
  std::string word = lower(view(RedisModule_CommandFilterArgGet(command, 0)));
  const CommandTraits* traits = find(word);
  if (traits == nullptr || !traits->has_subcommands ||
      RedisModule_CommandFilterArgsCount(command) < 2)
    return traits;
  word.push_back('|');
  word.append(lower(view(RedisModule_CommandFilterArgGet(command, 1))));
  return find(word);
}

/// Words that are no command are not remembered: clients may send any number of them.
const CommandTraits* KnownCommands::find(const std::string& word) {
  const auto found = known_.find(word);
  if (found != known_.end()) return &found->second;
  auto traits = traits_of(context_, word);
  return traits ? &known_.emplace(word, std::move(*traits)).first->second : nullptr;
}

}  // namespace perdix::valkey
