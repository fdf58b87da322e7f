#include "ycsb/options.h"

#include <functional>
#include <map>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "common/options.h"
#include "systems/systems.h"
#include "ycsb/traffic.h"

namespace perdix::bench {
namespace {

// The words that an option accepts, and what each sets.
using Choices = std::map<std::string, std::function<void()>>;

CLI::Option* add_choice(CLI::App& command, const std::string& name, const Choices& choices,
                        const std::string& description) {
  const auto choose = [choices](const std::string& word) { choices.at(word)(); };
  return command.add_option_function<std::string>(name, choose, description)
      ->check(CLI::IsMember([&] {
        std::vector<std::string> words;
        for (const auto& [word, action] : choices) words.push_back(word);
        return words;
      }()));
}

std::string system_names() {
  std::string names;
  for (const System& system : systems()) names += (names.empty() ? "" : ", ") + system.name;
  return names;
}

std::string workload_names() {
  std::string names;
  for (const Workload& workload : workloads())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", workload.name);
  return names;
}

void add_what(CLI::App& command, Config& config) {
  command
      .add_option("--systems,--engines,--engine,--indexes", config.systems,
                  "Systems: " + system_names())
      ->delimiter(',')
      ->capture_default_str();
  command.add_option("--baseline", config.baseline, "System that ratios refer to")
      ->capture_default_str();
  command
      .add_option("--workloads,--workload", config.workloads,
                  "Phases, in this order: " + workload_names())
      ->delimiter(',')
      ->capture_default_str();
  add_choice(command, "--distribution",
             {{"uniform", [&config] { config.distribution = Distribution::uniform; }},
              {"zipfian", [&config] { config.distribution = Distribution::zipfian; }},
              {"latest", [&config] { config.distribution = Distribution::latest; }}},
             "Choice of records in every phase, instead of each workload's own");
  add_count(command, "--records", config.records, "Records to load, e.g. 10M")->default_str("1M");
  add_count(command, "--operations", config.operations,
            "Operations per phase, all threads together")
      ->default_str("1M");
  command.add_option("--threads", config.threads, "Numbers of threads; each is a separate run")
      ->delimiter(',')
      ->capture_default_str();
}

void add_data(CLI::App& command, Config& config) {
  Shape& shape = config.data.shape;
  add_choice(command, "--keys",
             {{"u64",
               [&shape] {
                 shape.key_kind = Kind::u64;
                 shape.key_size = sizeof(std::uint64_t);
               }},
              {"bytes",
               [&shape] {
                 shape.key_kind = Kind::bytes;
                 if (shape.key_size == sizeof(std::uint64_t)) shape.key_size = 24;
                 shape.value_kind = Kind::bytes;
               }}},
             "Kind of keys")
      ->default_str("u64");
  command
      .add_option_function<std::size_t>(
          "--key-size",
          [&shape](std::size_t size) {
            shape.key_kind = Kind::bytes;
            shape.value_kind = Kind::bytes;
            shape.key_size = size;
          },
          "Bytes of a key of kind bytes, at least 16")
      ->default_str("24");
  command
      .add_option_function<std::size_t>(
          "--value-size",
          [&shape](std::size_t size) {
            shape.value_size = size;
            if (size != sizeof(std::uint64_t)) shape.value_kind = Kind::bytes;
          },
          "Bytes of a value; 8 beside u64 keys is a u64, any other size a byte string")
      ->default_str("8");
  add_choice(command, "--order",
             {{"random", [&config] { config.data.order = KeyOrder::random; }},
              {"sequential", [&config] { config.data.order = KeyOrder::sequential; }}},
             "Order of keys in which records are loaded")
      ->default_str("random");
  command.add_option("--seed", config.seed, "Seed of keys and choices")->capture_default_str();
}

void add_where(CLI::App& command, Config& config) {
  add_choice(command, "--durability",
             {{"automatic", [&config] { config.durability = Durability::automatic; }},
              {"process", [&config] { config.durability = Durability::process; }},
              {"power", [&config] { config.durability = Durability::power; }}},
             "What all systems must survive; with power, LMDB and RocksDB sync")
      ->default_str("automatic");
  add_choice(command, "--domain",
             {{"detect", [&config] { config.domain = DomainChoice::detect; }},
              {"cpu_cache", [&config] { config.domain = DomainChoice::cpu_cache; }},
              {"memory_controller", [&config] { config.domain = DomainChoice::memory_controller; }},
              {"page_cache", [&config] { config.domain = DomainChoice::page_cache; }}},
             "Where stores of perdix are taken to be safe; memory_controller forces cache-line "
             "write-backs")
      ->default_str("detect");
  command
      .add_option("--pool-size", config.pool_size,
                  "Bytes that perdix's pools begin with (default: they grow while they are loaded)")
      ->transform(CLI::AsSizeValue(false));
}

void add_memory(CLI::App& command, Config& config) {
  command
      .add_option("--dram-budget", config.dram_budget,
                  "DRAM for write buffers of sptree+buffers, cceh+b and cceh+bo, in bytes "
                  "(default: one for each leaf)")
      ->transform(CLI::AsSizeValue(false));
  command
      .add_option("--warm-memory", config.warm_memory,
                  "Bytes of memory that are touched before each system begins, and given back as "
                  "it grows (default: about what it takes; 0: none)")
      ->transform(CLI::AsSizeValue(false));
}

void add_how(CLI::App& command, Options& options) {
  command
      .add_option("--repeat", options.config.repeat, "Rounds of all systems; medians are reported")
      ->capture_default_str();
  command
      .add_option("--sample-every", options.config.sample_every,
                  "One in this many operations is timed for the percentiles; with power each is")
      ->capture_default_str();
}

}  // namespace

void add_options(CLI::App& command, Options& options) {
  add_what(command, options.config);
  add_data(command, options.config);
  add_where(command, options.config);
  add_memory(command, options.config);
  add_how(command, options);
  add_meter(command, options);
}

}  // namespace perdix::bench
