// Walks over the server's databases and their keys.
#pragma once

#include <string>
#include <vector>

#include "api.h"

namespace perdix::valkey {

/// Selects each database in turn: visit(number). The server says how many there are.
template <class Visit>
void for_each_database(Context* context, Visit visit) {
  for (int database = 0;; ++database) {
    const SelectedDatabase selected(context, database);
    if (!selected.exists()) return;
    visit(database);
  }
}

/// Whether the selected database has a key.
inline bool is_present(Context* context, RedisModuleString* name) {
  return !Key(context, name, peek_mode()).is_absent();
}

/// The names of all keys of the selected database that `wanted` agrees to: wanted(open key).
template <class Wanted>
std::vector<std::string> key_names(Context* context, Wanted wanted) {
  struct Scan {
    Wanted& wanted;
    std::vector<std::string> names;
  } scan{wanted, {}};
  RedisModuleScanCursor* cursor = RedisModule_ScanCursorCreate();
  const auto visit = [](Context*, RedisModuleString* name, RedisModuleKey* key, void* data) {
    auto& target = *static_cast<Scan*>(data);
    if (target.wanted(key)) target.names.emplace_back(view(name));
  };
  while (RedisModule_Scan(context, cursor, visit, &scan) != 0) {
  }
  RedisModule_ScanCursorDestroy(cursor);
  return std::move(scan.names);
}

}  // namespace perdix::valkey
