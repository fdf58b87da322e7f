// The start: gives the server the keys that the pool holds.
//
// A pool that has been used knows better than any file of the server's. So what an RDB or
// append-only file brings at a start is only taken if the pool is new: that is how a server gets
// the module, and how a backup comes back. The keys appear when the server has loaded its file; if
// it has none, in the first turn of its event loop, before it reads from any client.
//
// A server never serves without all keys of its pool: a later write would destroy what it could not
// read. A record of a newer server or module, or a damaged one, is an error that ends the start.
// Settings::unreadable `skip` overrides that.
//
// A pool that may lack keys, since its server ended in the middle of a full synchronisation, is not
// given to a primary, which does not start with it (Settings::partial `serve` overrides that). A
// replica withholds its keys, and those of a file, which may be of any age: it is empty until its
// primary has sent all. It ends if it is promoted before.
//
// A file that was loaded also has the place in the primary's stream of commands from which a
// replica goes on. A pool that knows better has later commands already, so the server forgets the
// place, and asks for all keys.
//
// While native keys come back the server lets clients in now and then, and answers them with
// LOADING. Not in a cluster: what other nodes say could take a slot away in the middle.
//
// Native keys that have expired are not given, and their records are erased: no event would come of
// them. Tables are given, and the server says when it expires them.
//
// In a cluster the server executes no RESTORE before the cluster is up. Until then it refuses
// clients' commands too, so native keys that need one appear at the moment that the cluster is up.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api.h"
#include "catalogue.h"
#include "record.h"
#include "refusal.h"
#include "settings.h"
#include "tables.h"
#include "write_through.h"

namespace perdix::valkey {

class Restorer {
 public:
  /// Where the keys of a load come from.
  enum class Source { rdb_file, append_only_file, primary };

  Restorer(const Settings& settings, Catalogue& catalogue, Tables& tables, Reaper& reaper,
           Refusal& refusal, WriteThrough& write_through);

  /// When the module is loaded, before the server knows anything of it. Throws already_exists if
  /// server and pool both have keys, and truncated if the pool has a part of a primary's keys.
  void check(Context* context);

  /// When all is ready: takes the keys of a server that has been running without the module.
  void begin(Context* context);

  /// A load begins; a load has ended; the first turn of the event loop.
  void on_loading(Context* context, Source source);
  void on_loaded(Context* context, bool complete);
  void on_first_turn(Context* context);
  bool waits_for_turn() const noexcept { return (starting_ && !loading_) || has_stale_place_; }

  /// A turn of the event loop, while some keys wait for the cluster.
  void on_turn(Context* context);
  bool waits_for_cluster() const noexcept { return waits_for_cluster_; }

  /// The server has become a primary. Throws truncated if the pool's keys are withheld.
  void on_promotion(Context* context);

  /// Whether what is being loaded is older than the pool.
  bool ignores_loads() const noexcept { return starting_ && !takes_file_; }

  /// Whether the start ended with an exception.
  bool failed() const noexcept { return failed_; }

  /// Whether the server is without the pool's keys, until its primary has sent all.
  bool withholds() const noexcept { return withholds_; }

  /// Whether the server is to have each key that the pool has.
  bool gave_all_keys() const noexcept {
    return !starting_ && !withholds_ && !waits_for_cluster_ && unreadable_ + foreign_ == 0;
  }

  std::uint64_t keys() const noexcept { return keys_; }

  /// Keys of the pool that the server could not read, and is without.
  std::uint64_t unreadable() const noexcept { return unreadable_; }

  /// Keys of the pool that had expired.
  std::uint64_t expired() const noexcept { return expired_; }

  double seconds() const noexcept { return seconds_; }

 private:
  void finish(Context* context);
  void give_keys(Context* context);
  template <class BeforeEach>
  void give_all(Context* context, BeforeEach before_each);
  void give_key(Context* context, int database, std::string_view name, std::string_view bytes);
  bool give_value(Context* context, const Record& record, std::string_view name);
  bool give_dump(Context* context, const Record& record, std::string_view name);
  bool give_waiting(Context* context, const Record& record, std::string_view name);
  void give_table(Context* context, RedisModuleString* name, std::uint64_t id, long long expires);
  template <class Give>
  void give_or_refuse(Context* context, int database, std::string_view name, Give give);
  bool forget_expired(int database, std::string_view name, const Record& record);
  void clear_loaded(Context* context);
  void adopt_loaded(Context* context);
  void withhold(Context* context);
  void forget_place(Context* context);
  bool is_of_no_use() const;

  const Settings& settings_;
  Catalogue& catalogue_;
  Tables& tables_;
  Reaper& reaper_;
  Refusal& refusal_;
  WriteThrough& write_through_;
  bool server_has_keys_ = false;
  bool starting_ = true;
  bool failed_ = false;
  bool loading_ = false;
  bool loaded_ = false;
  bool takes_file_ = false;  // the pool is new
  bool runs_ = false;        // clients are there already
  bool waits_for_cluster_ = false;
  bool synchronising_ = false;
  bool following_anew_ = false;  // is a primary for the moment
  bool withholds_ = false;
  bool has_place_ = false;        // in the stream of the primary, from a file
  bool has_stale_place_ = false;  // the same, to be forgotten
  std::uint64_t keys_ = 0;
  std::uint64_t unreadable_ = 0;
  std::uint64_t foreign_ = 0;  // in slots of other nodes
  std::uint64_t expired_ = 0;
  double seconds_ = 0;
};

}  // namespace perdix::valkey
