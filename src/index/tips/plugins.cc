// The indexes that Tips has itself, a line each, and those that a pool was opened with.
#include "index/tips/plugins.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <tuple>

#include <fmt/format.h>

#include <perdix/error.h>

#include "index/tips/indexes/btree.h"
#include "index/tips/indexes/hash_table.h"
#include "util/hash.h"

namespace perdix::tips {

std::uint64_t IntegerKeys::hash(Word key) { return detail::util::hash(key); }
std::uint64_t StringKeys::hash(Word key) { return detail::util::hash(view(key)); }

}  // namespace perdix::tips

namespace perdix::detail::index::tips {
namespace {

/// An index for both kinds of keys.
template <template <class, class> class Index>
struct Both {
  PluginOf<Index<Durable, IntegerKeys>> integers;
  PluginOf<Index<Durable, StringKeys>> strings;

  const Plugin& of(Kind keys) const {
    return keys == Kind::u64 ? static_cast<const Plugin&>(integers) : strings;
  }
};

template <template <class, class> class Index>
constexpr Both<Index> both(std::string_view name) {
  return {{name, Kind::u64}, {name, Kind::bytes}};
}

constexpr std::tuple kPlugins = {both<HashTable>("hash"), both<BTree>("btree")};

/// Plug-ins that perdix ships as a library of their own (plugins/).
constexpr std::array<std::string_view, 5> kFurther = {"bst", "art", "clht", "lfhash", "lfbst"};

bool is_further(std::string_view name) {
  return std::ranges::find(kFurther, name) != kFurther.end();
}

/// Throws invalid_argument unless a name can be one of a plug-in.
void require_name(std::string_view name) {
  if (is_further(name)) return;
  const bool has_prefix = name.starts_with(kUserPrefix);
  const std::string_view own = has_prefix ? name.substr(kUserPrefix.size()) : "";
  const bool printable =
      std::all_of(own.begin(), own.end(), [](char c) { return c > ' ' && c <= '~'; });
  if (!own.empty() && own.size() <= kMaxUserName && printable) return;
  throw Error(Errc::invalid_argument,
              fmt::format("a plug-in of Tips can't be called '{}'; its name must be '{}' and 1 to "
                          "{} visible ASCII characters behind it",
                          name, kUserPrefix, kMaxUserName));
}

}  // namespace

bool is_same(const Plugin* a, const Plugin* b) { return a->name == b->name && a->keys == b->keys; }

bool is_plugged(std::string_view name) { return name.starts_with(kUserPrefix) || is_further(name); }

const Plugin* look_up_plugin(std::string_view name, Kind keys) {
  const Plugin* found = nullptr;
  const auto look = [&](const auto& both) {
    if (both.integers.name == name) found = &both.of(keys);
  };
  std::apply([&](const auto&... all) { (look(all), ...); }, kPlugins);
  return found;
}

const Plugin* look_up_plugin(const pool::PoolCore& pool, std::string_view name, Kind keys) {
  if (!is_plugged(name)) return look_up_plugin(name, keys);
  for (const Plugin* plugin : pool.plugins())
    if (plugin->name == name && plugin->keys == keys) return plugin;
  return nullptr;
}

bool is_plugged_engine(std::string_view engine) {
  return engine.starts_with(kEnginePrefix) && is_plugged(engine.substr(kEnginePrefix.size()));
}

void throw_no_plugin(const pool::PoolCore& pool, std::string_view name, Kind keys) {
  throw Error(Errc::unsupported,
              fmt::format("pool '{}' was opened without the plug-in '{}{}' for {} keys; open it "
                          "with that in PoolOptions::plugins, by the program that has it{}",
                          pool.path().string(), kEnginePrefix, name, to_string(keys),
                          is_further(name) ? " (it is in perdix-tips-plugins; in C, call "
                                             "perdix_tips_add_indexes() before)"
                                           : ""));
}

const Plugin& find_plugin(const pool::PoolCore& pool, std::string_view engine, Kind keys,
                          bool ordered) {
  const std::string_view name = engine.substr(kEnginePrefix.size());
  const Plugin* plugin = look_up_plugin(pool, name, keys);
  if (plugin == nullptr) throw_no_plugin(pool, name, keys);
  if (plugin->ordered == ordered) return *plugin;
  throw Error(Errc::wrong_engine,
              fmt::format("the plug-in '{}' that pool '{}' was opened with has {} keys; open the "
                          "index as one that has",
                          engine, pool.path().string(), plugin->ordered ? "ordered" : "unordered"));
}

void require_plugins(std::span<const Plugin* const> plugins) {
  for (auto at = plugins.begin(); at != plugins.end(); ++at) {
    if (*at == nullptr) throw Error(Errc::invalid_argument, "a plug-in of Tips is null");
    require_name((*at)->name);
    const auto same = [&](const Plugin* other) { return is_same(*at, other); };
    if (std::any_of(plugins.begin(), at, same)) {
      throw Error(
          Errc::invalid_argument,
          fmt::format("two plug-ins of Tips are called '{}'; choose another name", (*at)->name));
    }
  }
}

}  // namespace perdix::detail::index::tips
