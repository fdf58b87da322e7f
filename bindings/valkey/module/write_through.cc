#include "write_through.h"

#include <algorithm>
#include <chrono>
#include <string_view>

#include "databases.h"
#include "module.h"
#include "snapshot.h"

namespace perdix::valkey {
namespace {

// Keys that a load may mark before they are committed.
constexpr std::size_t kLoadBatch = 1000;

// Keys that are tried before more of their kind.
constexpr std::size_t kProbe = 16;

// How long a turn may take longer. The other nodes of a cluster wait for one that was promoted, but
// they count in seconds. Clients wait while records of expired keys are erased.
constexpr std::chrono::milliseconds kPromotion{500};
constexpr std::chrono::milliseconds kDelay{5};

int on_keyspace_event(Context* context, int, const char* event, RedisModuleString* name) {
  module().stream_watch().on_event(view(name));
  module().write_through().on_event(context, event, name);
  return REDISMODULE_OK;
}

void run_job(Context* context, void* write_through) {
  static_cast<WriteThrough*>(write_through)->run_job(context);
}

/// Events of our own commands that change a table's content, and so no record.
bool concerns_content_only(std::string_view event) {
  return event.starts_with("px.") && event != "px.create";
}

/// Events that no client's command causes.
bool is_by_server(std::string_view event) { return event == "expired" || event == "evicted"; }

/// Events of keys that are stored in a database of the command's choice. Valkey 9.1 selects the
/// client's for them in a transaction.
bool may_be_elsewhere(std::string_view event) { return event == "move_to" || event == "copy_to"; }

}  // namespace

WriteThrough::WriteThrough(const Settings& settings, Catalogue& catalogue, Tables& tables,
                           Reaper& reaper, Refusal& refusal)
    : settings_(settings),
      catalogue_(catalogue),
      tables_(tables),
      reaper_(reaper),
      refusal_(refusal) {}

void WriteThrough::subscribe(Context* context) {
  // What replaces a table by a native value is noticed by the data type's callback. Our own events
  // would cost each PX.PUT a call; PX.CREATE makes the only one that counts.
  constexpr int kOfTables =
      REDISMODULE_NOTIFY_GENERIC | REDISMODULE_NOTIFY_EXPIRED | REDISMODULE_NOTIFY_EVICTED;
  const int types = settings_.keeps_native_keys() ? REDISMODULE_NOTIFY_ALL : kOfTables;
  RedisModule_SubscribeToKeyspaceEvents(context, types | REDISMODULE_NOTIFY_LOADED,
                                        on_keyspace_event);
}

void WriteThrough::remember(int database, std::string_view name) {
  if (settings_.keeps_native_keys()) return;
  std::string key;
  catalogue_.key_in(database, name, key);
  recorded_.insert(std::move(key));
}

void WriteThrough::set_whole(bool whole) {
  whole_ = whole;
  if (!whole) catalogue_.set_partial(true);
}

void WriteThrough::mark(int database, std::string_view name) {
  if (!active_) return;
  const bool again =
      !marked_.empty() && marked_.back().database == database && marked_.back().name == name;
  if (!again) marked_.push_back({database, std::string(name)});
}

void WriteThrough::mark_everywhere(Context* context, std::string_view name) {
  for_each_database(context, [&](int database) {
    if (RedisModule_DbSize(context) > 0) mark(database, name);
  });
}

void WriteThrough::on_event(Context* context, const char* event, RedisModuleString* name) {
  if (!active_ || concerns_content_only(event)) return;
  const int database = RedisModule_GetSelectedDb(context);
  if (refusal_.device_failed() && is_by_server(event)) return mark_failed(database, view(name));
  if (may_be_elsewhere(event)) {
    mark_everywhere(context, view(name));
  } else {
    mark(database, view(name));
  }
  undo_move(context, event, database);
  if (loading_) {
    if (marked_.size() >= kLoadBatch) commit(context);
    return;
  }
  arrange_commit(context);
}

void WriteThrough::on_removal(RedisModuleKey* key, bool by_server) {
  if (!active_) return;
  const int database = RedisModule_GetDbIdFromModuleKey(key);
  const std::string_view name = view(RedisModule_GetKeyNameFromModuleKey(key));
  if (refusal_.device_failed() && by_server) return mark_failed(database, name);
  mark(database, name);
}

/// Reads go on, and no client waits for this.
void WriteThrough::mark_failed(int database, std::string_view name) {
  failed_.insert({database, std::string(name)});
}

void WriteThrough::arrange_commit(Context* context) {
  if (job_waits_) return;
  if (RedisModule_AddPostNotificationJob != nullptr &&
      RedisModule_AddPostNotificationJob(context, valkey::run_job, this, nullptr) ==
          REDISMODULE_OK) {
    job_waits_ = true;
  } else if (asleep_) {
    commit(context);  // replies may leave before the next chance
  }
}

void WriteThrough::undo_move(Context* context, std::string_view event, int database) {
  if (event == "move_from") {
    moved_from_ = database;
  } else if (event == "move_to") {
    RedisModule_SelectDb(context, moved_from_);
  }
}

/// The server has yet to propagate the unit. If the unit began a CLIENT PAUSE, that must wait until
/// then, and the end of any command begins it: those that show values would make the server abort.
/// So such a unit is committed before the server sends replies.
void WriteThrough::run_job(Context* context) {
  job_waits_ = false;
  if (RedisModule_AvoidReplicaTraffic() == 0) commit(context);
}

void WriteThrough::before_sleep(Context* context) {
  commit(context);
  // A replica that was promoted has these in memory only, and now replies as the primary.
  if (!refused_.marks.empty() && !is_replica() && !refusal_.refuses())
    commit_some(context, refused_, kPromotion);
  if (!refusal_.device_failed()) commit_some(context, expired_, kDelay);
  if (unacknowledged_) close_clients(context);
  asleep_ = true;
}

/// The replies of this turn have not been sent, and are not sent to a client that is closed. What a
/// replica's clients wait for are no writes of theirs.
void WriteThrough::close_clients(Context* context) {
  unacknowledged_ = false;
  if (is_replica()) return;
  ++counters_.closings;
  for (const char* type : {"normal", "pubsub"})  // the latter write, too, by RESP3
    CallReply(RedisModule_Call(context, "CLIENT", "ccc", "KILL", "TYPE", type));
}

void WriteThrough::commit(Context* context) noexcept {
  if (!active_) return;
  try {
    if (!marked_.empty() || (catalogue_.spaces_changed() && !spaces_failed_)) {
      std::vector<Mark> marks;
      marks.swap(marked_);
      std::sort(marks.begin(), marks.end());
      marks.erase(std::unique(marks.begin(), marks.end()), marks.end());
      if (!commit_marks(context, marks)) unacknowledged_ = true;
    }
    if (catalogue_.is_partial() && has_all_keys() && !refusal_.refuses()) {
      catalogue_.set_partial(false);
      commit_marks(context, {});
    }
    // The catalogue still has keys of tables whose end the pool did not take.
    if (failed_.empty() && !catalogue_.spaces_changed()) tables_.drop_doomed();
  } catch (const std::exception& error) {
    unacknowledged_ = true;  // what was marked may not be in the pool
    log(context, "warning", std::string("perdix: ") + error.what());
  }
}

/// Whether it is done. If not, the marks are in failed_.
bool WriteThrough::commit_marks(Context* context, const std::vector<Mark>& marks) {
  for (;;) {
    try {
      refusal_.check_device();
      apply(collect(context, marks));
      if (!failed_.empty())
        for (const Mark& mark : marks) failed_.erase(mark);
      return true;
    } catch (const std::exception& error) {
      if (make_space(context, error)) continue;
      catalogue_.give_up_batch();
      failed_.insert(marks.begin(), marks.end());
      spaces_failed_ = catalogue_.spaces_changed();
      on_failure(context, error);
      return false;
    }
  }
}

/// Whether it is worth trying again.
bool WriteThrough::make_space(Context* context, const std::exception& error) {
  const auto* known = dynamic_cast<const Error*>(&error);
  if (known == nullptr) return false;
  if (known->code() == Errc::io_error) refusal_.on_device_failure(context, error.what());
  return known->code() == Errc::out_of_space && refusal_.on_full(context, error.what());
}

void WriteThrough::on_failure(Context* context, const std::exception& error) {
  ++counters_.failures;
  if (counters_.failures == 1 || counters_.failures % kLoadBatch == 0)
    log(context, "warning",
        std::to_string(failed_.size()) + " changed keys are not durable: " + error.what());
}

std::vector<KeyChange> WriteThrough::collect(Context* context, const std::vector<Mark>& marks) {
  std::vector<KeyChange> changes;
  changes.reserve(marks.size());
  for (const Mark& mark : marks) {
    try {
      add_change(context, mark, changes);
    } catch (const Error& error) {
      if (error.code() != Errc::unsupported) throw;
      refused_.marks.insert(mark);
    }
  }
  return changes;
}

void WriteThrough::try_again(Context* context) {
  if (refusal_.refuses()) return;
  // First what this turn has changed: a later change would take the list of spaces along, with the
  // flushes of these units, but without the keys that they have stored.
  commit(context);
  retry_failed(context);
}

/// Ends when none of a batch was done, as of a node of a cluster that may not be shown them yet.
void WriteThrough::commit_some(Context* context, Later& later, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  std::size_t left = later.marks.size() + 1;
  for (std::size_t limit = kProbe; !later.marks.empty() && later.marks.size() < left;
       limit = std::min(2 * limit, kLoadBatch)) {
    left = later.marks.size();
    mark_some(later, limit);
    commit(context);
    if (std::chrono::steady_clock::now() >= end) return;
  }
}

void WriteThrough::mark_some(Later& later, std::size_t limit) {
  for (std::size_t i = 0; i < limit && !later.marks.empty(); ++i) {
    auto next = later.marks.upper_bound(later.tried);
    if (next == later.marks.end()) next = later.marks.begin();
    later.tried = *next;
    marked_.push_back(std::move(later.marks.extract(next).value()));
  }
}

/// No client waits for these any more.
void WriteThrough::retry_failed(Context* context) {
  if (failed_.empty() && !catalogue_.spaces_changed()) return;
  const std::vector<Mark> marks(failed_.begin(), failed_.end());
  commit_marks(context, marks);
}

void WriteThrough::add_change(Context* context, const Mark& mark, std::vector<KeyChange>& changes) {
  if (mark.name.size() > Catalogue::kMaxName) {
    ++counters_.oversize;
    log(context, "warning",
        "a key of " + std::to_string(mark.name.size()) +
            " bytes is not durable: names have at most " + std::to_string(Catalogue::kMaxName));
    return;
  }
  KeyChange change;
  catalogue_.key_in(mark.database, mark.name, change.key);
  const bool native = settings_.keeps_native_keys();
  change.record = record_of(context, mark.database, mark.name, native);
  if (!native && !change.record && recorded_.count(change.key) == 0) return;
  if (change.record && change.record->size() > static_cast<std::size_t>(settings_.max_value)) {
    ++counters_.oversize;
    log(context, "warning",
        "the value of '" + mark.name + "' has " + std::to_string(change.record->size()) +
            " bytes, more than perdix.max-value; each change writes all of it");
  }
  changes.push_back(std::move(change));
}

void WriteThrough::apply(std::vector<KeyChange> changes) {
  if (changes.empty() && !catalogue_.waits_for_apply()) return;
  catalogue_.apply(changes);
  for (const std::uint32_t space : catalogue_.take_left_spaces()) reaper_.erase_space(space);
  ++counters_.commits;
  counters_.keys += changes.size();
  for (const KeyChange& change : changes) {
    if (change.record) counters_.bytes += change.record->size();
    if (settings_.keeps_native_keys()) continue;
    if (change.record) {
      recorded_.insert(change.key);
    } else {
      recorded_.erase(change.key);
    }
  }
}

/// Records that have no key in the server, if the other keys all have records. Servers that need
/// this have one database in a cluster.
std::uint64_t WriteThrough::missing_keys(Context* context) const {
  const SelectedDatabase selected(context, 0);
  const std::uint64_t records = catalogue_.records();
  const std::uint64_t keys = RedisModule_DbSize(context);
  return records > keys ? records - keys : 0;
}

void WriteThrough::look_for_lost_keys(Context* context) {
  // Keys that wait to be stored would hide as many that are missing.
  if (!active_ || loading_ || waiting() > 0 || !expired_.marks.empty()) return;
  if (missing_keys(context) > missed_) {
    const SelectedDatabase selected(context, 0);
    catalogue_.for_each([&](int database, std::string_view name, std::string_view) {
      if (!is_present(context, String(name).get())) mark(database, name);
    });
    if (!marked_.empty())
      log(context, "notice", std::to_string(marked_.size()) + " keys have gone with their slots");
    commit(context);
  }
  missed_ = missing_keys(context);
}

void WriteThrough::flush(Context* context, int database) {
  if (!active_) return;
  const auto goes = [database](const Mark& mark) {
    return database == Catalogue::kAllDatabases || mark.database == database;
  };
  std::erase_if(marked_, goes);
  std::erase_if(refused_.marks, goes);
  std::erase_if(expired_.marks, goes);
  std::erase_if(failed_, goes);
  catalogue_.flush(database);
  missed_ = kUnknown;
  spaces_failed_ = false;
  arrange_commit(context);
}

void WriteThrough::swap(Context* context, int first, int second) {
  // The server has exchanged them: what was marked before has the other number now.
  if (!active_) return;
  const auto renumber = [first, second](Mark& mark) {
    if (mark.database == first) {
      mark.database = second;
    } else if (mark.database == second) {
      mark.database = first;
    }
  };
  for (Mark& mark : marked_) renumber(mark);
  for (std::set<Mark>* marks : {&refused_.marks, &expired_.marks, &failed_}) {
    std::set<Mark> renumbered;
    for (Mark mark : *marks) {
      renumber(mark);
      renumbered.insert(std::move(mark));
    }
    marks->swap(renumbered);
  }
  catalogue_.swap(first, second);
  spaces_failed_ = false;
  arrange_commit(context);
}

}  // namespace perdix::valkey
