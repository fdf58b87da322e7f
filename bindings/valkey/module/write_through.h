// Keeps the catalogue as the server's keys are: after each command, script or transaction, and
// before its reply leaves.
//
// What changes a key marks it: the server's keyspace events, its notices of keys that go, and the
// data type's callbacks. An event's context selects the database of the client, which need not be
// that of the change: MOVE and COPY store a key in another one, and CLUSTER FLUSHSLOT removes keys
// from all. So what may be stored elsewhere is marked in each database, and the notice that a key
// goes has the database of the key itself.
//
// Redis 7.0 tells nothing of the native keys of a slot that a node of a cluster loses. There the
// node compares how many keys it and the pool have, and looks for those that are gone.
//
// At the end of the unit all marked keys are looked up and their records applied as one atomic
// change (Catalogue::apply), with the databases that the unit has flushed or exchanged. The end of
// a unit is
//
// 1. a job after the event, on servers that have those (Valkey 8 and 9, Redis 7.2) and let the
//    module make one, which they don't on a replica and while loading, unless the unit paused
//    clients;
// 2. else the moment before the server waits for its sockets, or its routine if that is due before.
//    It has then executed what clients had sent and has not written replies. All units of that
//    moment become one change.
//
// When the pool does not take a change, its keys stay marked for later, and no client is told that
// its write is there: the server closes the connections of all clients in place of the replies that
// wait (the module can't tell whose write it was). From then on Refusal replies with an error
// before a command changes anything, so that this happens once.
//
// In the mode `tables` only keys whose value is, or was, a table concern the catalogue.
// Used by the server's main thread only.
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "api.h"
#include "catalogue.h"
#include "refusal.h"
#include "settings.h"
#include "tables.h"

namespace perdix::valkey {

class WriteThrough {
 public:
  /// Counts since the start.
  struct Counters {
    std::uint64_t commits = 0;   ///< atomic changes of the catalogue
    std::uint64_t keys = 0;      ///< records that they wrote or erased
    std::uint64_t bytes = 0;     ///< of the records that they wrote
    std::uint64_t failures = 0;  ///< changes that the pool did not take, and that are tried again
    std::uint64_t closings = 0;  ///< how often clients lost their connections for that
    std::uint64_t oversize = 0;  ///< records of values above Settings::max_value
  };

  WriteThrough(const Settings& settings, Catalogue& catalogue, Tables& tables, Reaper& reaper,
               Refusal& refusal);

  /// Subscribes to the server's events.
  void subscribe(Context* context);

  /// From now on marks count. Before, and during a start, they don't.
  void set_active(bool active) { active_ = active; }
  bool active() const noexcept { return active_; }

  /// A key of the catalogue, found at the start.
  void remember(int database, std::string_view name);

  /// A native key of the catalogue has expired while the server was down: its record goes in the
  /// turns to come.
  void forget(int database, std::string_view name) {
    expired_.marks.insert({database, std::string(name)});
  }

  /// A key has changed.
  void mark(int database, std::string_view name);

  /// An event says that a key has changed: marks it, and sees to it that it is committed.
  void on_event(Context* context, const char* event, RedisModuleString* name);

  /// Marks a key that the server is about to remove; `by_server`: since it has expired or is
  /// evicted. It is still there, so the commit comes with the event that follows.
  void on_removal(RedisModuleKey* key, bool by_server);

  /// Makes all marked keys durable. What the pool does not take stays marked.
  void commit(Context* context) noexcept;

  /// The content of a database, or of all, goes. Two are exchanged. Committed as marks are.
  void flush(Context* context, int database);
  void swap(Context* context, int first, int second);

  /// Erases records of native keys that have gone without a notice, while all keys of the pool are
  /// to be in the server. To be called before the server sleeps.
  void look_for_lost_keys(Context* context);

  /// The job after an event.
  void run_job(Context* context);

  /// While a file or a full synchronisation is loaded, keys are committed in batches.
  void set_loading(bool loading) { loading_ = loading; }

  /// A full synchronisation begins, and has ended; or the server is to have keys that the pool
  /// lacks, and has all. In between the pool is marked as partial, also while keys are left that
  /// the pool did not take.
  void set_whole(bool whole);
  bool is_whole() const noexcept { return whole_; }

  /// Tries again what the pool did not take. To be called now and then.
  void try_again(Context* context);

  /// Between these the server writes replies and waits.
  void before_sleep(Context* context);
  void after_sleep() { asleep_ = false; }

  const Counters& counters() const noexcept { return counters_; }
  std::size_t waiting() const noexcept {
    return marked_.size() + refused_.marks.size() + failed_.size();
  }

 private:
  struct Mark {
    int database;
    std::string name;
    bool operator==(const Mark&) const = default;
    auto operator<=>(const Mark&) const = default;
  };

  /// Marks that are committed in the turns to come.
  struct Later {
    std::set<Mark> marks;
    Mark tried{};  // the last one: all are tried in turn
  };

  /// Valkey 8.1 shows events in the context of the client itself, and leaves it in the database of
  /// the last one: after MOVE, in that to which the key was moved.
  void undo_move(Context* context, std::string_view event, int database);
  /// A key that may be in any database that has keys.
  void mark_everywhere(Context* context, std::string_view name);
  void mark_failed(int database, std::string_view name);
  void arrange_commit(Context* context);
  void commit_some(Context* context, Later& later, std::chrono::milliseconds patience);
  void mark_some(Later& later, std::size_t limit);
  void retry_failed(Context* context);
  void close_clients(Context* context);
  std::vector<KeyChange> collect(Context* context, const std::vector<Mark>& marks);
  void add_change(Context* context, const Mark& mark, std::vector<KeyChange>& changes);
  bool commit_marks(Context* context, const std::vector<Mark>& marks);
  bool make_space(Context* context, const std::exception& error);
  void on_failure(Context* context, const std::exception& error);
  void apply(std::vector<KeyChange> changes);
  std::uint64_t missing_keys(Context* context) const;
  bool has_all_keys() const { return whole_ && failed_.empty(); }

  const Settings& settings_;
  Catalogue& catalogue_;
  Tables& tables_;
  Reaper& reaper_;
  Refusal& refusal_;
  bool active_ = false;
  bool loading_ = false;
  bool whole_ = true;  // but for the keys that wait below
  bool asleep_ = false;
  bool job_waits_ = false;
  int moved_from_ = 0;
  std::vector<Mark> marked_;
  // A node of a cluster does not show the value of a key in a slot that it does not own: as a
  // replica, and while a slot moves to it. A replica gets all from its primary when it comes back,
  // so it needs these only when it is promoted. Strings are shown always.
  Later refused_;
  Later expired_;
  // Records that look as if they had no key: those of flushed databases, which are being erased.
  static constexpr std::uint64_t kUnknown = ~std::uint64_t{0};
  std::uint64_t missed_ = kUnknown;
  std::set<Mark> failed_;                     // that the pool did not take
  bool spaces_failed_ = false;                // the same with the list of spaces
  bool unacknowledged_ = false;               // replies to writes wait that are not durable
  std::unordered_set<std::string> recorded_;  // keys of the catalogue; in the mode `tables` only
  Counters counters_;
};

}  // namespace perdix::valkey
