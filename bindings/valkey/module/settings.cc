#include "settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <memory>

#include <perdix/tips_indexes.h>

#include "module.h"

namespace perdix::valkey {
namespace {

using std::string_literals::operator""s;

struct Choices {
  std::span<const char*> names;
  std::span<const int> values;
};

std::array kDurabilityNames{"automatic", "process", "power"};
constexpr std::array kDurabilities{0, 1, 2};
std::array kModeNames{"tables", "keyspace"};
std::array kTechniqueNames{"none", "b", "bo", "boc"};
constexpr std::array kTechniques{static_cast<int>(Technique::none), static_cast<int>(Technique::b),
                                 static_cast<int>(Technique::bo), static_cast<int>(Technique::boc)};
std::array kOversizeNames{"warn", "refuse"};
std::array kUnreadableNames{"refuse", "skip"};
std::array kPartialNames{"refuse", "serve"};
constexpr std::array kTwo{0, 1};

const Choices kDurabilityChoices{kDurabilityNames, kDurabilities};
const Choices kModeChoices{kModeNames, kTwo};
const Choices kTechniqueChoices{kTechniqueNames, kTechniques};
const Choices kOversizeChoices{kOversizeNames, kTwo};
const Choices kUnreadableChoices{kUnreadableNames, kTwo};
const Choices kPartialChoices{kPartialNames, kTwo};

[[noreturn]] void refuse(std::string_view name, std::string_view value, const std::string& wanted) {
  throw Error(Errc::invalid_argument,
              "perdix."s.append(name) + " can't be '" + std::string(value) + "': it is " + wanted);
}

int choice(std::string_view name, std::string_view value, const Choices& choices) {
  std::string all;
  for (std::size_t i = 0; i < choices.names.size(); ++i) {
    if (value == choices.names[i]) return choices.values[i];
    all.append(i == 0 ? "" : ", ").append(choices.names[i]);
  }
  refuse(name, value, "one of " + all);
}

/// Bytes, with the server's units: 512, 64mb, 1gb.
long long bytes(std::string_view name, std::string_view value) {
  long long number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  std::string unit(end, value.data() + value.size());
  std::transform(unit.begin(), unit.end(), unit.begin(), [](unsigned char c) {
    return static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  });
  constexpr std::array<std::pair<std::string_view, int>, 8> kUnits{
      {{"", 0}, {"b", 0}, {"k", 10}, {"kb", 10}, {"m", 20}, {"mb", 20}, {"g", 30}, {"gb", 30}}};
  const auto* found = std::find_if(kUnits.begin(), kUnits.end(),
                                   [&](const auto& known) { return known.first == unit; });
  const bool fits = error == std::errc() && number >= 0 && found != kUnits.end() &&
                    number <= std::numeric_limits<long long>::max() >> found->second;
  if (!fits) refuse(name, value, "a number of bytes, for example 64mb");
  return number << found->second;
}

bool is_engine(std::string_view name) {
  const auto engines = Index::engines(tips::further_plugins());
  return std::find(engines.begin(), engines.end(), name) != engines.end();
}

void check_engine(std::string_view value) {
  if (!is_engine(value)) refuse("engine", value, "the name of an engine, for example sptree");
}

void take_argument(Settings& settings, std::string_view name, std::string_view value) {
  if (name == "path") {
    settings.path = value;
  } else if (name == "durability") {
    settings.durability = choice(name, value, kDurabilityChoices);
  } else if (name == "mode") {
    settings.mode = choice(name, value, kModeChoices);
  } else if (name == "engine") {
    check_engine(value);
    settings.engine = value;
  } else if (name == "dram-budget") {
    settings.dram_budget = bytes(name, value);
  } else if (name == "technique") {
    settings.technique = choice(name, value, kTechniqueChoices);
  } else if (name == "max-size") {
    settings.max_size = bytes(name, value);
  } else if (name == "max-value") {
    settings.max_value = bytes(name, value);
  } else if (name == "oversize") {
    settings.oversize = choice(name, value, kOversizeChoices);
  } else if (name == "unreadable") {
    settings.unreadable = choice(name, value, kUnreadableChoices);
  } else if (name == "partial") {
    settings.partial = choice(name, value, kPartialChoices);
  } else {
    throw Error(Errc::invalid_argument,
                "the module has no argument '"s.append(name) +
                    "': path, durability, mode, engine, dram-budget, technique, max-size, "
                    "max-value, oversize, unreadable, partial");
  }
}

long long get_number(const char*, void* setting) { return *static_cast<long long*>(setting); }

int set_number(const char*, long long value, void* setting, RedisModuleString**) {
  *static_cast<long long*>(setting) = value;
  return REDISMODULE_OK;
}

/// 0 is the library's choice, which the open pool knows.
long long get_max_size(const char*, void* setting) {
  const long long chosen = *static_cast<long long*>(setting);
  if (chosen != 0 || !has_module()) return chosen;
  try {
    return static_cast<long long>(module().pool().info().max_size);
  } catch (const std::exception&) {
    return chosen;  // the pool is closed, or its device has failed
  }
}

int get_choice(const char*, void* setting) { return *static_cast<int*>(setting); }

int set_choice(const char*, int value, void* setting, RedisModuleString**) {
  *static_cast<int*>(setting) = value;
  return REDISMODULE_OK;
}

/// The server shows the string after the call returned and does not free it.
RedisModuleString* get_text(const char*, void* setting) {
  static std::unique_ptr<String> shown;
  shown = std::make_unique<String>(*static_cast<std::string*>(setting));
  return shown->get();
}

int set_path(const char*, RedisModuleString* value, void* setting, RedisModuleString**) {
  *static_cast<std::string*>(setting) = view(value);
  return REDISMODULE_OK;
}

int set_engine(const char*, RedisModuleString* value, void* setting, RedisModuleString** error) {
  try {
    check_engine(view(value));
    *static_cast<std::string*>(setting) = view(value);
    return REDISMODULE_OK;
  } catch (const std::exception& problem) {
    *error = RedisModule_CreateString(nullptr, problem.what(), std::strlen(problem.what()));
    return REDISMODULE_ERR;
  }
}

void register_number(Context* context, const char* name, long long& setting, unsigned flags,
                     RedisModuleConfigGetNumericFunc get = get_number) {
  RedisModule_RegisterNumericConfig(context, name, setting, flags | REDISMODULE_CONFIG_MEMORY, 0,
                                    std::numeric_limits<long long>::max(), get, set_number, nullptr,
                                    &setting);
}

void register_choice(Context* context, const char* name, int& setting, const Choices& choices,
                     unsigned flags) {
  RedisModule_RegisterEnumConfig(context, name, setting, flags, choices.names.data(),
                                 choices.values.data(), static_cast<int>(choices.names.size()),
                                 get_choice, set_choice, nullptr, &setting);
}

}  // namespace

const char* Settings::technique_name() const {
  return kTechniqueNames.at(static_cast<std::size_t>(technique));
}

void load_settings(Context* context, Arguments arguments, Settings& settings) {
  if (arguments.size() % 2 != 0)
    throw Error(Errc::invalid_argument, "the module's arguments are pairs of a name and a value");
  for (std::size_t i = 0; i < arguments.size(); i += 2)
    take_argument(settings, view(arguments[i]), view(arguments[i + 1]));

  constexpr unsigned kFixed = REDISMODULE_CONFIG_IMMUTABLE;
  RedisModule_RegisterStringConfig(context, "path", settings.path.c_str(), kFixed, get_text,
                                   set_path, nullptr, &settings.path);
  RedisModule_RegisterStringConfig(context, "engine", settings.engine.c_str(),
                                   REDISMODULE_CONFIG_DEFAULT, get_text, set_engine, nullptr,
                                   &settings.engine);
  register_choice(context, "durability", settings.durability, kDurabilityChoices, kFixed);
  register_choice(context, "mode", settings.mode, kModeChoices, kFixed);
  register_choice(context, "technique", settings.technique, kTechniqueChoices,
                  REDISMODULE_CONFIG_DEFAULT);
  register_choice(context, "oversize", settings.oversize, kOversizeChoices,
                  REDISMODULE_CONFIG_DEFAULT);
  register_choice(context, "unreadable", settings.unreadable, kUnreadableChoices, kFixed);
  register_choice(context, "partial", settings.partial, kPartialChoices, kFixed);
  register_number(context, "dram-budget", settings.dram_budget, REDISMODULE_CONFIG_DEFAULT);
  register_number(context, "max-value", settings.max_value, REDISMODULE_CONFIG_DEFAULT);
  register_number(context, "max-size", settings.max_size, kFixed, get_max_size);
  if (RedisModule_LoadConfigs(context) == REDISMODULE_ERR)
    throw Error(Errc::invalid_argument, "a perdix. setting in the configuration has no meaning");
}

}  // namespace perdix::valkey
