#include "table_type.h"

#include <unistd.h>

#include <array>

#include "bytes.h"
#include "fields.h"
#include "module.h"

namespace perdix::valkey {
namespace {

constexpr int kEncoding = 1;
constexpr std::size_t kChunk = std::size_t{64} << 10;

RedisModuleType*& type() {
  static RedisModuleType* registered = nullptr;
  return registered;
}

bool is_stub(const void* value) { return static_cast<const TableValue*>(value)->table == nullptr; }

const Table& table_of(const void* value) {
  if (is_stub(value)) throw Error(Errc::not_found, "the table is being loaded");
  return *static_cast<const TableValue*>(value)->table;
}

/// Shows the pairs of a table in the server or in its forked child.
void show_pairs(const void* value, Visitor<std::string, std::string> visit) {
  if (is_stub(value)) return;
  Table& table = *static_cast<const TableValue*>(value)->table;
  Feeder& feeder = module().feeder();
  if (feeder.in_child()) {
    feeder.ask(table.id(), visit);
  } else {
    for_each_pair(table.index(), visit);
  }
}

/// Runs a callback that can't report failure. In a child it ends the child, and the server says
/// that saving has failed; in the server it is logged.
template <class Call>
void without_errors(const char* what, Call call) noexcept {
  try {
    call();
  } catch (const std::exception& error) {
    log(nullptr, "warning", std::string(what) + ": " + error.what());
    if (module().feeder().in_child()) _exit(1);
  }
}

/// Collects pairs into chunks and gives each that is full to `write`.
template <class Write>
class Chunks {
 public:
  explicit Chunks(Write write) : write_(std::move(write)) {}

  void add(std::string_view key, std::string_view value) {
    append_pair(chunk_, key, value);
    if (chunk_.size() >= kChunk) flush();
  }

  void flush() {
    if (!chunk_.empty()) write_(chunk_);
    chunk_.clear();
  }

 private:
  Write write_;
  std::string chunk_;
};

void save_text(RedisModuleIO* io, std::string_view text) {
  RedisModule_SaveStringBuffer(io, text.data(), text.size());
}

void save(RedisModuleIO* io, void* value) {
  without_errors("a table was not saved", [&] {
    const Table& table = table_of(value);
    save_text(io, table.info().engine);
    RedisModule_SaveUnsigned(io, static_cast<std::uint64_t>(table.info().key_kind));
    RedisModule_SaveUnsigned(io, static_cast<std::uint64_t>(table.info().value_kind));
    Chunks chunks([io](const std::string& chunk) { save_text(io, chunk); });
    show_pairs(value, [&](std::string_view key, std::string_view pair_value) {
      chunks.add(key, pair_value);
      return true;
    });
    chunks.flush();
    save_text(io, "");
  });
}

/// A string of a file or a synchronisation; none if the file ends.
class LoadedText {
 public:
  explicit LoadedText(RedisModuleIO* io) : bytes_(RedisModule_LoadStringBuffer(io, &size_)) {}
  LoadedText(const LoadedText&) = delete;
  LoadedText& operator=(const LoadedText&) = delete;
  ~LoadedText() {
    if (bytes_ != nullptr) RedisModule_Free(bytes_);
  }

  std::string_view text() const {
    if (bytes_ == nullptr) throw Error(Errc::truncated, "the saved table is cut off");
    return {bytes_, size_};
  }

 private:
  std::size_t size_ = 0;
  char* bytes_;
};

Kind load_kind(RedisModuleIO* io) {
  const auto kind = static_cast<Kind>(RedisModule_LoadUnsigned(io));
  if (kind != Kind::u64 && kind != Kind::bytes)
    throw Error(Errc::corrupt, "the saved table has an unknown kind of keys or values");
  return kind;
}

/// Reads a saved table into a new one; into none if the pool knows better.
std::unique_ptr<TableValue> load_table(RedisModuleIO* io) {
  const std::string engine(LoadedText(io).text());
  const Kind key_kind = load_kind(io);
  const Kind value_kind = load_kind(io);
  auto value = std::make_unique<TableValue>();
  if (!module().restorer().ignores_loads())
    value->table = module().tables().create(engine, key_kind, value_kind);
  try {
    for (;;) {
      const LoadedText chunk(io);
      if (chunk.text().empty()) return value;
      if (!value->table) continue;
      Index& index = value->table->index();
      for_each_pair(chunk.text(), [&](std::string_view key, std::string_view pair_value) {
        index.put(key, pair_value);
      });
    }
  } catch (...) {
    if (value->table) module().tables().doom(std::move(value->table));
    throw;
  }
}

void* load(RedisModuleIO* io, int encoding) {
  try {
    if (encoding > kEncoding)
      throw Error(Errc::newer_format, "the saved table is of a newer release of perdix");
    return load_table(io).release();
  } catch (const std::exception& error) {
    log(nullptr, "warning", std::string("a saved table was not loaded: ") + error.what());
    return nullptr;
  }
}

void rewrite(RedisModuleIO* io, RedisModuleString* name, void* value) {
  without_errors("a table was not written to the append-only file", [&] {
    const IndexInfo& info = table_of(value).info();
    RedisModule_EmitAOF(io, "PX.CREATE", "scccccc", name, "ENGINE", info.engine.c_str(), "KEYS",
                        to_string(info.key_kind).data(), "VALUES",
                        to_string(info.value_kind).data());
    show_pairs(value, [&](std::string_view key, std::string_view pair_value) {
      const Decoded field(info.key_kind, key);
      const Decoded shown(info.value_kind, pair_value);
      RedisModule_EmitAOF(io, "PX.PUT", "sbb", name, field.text().data(), field.text().size(),
                          shown.text().data(), shown.text().size());
      return true;
    });
  });
}

void digest(RedisModuleDigest* digest, void* value) {
  without_errors("a table has no digest", [&] {
    show_pairs(value, [&](std::string_view key, std::string_view pair_value) {
      RedisModule_DigestAddStringBuffer(digest, key.data(), key.size());
      RedisModule_DigestAddStringBuffer(digest, pair_value.data(), pair_value.size());
      RedisModule_DigestEndSequence(digest);
      return true;
    });
  });
}

/// DRAM only: what lies in the pool is PX.INFO's.
std::size_t memory_usage(RedisModuleKeyOptCtx*, const void* value, std::size_t) {
  std::size_t bytes = sizeof(TableValue);
  if (is_stub(value)) return bytes;
  without_errors("a table's memory is unknown", [&] {
    bytes += sizeof(Table);
    if (const Index* index = table_of(value).index_if_open(); index != nullptr)
      bytes += index->stats().dram_bytes;
  });
  return bytes;
}

void* copy(RedisModuleKeyOptCtx*, const void* value) {
  try {
    auto result = std::make_unique<TableValue>();
    if (is_stub(value)) return result.release();
    const IndexInfo& info = table_of(value).info();
    result->table = module().tables().create(info.engine, info.key_kind, info.value_kind);
    Index& index = result->table->index();
    show_pairs(value, [&](std::string_view key, std::string_view pair_value) {
      index.put(key, pair_value);
      return true;
    });
    return result.release();
  } catch (const std::exception& error) {
    log(nullptr, "warning", std::string("a table was not copied: ") + error.what());
    return nullptr;
  }
}

void free_value(void* value) {
  const std::unique_ptr<TableValue> owner(static_cast<TableValue*>(value));
  if (owner->table && !module().feeder().in_child())
    module().tables().doom(std::move(owner->table));
}

/// The reaper does the work, so freeing never needs the server's own background thread.
std::size_t free_effort(RedisModuleKeyOptCtx*, const void*) { return 1; }

void unlink(RedisModuleKeyOptCtx* context, const void*) {
  const auto* name = RedisModule_GetKeyNameFromOptCtx(context);
  if (name != nullptr)
    module().write_through().mark(RedisModule_GetDbIdFromOptCtx(context), view(name));
}

}  // namespace

void register_table_type(Context* context) {
  RedisModuleTypeMethods methods{};
  methods.version = REDISMODULE_TYPE_METHOD_VERSION;
  methods.rdb_load = load;
  methods.rdb_save = save;
  methods.aof_rewrite = rewrite;
  methods.digest = digest;
  methods.free = free_value;
  methods.mem_usage2 = memory_usage;
  methods.free_effort2 = free_effort;
  methods.unlink2 = unlink;
  methods.copy2 = copy;
  type() = RedisModule_CreateDataType(context, "perdixtbl", kEncoding, &methods);
  if (type() == nullptr)
    throw Error(Errc::already_exists, "the server has a data type 'perdixtbl' of another module");
}

TableValue* table_value(RedisModuleKey* key) {
  const bool ours = RedisModule_KeyType(key) == REDISMODULE_KEYTYPE_MODULE &&
                    RedisModule_ModuleTypeGetType(key) == type();
  return ours ? static_cast<TableValue*>(RedisModule_ModuleTypeGetValue(key)) : nullptr;
}

void set_table(RedisModuleKey* key, std::shared_ptr<Table> table) {
  auto value = std::make_unique<TableValue>(TableValue{std::move(table)});
  if (RedisModule_ModuleTypeSetValue(key, type(), value.get()) == REDISMODULE_OK)
    static_cast<void>(value.release());
}

}  // namespace perdix::valkey
