#include "stream_watch.h"

#include <algorithm>
#include <array>

namespace perdix::valkey {
namespace {

StreamWatch*& installed() {
  static StreamWatch* watch = nullptr;
  return watch;
}

void look(RedisModuleCommandFilterCtx* command) { installed()->look_at(command); }

std::string_view argument(RedisModuleCommandFilterCtx* command, int place) {
  return view(RedisModule_CommandFilterArgGet(command, place));
}

bool is_word(std::string_view text, std::string_view upper) {
  return std::equal(text.begin(), text.end(), upper.begin(), upper.end(), [](char c, char wanted) {
    return (c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c) == wanted;
  });
}

bool changes_first_argument(std::string_view name) {
  constexpr std::array kCommands{"XACK", "XCLAIM", "XAUTOCLAIM", "XACKDEL", "XDELEX"};
  return std::any_of(kCommands.begin(), kCommands.end(),
                     [name](const char* command) { return is_word(name, command); });
}

/// The streams that a command for groups changes.
std::vector<std::string> streams_of(RedisModuleCommandFilterCtx* command, int count) {
  const std::string_view name = argument(command, 0);
  if (count > 1 && changes_first_argument(name)) return {std::string(argument(command, 1))};
  if (!is_word(name, "XREADGROUP")) return {};
  int place = 1;
  while (place < count && !is_word(argument(command, place), "STREAMS")) ++place;
  // Behind STREAMS: all names, then as many positions.
  std::vector<std::string> names;
  for (int left = (count - place - 1) / 2; left > 0; --left)
    names.emplace_back(argument(command, ++place));
  return names;
}

unsigned long long client_of(RedisModuleCommandFilterCtx* command) {
  return RedisModule_CommandFilterGetClientId != nullptr
             ? RedisModule_CommandFilterGetClientId(command)
             : 0;
}

}  // namespace

void StreamWatch::install(Context* context) {
  installed() = this;
  RedisModule_RegisterCommandFilter(context, look, 0);
}

void StreamWatch::look_at(RedisModuleCommandFilterCtx* command) {
  const std::string_view name = argument(command, 0);
  if (name.empty()) return;
  if ((name[0] | 0x20) == 'x') {
    for (const std::string& stream :
         streams_of(command, RedisModule_CommandFilterArgsCount(command)))
      mark(client_of(command), stream);
  } else if (!seen_.empty() && is_word(name, "EXEC")) {
    mark_queued(client_of(command));
  }
}

void StreamWatch::mark(unsigned long long client, const std::string& name) {
  // A filter is not told the database. Each that may have the stream is looked at.
  for (int database = 0; database < catalogue_.databases(); ++database)
    write_through_.mark(database, name);
  seen_[client].insert(name);
}

void StreamWatch::mark_queued(unsigned long long client) {
  const auto found = seen_.find(client);
  if (found == seen_.end()) return;
  for (const std::string& name : found->second)
    for (int database = 0; database < catalogue_.databases(); ++database)
      write_through_.mark(database, name);
  // Another client may have queued some of these, too, if the server does not tell them apart.
  if (client != kAnyClient) seen_.erase(found);
}

}  // namespace perdix::valkey
