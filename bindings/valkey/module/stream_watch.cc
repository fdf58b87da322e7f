#include "stream_watch.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "databases.h"
#include "transactions.h"

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

/// The streams of an XREADGROUP, and whether it may block.
struct Read {
  std::vector<std::string_view> streams;
  bool blocks = false;
};

Read read_of(RedisModuleCommandFilterCtx* command, int count) {
  Read read;
  int place = 1;
  while (place < count && !is_word(argument(command, place), "STREAMS")) {
    read.blocks = read.blocks || is_word(argument(command, place), "BLOCK");
    place += is_word(argument(command, place), "GROUP") ? 3 : 1;  // with any two names
  }
  // Behind STREAMS: all names, then as many positions.
  for (int left = (count - place - 1) / 2; left > 0; --left)
    read.streams.push_back(argument(command, ++place));
  return read;
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
  const int count = RedisModule_CommandFilterArgsCount(command);
  if ((name[0] | 0x20) != 'x') {
    if (!seen_.empty() && is_word(name, "EXEC")) mark_queued(client_of(command));
  } else if (count > 1 && changes_first_argument(name)) {
    mark(client_of(command), {std::string(argument(command, 1))});
  } else if (is_word(name, "XREADGROUP")) {
    const Read read = read_of(command, count);
    const Names streams(read.streams.begin(), read.streams.end());
    mark(client_of(command), streams);
    if (!read.blocks) return;
    awaited_.insert(streams.begin(), streams.end());
    woken_.insert(streams.begin(), streams.end());  // the next look forgets what is not there
  }
}

void StreamWatch::mark(unsigned long long client, const Names& streams) {
  mark_in_all(streams);
  if (client == kAnyClient || is_open(client)) seen_[client].insert(streams.begin(), streams.end());
}

void StreamWatch::mark_queued(unsigned long long client) {
  const auto found = seen_.find(client);
  if (found == seen_.end()) return;
  mark_in_all(found->second);
  // Another client may have queued some of these, too, if the server does not tell them apart.
  if (client != kAnyClient) seen_.erase(found);
}

/// A filter is not told the database. Each that may have the stream is looked at.
void StreamWatch::mark_in_all(const Names& streams) {
  for (const std::string& name : streams)
    for (int database = 0; database < catalogue_.databases(); ++database)
      write_through_.mark(database, name);
}

void StreamWatch::on_event(std::string_view name) {
  if (awaited_.find(name) != awaited_.end()) woken_.emplace(name);
}

void StreamWatch::on_swap() { woken_ = awaited_; }

/// The end of a stream ends the wait of its readers.
void StreamWatch::before_sleep(Context* context) {
  for (const std::string& name : std::exchange(woken_, {}))
    if (!mark_where_present(context, name)) awaited_.erase(name);
}

bool StreamWatch::mark_where_present(Context* context, const std::string& name) {
  bool present = false;
  const String key(name);
  for_each_database(context, [&](int database) {
    if (RedisModule_DbSize(context) == 0 || !is_present(context, key.get())) return;
    write_through_.mark(database, name);
    present = true;
  });
  return present;
}

}  // namespace perdix::valkey
