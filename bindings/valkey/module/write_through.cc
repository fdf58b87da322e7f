#include "write_through.h"

#include <algorithm>
#include <string_view>

#include "module.h"
#include "snapshot.h"

namespace perdix::valkey {
namespace {

// Keys that a load may mark before they are committed.
constexpr std::size_t kLoadBatch = 1000;

int on_keyspace_event(Context* context, int, const char* event, RedisModuleString* name) {
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

void WriteThrough::mark(int database, std::string_view name) {
  if (!active_) return;
  const bool again =
      !marked_.empty() && marked_.back().database == database && marked_.back().name == name;
  if (!again) marked_.push_back({database, std::string(name)});
}

void WriteThrough::on_event(Context* context, const char* event, RedisModuleString* name) {
  if (!active_ || concerns_content_only(event)) return;
  const int database = RedisModule_GetSelectedDb(context);
  mark(database, view(name));
  undo_move(context, event, database);
  if (job_waits_) return;
  if (loading_) {
    if (marked_.size() >= kLoadBatch) commit(context);
    return;
  }
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

void WriteThrough::run_job(Context* context) {
  job_waits_ = false;
  commit(context);
}

void WriteThrough::before_sleep(Context* context) {
  commit(context);
  asleep_ = true;
}

void WriteThrough::commit(Context* context) noexcept {
  if (!active_) return;
  try {
    if (!marked_.empty()) {
      std::vector<Mark> marks;
      marks.swap(marked_);
      commit_marks(context, marks);
    }
    tables_.bury_doomed();
  } catch (const std::exception& error) {
    log(context, "warning", std::string("perdix: ") + error.what());
  }
}

void WriteThrough::commit_marks(Context* context, std::vector<Mark>& marks) {
  std::sort(marks.begin(), marks.end());
  marks.erase(std::unique(marks.begin(), marks.end()), marks.end());
  for (;;) {
    try {
      apply(collect(context, marks));
      return;
    } catch (const Error& error) {
      if (error.code() == Errc::out_of_space && refusal_.on_full(context, error.what())) continue;
      marked_.insert(marked_.end(), marks.begin(), marks.end());
      ++counters_.failures;
      if (counters_.failures == 1 || counters_.failures % kLoadBatch == 0)
        log(context, "warning",
            std::to_string(marked_.size()) + " changed keys are not durable: " + error.what());
      return;
    }
  }
}

std::vector<KeyChange> WriteThrough::collect(Context* context, const std::vector<Mark>& marks) {
  std::vector<KeyChange> changes;
  changes.reserve(marks.size());
  for (const Mark& mark : marks) {
    try {
      add_change(context, mark, changes);
    } catch (const Error& error) {
      if (error.code() != Errc::unsupported) throw;
      refused_.insert(mark);
    }
  }
  return changes;
}

void WriteThrough::mark_refused() {
  const bool is_replica = (RedisModule_GetContextFlags(nullptr) & REDISMODULE_CTX_FLAGS_SLAVE) != 0;
  if (refused_.empty() || is_replica) return;
  for (std::size_t i = 0; i < kLoadBatch && !refused_.empty(); ++i)
    marked_.push_back(std::move(refused_.extract(refused_.begin()).value()));
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

void WriteThrough::apply(const std::vector<KeyChange>& changes) {
  if (changes.empty()) return;
  catalogue_.apply(changes);
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

void WriteThrough::flush(int database) {
  if (!active_) return;
  const auto goes = [database](const Mark& mark) {
    return database == Catalogue::kAllDatabases || mark.database == database;
  };
  std::erase_if(marked_, goes);
  std::erase_if(refused_, goes);
  for (const std::uint32_t space : catalogue_.flush(database)) reaper_.erase_space(space);
}

void WriteThrough::swap(int first, int second) {
  // The server has exchanged them: what was marked before has the other number now.
  if (!active_) return;
  for (Mark& mark : marked_) {
    if (mark.database == first) {
      mark.database = second;
    } else if (mark.database == second) {
      mark.database = first;
    }
  }
  catalogue_.swap(first, second);
}

}  // namespace perdix::valkey
