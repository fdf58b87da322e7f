// What the server knows of its commands, under the names that clients give them.
//
// An operator may have renamed or disabled a command (rename-command), and a module that is loaded
// later adds its own. So no command is known by its name alone: the server is asked. What the
// module calls or watches by name must have this name, or the module does not start. Used by the
// server's main thread only.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <perdix/index.h>

#include "api.h"

namespace perdix::valkey {

struct CommandTraits {
  std::string name;  ///< the server's own, in lower case, whatever the operator calls it
  bool writes = false;
  bool adds = false;         ///< may add data: the server's flag `denyoom`
  bool runs_script = false;  ///< EVAL and its like: may write, and the server can't tell before
  bool has_subcommands = false;
  bool grows_keys = false;  ///< adds to the values of all its keys, and replaces none of them
};

/// Asks the server for the command that clients call `word`, or `word|subcommand`. None if there is
/// no such command.
std::optional<CommandTraits> traits_of(Context* context, std::string_view word);

/// Throws unsupported if clients do not call each of the commands `called`, which the module calls,
/// by its own name, or call one of `watched`, which the module knows by name, by another one. Names
/// are in lower case.
void check_names(Context* context, const std::vector<std::string_view>& called,
                 const std::vector<std::string_view>& watched);

/// Remembers what the server has said.
class KnownCommands {
 public:
  /// Asks from now on with this context, which must live as long.
  void ask_with(Context* context) noexcept { context_ = context; }

  /// The traits of a command that a filter sees; null if the server has no such command.
  const CommandTraits* find(RedisModuleCommandFilterCtx* command);

 private:
  const CommandTraits* find(const std::string& word);

  Context* context_ = nullptr;
  std::unordered_map<std::string, CommandTraits> known_;  // by the clients' word
};

}  // namespace perdix::valkey
