// Refuses commands that would change native keys, while the pool can't take the change.
//
// The mode `keyspace` hears of a native write after it was executed, when an error reply is too
// late. So the pool has a reserve, which the last write gets when the pool is full, and from then
// on a filter refuses commands that add data. Commands that remove data, and reads, go on. The
// server's own list of these is its flag `denyoom`.
//
// A script or a transaction is refused whole:
//
// 1. A refused command is replaced by PX.REFUSED, which replies with the error. Where it would be
//    queued it is replaced by a name that no command has: the server rejects that at once, and
//    discards the transaction at its EXEC.
// 2. A script may write, so it is refused before it begins. EVAL_RO and its like go on.
// 3. What has begun is not refused in the middle. If the pool does not take its changes, the
//    server closes the connections (WriteThrough).
//
// After a failure of the device no change reaches the pool any more. From then on all commands that
// write are refused, also those that remove data, until the server is started again.
//
// The filter is also there
//
// 1. while Settings::oversize is `refuse`. It adds the sizes of the arguments to that of the value
//    which the catalogue has. What a command adds beside its arguments, and what other commands of
//    its transaction add, it does not see.
// 2. while the keys of the pool come back and the server lets clients in between (Restorer). Then
//    each command is answered with LOADING, but for those that a connection begins or ends with.
//
// Used by the server's main thread only.
#pragma once

#include <string>

#include <perdix/index.h>

#include "api.h"
#include "catalogue.h"
#include "command_traits.h"
#include "settings.h"
#include "transactions.h"

namespace perdix::valkey {

class Refusal {
 public:
  Refusal(const Pool& pool, const Settings& settings, const Catalogue& catalogue);

  /// Makes the reserve and the command that replies with the error. For the mode `keyspace`.
  void prepare(Context* context);

  /// The pool is full: gives the reserve up and refuses commands from now on. Returns whether there
  /// was a reserve, so that it is worth trying again.
  bool on_full(Context* context, const std::string& why);

  /// The device does not take what is written to it, or the pool's file is no longer there.
  void on_device_failure(Context* context, const std::string& why);
  bool device_failed() const noexcept { return device_failed_; }

  /// Throws io_error after a failure of the device.
  void check_device() const {
    if (device_failed_) throw Error(Errc::io_error, why_);
  }

  /// To be called now and then: makes the reserve again, and ends the refusal, if there is space.
  /// If the refusal begins again soon, the next try comes later.
  void try_again(Context* context);

  /// Frees the reserve of a pool, for a start that has no space to complete what a crash left.
  static void drop_reserve(const Pool& pool);

  bool refuses() const noexcept { return refuses_; }

  /// From now on clients are told that keys are coming back, or no longer.
  void set_loading(bool loading);

  /// Installs or removes the filter, as the settings say now.
  void follow_settings(Context* context);

  /// Replies with why commands are refused now.
  int reply(Context* context) const;

  /// Replaces the command if it must not be executed. Throws io_error and corrupt.
  void filter(RedisModuleCommandFilterCtx* command);

  /// What filter() has thrown.
  void on_failed_look(const std::exception& error);

 private:
  std::string message() const;
  bool concerns(const CommandTraits& traits) const;
  bool is_oversize(const CommandTraits& traits, RedisModuleCommandFilterCtx* command) const;
  std::size_t grown_size(RedisModuleCommandFilterCtx* command) const;
  void replace(RedisModuleCommandFilterCtx* command);
  bool make_reserve();

  Pool pool_;
  const Settings& settings_;
  const Catalogue& catalogue_;
  bool prepared_ = false;
  bool loading_ = false;
  bool refuses_ = false;
  bool device_failed_ = false;
  unsigned pause_ = 0;     // calls of try_again() until the next try
  unsigned patience_ = 1;  // the next pause
  unsigned calm_ = 0;      // calls since the last refusal
  std::string why_;
  RedisModuleCommandFilter* filter_ = nullptr;
  Context* context_ = nullptr;  // of the filter, which is given none
  KnownCommands commands_;
  Transactions transactions_;
};

}  // namespace perdix::valkey
