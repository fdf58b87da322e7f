// Pools and indexes for programs in C: each call maps to one of perdix::Pool or perdix::Index, and
// its exception becomes a code and a message of the thread.
#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <perdix/error.h>
#include <perdix/index.h>
#include <perdix/pool.h>
#include <perdix/tips_c.h>
#include <perdix/tips_plugin.h>

#include "index/tips/c_plugin.h"
#include "index/tips/plugins.h"
#include "pm/processor.h"

namespace {

using perdix::CheckReport;
using perdix::Errc;
using perdix::Error;
using perdix::Index;
using perdix::Kind;
using perdix::Pool;
using perdix::PoolOptions;
using perdix::detail::index::tips::CPlugin;
using perdix::detail::index::tips::is_same;
using perdix::detail::index::tips::require_plugins;
using perdix::tips::Plugin;

static_assert(PERDIX_NO_MEMORY == static_cast<int>(Errc::no_memory) + 1 &&
              PERDIX_OUT_OF_SPACE == static_cast<int>(Errc::out_of_space) + 1);

using Plugins = std::vector<std::unique_ptr<CPlugin>>;

/// Plug-ins in C++, which the program has added for all pools: such that pools take. Thread-safe.
class AddedPlugins {
 public:
  /// Adds those whose name and kind of keys are not there yet. Throws invalid_argument, and adds
  /// none, if no pool would take one of them.
  void add(std::span<const Plugin* const> plugins) {
    const std::lock_guard lock(mutex_);
    std::vector<const Plugin*> all = all_;
    for (const Plugin* const& plugin : plugins) {
      require_plugins({&plugin, 1});
      const auto same = [&](const Plugin* other) { return is_same(plugin, other); };
      if (std::ranges::none_of(all, same)) all.push_back(plugin);
    }
    all_ = std::move(all);
  }

  std::vector<const Plugin*> all() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  mutable std::mutex mutex_;  // guards all_
  std::vector<const Plugin*> all_;
};

/// Those of this program.
AddedPlugins& added_plugins() {
  static AddedPlugins added;
  return added;
}

struct LastError {
  int code = 0;
  char message[1001] = "";
};
thread_local LastError last_error;

void set_error(int code, std::string_view message) noexcept {
  last_error.code = code;
  const std::size_t size = std::min(message.size(), sizeof last_error.message - 1);
  std::memcpy(last_error.message, message.data(), size);
  last_error.message[size] = '\0';
}

int fail(const Error& error) noexcept {
  const int code = static_cast<int>(error.code()) + 1;
  set_error(code, error.what());
  return -code;
}

/// Returns call(), or its exception as a code. The public calls throw Errors only; the code of this
/// file itself may run out of memory.
template <class Call>
int guarded(const Call& call) noexcept {
  try {
    return call();
  } catch (const Error& error) {
    return fail(error);
  } catch (const std::exception&) {
    return fail(Error::no_memory());
  }
}

/// Like guarded(), for a call that makes an object; null for a failure.
template <class Make>
auto guarded_object(const Make& make) noexcept -> decltype(make()) {
  decltype(make()) made = nullptr;
  guarded([&] { return made = make(), 1; });
  return made;
}

std::string_view name_of(const char* name, const char* what) {
  if (name != nullptr) return name;
  throw Error(Errc::invalid_argument, std::string(what) + " is NULL");
}

Kind kind_of(perdix_kind kind) {
  if (kind == PERDIX_U64) return Kind::u64;
  if (kind == PERDIX_BYTES) return Kind::bytes;
  throw Error(Errc::invalid_argument, "a kind of keys or values is PERDIX_U64 or PERDIX_BYTES");
}

perdix::Durability durability_of(perdix_durability durability) {
  switch (durability) {
    case PERDIX_AUTOMATIC: return perdix::Durability::automatic;
    case PERDIX_PROCESS: return perdix::Durability::process;
    case PERDIX_POWER: return perdix::Durability::power;
  }
  throw Error(Errc::invalid_argument, "a pool's durability is none of perdix_durability");
}

/// A key or a value as the bytes that an Index takes.
class Datum {
 public:
  Datum(perdix_datum datum, Kind wanted) {
    if (kind_of(datum.kind) != wanted) {
      throw Error(Errc::wrong_kind, std::string("the index has ") + std::string(to_string(wanted)) +
                                        " here, and the call gave another kind");
    }
    if (wanted == Kind::u64) {
      number_ = perdix::encode_u64(datum.number);
      bytes_ = {number_.data(), number_.size()};
    } else if (datum.size > 0) {
      bytes_ = {static_cast<const char*>(datum.data), datum.size};
    }
  }
  Datum(const Datum&) = delete;
  Datum& operator=(const Datum&) = delete;
  std::string_view bytes() const { return bytes_; }

 private:
  std::array<char, 8> number_{};
  std::string_view bytes_;
};

perdix_datum datum_of(std::string_view bytes, Kind kind) {
  if (kind == Kind::u64) return perdix_u64(perdix::decode_u64(bytes));
  return perdix_bytes(bytes.data(), bytes.size());
}

/// Of a report: 1 if all was checked and is sound, else 0 with the first problem.
int answer(const CheckReport& report) {
  for (const auto* sentences : {&report.problems, &report.unknown}) {
    if (sentences->empty()) continue;
    set_error(PERDIX_CORRUPT, sentences->front());
    return 0;
  }
  return 1;
}

}  // namespace

struct perdix_pool {
  std::shared_ptr<const Plugins> plugins;  // until the pool and its indexes are closed
  Pool pool;
};

struct perdix_tips {
  std::shared_ptr<const Plugins> plugins;
  std::unique_ptr<Index> index;
  Kind key;
  Kind value;
};

namespace {

template <class Open>
perdix_pool* open_pool(const char* path, const perdix_pool_options* options, const Open& open) {
  return guarded_object([&] {
    perdix::detail::pm::require_processor();
    PoolOptions wanted;
    wanted.plugins = added_plugins().all();
    auto plugins = std::make_shared<Plugins>();
    if (options != nullptr) {
      wanted.initial_size = options->initial_size;
      wanted.max_size = options->max_size;
      wanted.address = options->address;
      wanted.durability = durability_of(options->durability);
      for (std::size_t i = 0; i < options->plugin_count; ++i) {
        plugins->push_back(std::make_unique<CPlugin>(*options->plugins[i]));
        wanted.plugins.push_back(plugins->back().get());
      }
    }
    return new perdix_pool{std::move(plugins), open(name_of(path, "the path of a pool"), wanted)};
  });
}

/// Throws invalid_argument for an option without a name or a value, and for one that is there
/// twice.
perdix::IndexOptions options_of(std::span<const perdix_option> options) {
  perdix::IndexOptions wanted;
  for (const perdix_option& option : options) {
    const std::string name(name_of(option.name, "the name of an option"));
    if (!wanted.named.emplace(name, name_of(option.value, "the value of an option")).second)
      throw Error(Errc::invalid_argument, "the option '" + name + "' is given twice");
  }
  return wanted;
}

template <class Write>
int write(perdix_tips* index, perdix_datum key, perdix_datum value, const Write& write) {
  return guarded([&] {
    const Datum typed_key(key, index->key);
    const Datum typed_value(value, index->value);
    return write(*index->index, typed_key.bytes(), typed_value.bytes()) ? 1 : 0;
  });
}

}  // namespace

int perdix::tips::add_for_c(std::span<const Plugin* const> plugins) noexcept {
  return guarded([&] { return added_plugins().add(plugins), 1; });
}

int perdix_last_code(void) { return last_error.code; }

const char* perdix_last_error(void) { return last_error.message; }

perdix_pool* perdix_pool_create(const char* path, const perdix_pool_options* options) {
  return open_pool(path, options,
                   [](auto name, const auto& all) { return Pool::create(name, all); });
}

perdix_pool* perdix_pool_open(const char* path, const perdix_pool_options* options) {
  return open_pool(path, options, [](auto name, const auto& all) { return Pool::open(name, all); });
}

perdix_pool* perdix_pool_open_or_create(const char* path, const perdix_pool_options* options) {
  return open_pool(path, options,
                   [](auto name, const auto& all) { return Pool::open_or_create(name, all); });
}

int perdix_pool_check(const perdix_pool* pool) {
  return guarded([&] { return answer(pool->pool.check()); });
}

int perdix_pool_drop(perdix_pool* pool, const char* name) {
  return guarded([&] {
    pool->pool.drop(name_of(name, "the name of an index"));
    return 1;
  });
}

int perdix_pool_close(perdix_pool* pool) {
  const int closed = guarded([&] {
    pool->pool.close();
    return 1;
  });
  if (closed != -PERDIX_IN_USE) delete pool;
  return closed;
}

perdix_tips* perdix_tips_open(perdix_pool* pool, const char* name, const char* engine,
                              perdix_kind keys, perdix_kind values) {
  return perdix_tips_open_with(pool, name, engine, keys, values, nullptr, 0);
}

perdix_tips* perdix_tips_open_with(perdix_pool* pool, const char* name, const char* engine,
                                   perdix_kind keys, perdix_kind values,
                                   const perdix_option* options, size_t option_count) {
  return guarded_object([&] {
    const perdix::IndexOptions wanted = options_of({options, option_count});
    const perdix::IndexInfo info{std::string(name_of(name, "the name of an index")),
                                 std::string(name_of(engine, "the engine of an index")),
                                 kind_of(keys), kind_of(values)};
    return new perdix_tips{pool->plugins, Index::open_or_create(pool->pool, info, wanted),
                           info.key_kind, info.value_kind};
  });
}

int perdix_tips_put(perdix_tips* index, perdix_datum key, perdix_datum value) {
  return write(index, key, value, [](Index& to, auto k, auto v) { return to.put(k, v), true; });
}

int perdix_tips_insert(perdix_tips* index, perdix_datum key, perdix_datum value) {
  return write(index, key, value, [](Index& to, auto k, auto v) { return to.insert(k, v); });
}

int perdix_tips_update(perdix_tips* index, perdix_datum key, perdix_datum value) {
  return write(index, key, value, [](Index& to, auto k, auto v) { return to.update(k, v); });
}

int perdix_tips_erase(perdix_tips* index, perdix_datum key) {
  return guarded([&] { return index->index->erase(Datum(key, index->key).bytes()) ? 1 : 0; });
}

int perdix_tips_get(const perdix_tips* index, perdix_datum key, perdix_datum* value, void* buffer,
                    size_t capacity) {
  return guarded([&] {
    std::string found;
    if (!index->index->get(Datum(key, index->key).bytes(), found)) return 0;
    *value = datum_of(found, index->value);
    if (index->value == Kind::u64) return 1;
    value->data = buffer;
    if (capacity > 0) std::memcpy(buffer, found.data(), std::min(capacity, found.size()));
    return 1;
  });
}

int perdix_tips_scan(const perdix_tips* index, const perdix_datum* from, perdix_visit visit,
                     void* context) {
  return guarded([&] {
    const auto show = [&](std::string_view key, std::string_view value) {
      return visit(context, datum_of(key, index->key), datum_of(value, index->value)) != 0;
    };
    if (from == nullptr) {
      index->index->for_each(show);
    } else {
      index->index->scan(Datum(*from, index->key).bytes(), show);
    }
    return 1;
  });
}

int perdix_tips_size(const perdix_tips* index, uint64_t* size) {
  return guarded([&] {
    *size = index->index->size();
    return 1;
  });
}

int perdix_tips_check(const perdix_tips* index) {
  return guarded([&] { return answer(index->index->check()); });
}

int perdix_tips_close(perdix_tips* index) {
  delete index;
  return 1;
}
