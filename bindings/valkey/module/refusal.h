// Refuses commands that would change native keys, while the pool can't take the change.
//
// The mode `keyspace` hears of a native write after it was executed, when an error reply is too
// late. So the pool has a reserve, which the last write gets when the pool is full, and from then
// on a filter replaces commands that add data by one that replies with an error. Commands that
// remove data, and reads, go on. The server's own list of these is its flag `denyoom`.
//
// The filter is also there while Settings::oversize is `refuse`, and looks at the arguments' sizes.
// Used by the server's main thread only.
#pragma once

#include <string>
#include <unordered_set>

#include <perdix/index.h>

#include "api.h"
#include "settings.h"

namespace perdix::valkey {

class Refusal {
 public:
  Refusal(const Pool& pool, const Settings& settings);

  /// Finds out which commands add data, makes the reserve and the command that replies with the
  /// error. For the mode `keyspace`.
  void prepare(Context* context);

  /// The pool is full: gives the reserve up and refuses commands from now on. Returns whether there
  /// was a reserve, so that it is worth trying again.
  bool on_full(Context* context, const std::string& why);

  /// To be called now and then: makes the reserve again, and ends the refusal, if there is space.
  void try_again(Context* context);

  bool refuses() const noexcept { return refuses_; }

  /// Installs or removes the filter, as the settings say now.
  void follow_settings(Context* context);

  /// Replies with why commands are refused now.
  int reply(Context* context) const;

  /// Replaces the command by PX.REFUSED if it must not be executed.
  void filter(RedisModuleCommandFilterCtx* command) const;

 private:
  bool adds_data(std::string_view command) const;
  bool is_oversize(RedisModuleCommandFilterCtx* command) const;
  bool make_reserve();
  void drop_reserve();

  Pool pool_;
  const Settings& settings_;
  bool prepared_ = false;
  bool refuses_ = false;
  std::string why_;
  RedisModuleCommandFilter* filter_ = nullptr;
  std::unordered_set<std::string> adding_;  // names of commands, in lower case
};

}  // namespace perdix::valkey
