// The data type `perdixtbl`: how the server saves, loads, copies and frees tables.
#pragma once

#include <memory>

#include "api.h"
#include "table.h"

namespace perdix::valkey {

/// The value of a key. Without a table it is a stub: what an RDB file brought at a start whose pool
/// is newer than the file.
struct TableValue {
  std::shared_ptr<Table> table;
};

/// Makes the server know the type. Throws Error if it does not want to.
void register_table_type(Context* context);

/// The value of an open key, null if it is of another type.
TableValue* table_value(RedisModuleKey* key);

/// Makes a table the value of a key that is open for writing.
void set_table(RedisModuleKey* key, std::shared_ptr<Table> table);

}  // namespace perdix::valkey
