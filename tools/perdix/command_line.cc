#include "perdix/command_line.h"

#include <exception>
#include <map>
#include <memory>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <perdix/bus_errors.h>
#include <perdix/error.h>
#include <perdix/index.h>

#include "perdix/bench_command.h"
#include "perdix/commands.h"
#include "perdix/elf_command_line.h"
#include "perdix/notation.h"
#include "perdix/output.h"
#include "perdix/plugins.h"
#include "terminal/progress.h"

namespace perdix::tool {
namespace {

const std::map<std::string, Kind> kKinds = {{"u64", Kind::u64}, {"bytes", Kind::bytes}};
const std::map<std::string, RowFormat> kFormats = {{"tsv", RowFormat::tsv},
                                                   {"csv", RowFormat::csv}};
const std::map<std::string, Durability> kDurabilities = {{"automatic", Durability::automatic},
                                                         {"process", Durability::process},
                                                         {"power", Durability::power}};
const std::map<std::string, DomainChoice> kDomains = {
    {"detect", DomainChoice::detect},
    {"cpu_cache", DomainChoice::cpu_cache},
    {"memory_controller", DomainChoice::memory_controller},
    {"page_cache", DomainChoice::page_cache}};

// The options of a command live as long as its callback.
template <class Options>
CLI::App* add_command(CLI::App& app, ExitStatus& status, const char* name, const char* description,
                      const std::shared_ptr<Options>& options,
                      ExitStatus (*command)(const Options&)) {
  CLI::App* added = app.add_subcommand(name, description);
  added->callback([options, command, &status] { status = command(*options); });
  return added;
}

// An option that takes one of some words, each of which stands for a value.
template <class T, class Variable>
void add_words(CLI::App& command, const std::string& name, const std::map<std::string, T>& words,
               Variable& variable, const std::string& description) {
  std::vector<std::string> names;
  for (const auto& [word, value] : words) names.push_back(word);
  const auto store = [words, &variable](const std::string& word) { variable = words.at(word); };
  command.add_option_function<std::string>(name, store, description)->check(CLI::IsMember(names));
}

void add_pool(CLI::App& command, std::string& pool) {
  command.add_option("POOL", pool, "File of the pool")->required();
}

void add_target(CLI::App& command, Target& target) {
  add_pool(command, target.pool);
  command.add_option("INDEX", target.index, "Name of the index in the pool")->required();
}

void add_spec(CLI::App& command, IndexSpec& spec) {
  std::map<std::string, std::string> engines;
  for (const std::string& engine : Index::engines(with_plugins().plugins))
    engines.emplace(engine, engine);
  add_words(command, "--engine", engines, spec.engine, "Engine of a new index (default: sptree)");
  add_words(command, "--keys", kKinds, spec.keys, "Kind of keys of a new index (default: bytes)");
  add_words(command, "--values", kKinds, spec.values,
            "Kind of values of a new index (default: bytes)");
  command
      .add_option("--option", spec.options,
                  "Option of the index, for example dram_budget=64M; 'perdix engines' lists them")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
}

void add_hex(CLI::App& command, bool& hex) {
  command.add_flag("--hex", hex,
                   "Keys and values of kind bytes are given and shown as hexadecimal digits");
}

void add_json(CLI::App& command, bool& json) { command.add_flag("--json", json, "Answer as JSON"); }

void add_create(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<CreateOptions>();
  CLI::App* command = add_command(app, status, "create",
                                  "Create a pool, the file that holds indexes", options, create);
  add_pool(*command, options->pool);
  command->add_option("--size", options->size,
                      "Space to allocate at creation, e.g. 64M; a pool grows as it fills");
  command->add_option("--max-size", options->max_size,
                      "Size that the pool may grow to, which it remembers (default: 1T)");
  add_words(*command, "--durability", kDurabilities, options->durability,
            "What it must survive: automatic is power on persistent memory, process elsewhere");
  add_words(*command, "--domain", kDomains, options->domain,
            "Where stores are safe on this machine, if you know better than the detection");
  command->footer(
      "Examples:\n"
      "  perdix create words.pool\n"
      "  perdix create /mnt/pmem/orders.pool --size 1G --durability power");
}

void add_columns(CLI::App& command, LoadOptions& options) {
  command.add_option("--key-column", options.key_column, "Column of the key, from 1")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command
      .add_option("--value-column", options.value_column,
                  "Column of the value; 0 for the line number")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
}

void add_load(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<LoadOptions>();
  CLI::App* command = add_command(app, status, "load",
                                  "Put the rows of a TSV or CSV file into an index", options, load);
  add_target(*command, options->target);
  command->add_option("FILE", options->file, "File of rows; - for standard input")->required();
  add_spec(*command, options->spec);
  add_words(*command, "--format", kFormats, options->format,
            "Format of the file (default: csv for *.csv, else tsv)");
  add_columns(*command, *options);
  command->add_flag("--header", options->header, "The first row names the columns");
  command->add_flag("--plain", options->plain, "In TSV, backslashes stand for themselves");
  add_hex(*command, options->hex);
  command->add_flag("--progress", options->progress,
                    "Show progress even if standard error is no terminal");
  command->footer(
      "The index is created if the pool has none of that name. A key that is there gets the new\n"
      "value, so a load that was interrupted can be run again.\n\n"
      "In TSV, \\t \\n \\r \\\\ and \\xHH stand for TAB, newline, carriage return, backslash and "
      "the\n"
      "byte HH, as 'perdix dump' writes them. In CSV, fields with commas, quotes or newlines are\n"
      "quoted.\n\n"
      "Examples:\n"
      "  perdix load words.pool words /usr/share/dict/words --value-column 0 --values u64\n"
      "  perdix load shop.pool orders orders.csv --header --keys u64 --value-column 3\n"
      "  perdix dump old.pool orders | perdix load new.pool orders -");
}

CLI::App* add_point(CLI::App& app, ExitStatus& status, const char* name, const char* description,
                    const std::shared_ptr<PointOptions>& options,
                    ExitStatus (*run)(const PointOptions&)) {
  CLI::App* command = add_command(app, status, name, description, options, run);
  add_target(*command, options->target);
  command->add_option("KEY", options->key, "The key; put -- before one that begins with a dash")
      ->required();
  add_hex(*command, options->hex);
  return command;
}

void add_get(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<PointOptions>();
  CLI::App* command = add_point(app, status, "get", "Show the value of a key", options, get);
  command->add_flag("--raw", options->raw,
                    "Show the bytes of the value as they are, without a newline");
  command->footer(
      "Exit status 1 if there is no such key. The value is shown with \\t \\n \\r \\\\ and \\xHH "
      "for\n"
      "bytes that would spoil a line.\n\n"
      "Examples:\n"
      "  perdix get words.pool words partridge\n"
      "  perdix get images.pool thumbnails logo --raw > logo.png");
}

void add_put(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<PointOptions>();
  CLI::App* command = add_point(app, status, "put", "Set the value of a key", options, put);
  command->add_option("VALUE", options->value, "The value")->required();
  add_spec(*command, options->spec);
  command->footer(
      "The index is created if the pool has none of that name. The value is durable when the\n"
      "command returns.\n\n"
      "Examples:\n"
      "  perdix put shop.pool stock pears 200 --values u64\n"
      "  perdix put shop.pool blobs --hex 00ff 89504e47");
}

void add_del(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<DeleteOptions>();
  CLI::App* command =
      add_command(app, status, "del", "Remove a key, or all of a range", options, del);
  add_target(*command, options->target);
  CLI::Option* key = command->add_option("KEY", options->key,
                                         "The key; put -- before one that begins with a dash");
  CLI::Option* range =
      command
          ->add_option("--range", options->range,
                       "Remove the keys from the first of these on, up to the second, which stays")
          ->expected(2)
          ->excludes(key);
  add_hex(*command, options->hex);
  command->parse_complete_callback([key, range] {
    if (key->count() + range->count() == 0) throw CLI::RequiredError("KEY or --range");
  });
  command->footer(
      "Exit status 1 if there is no such key. A range that is interrupted is removed in part.\n\n"
      "Examples:\n"
      "  perdix del shop.pool stock pears\n"
      "  perdix del shop.pool orders --range 1000 2000");
}

void add_incr(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<IncrementOptions>();
  CLI::App* command =
      add_command(app, status, "incr", "Add to the number that is a key's value", options, incr);
  add_target(*command, options->target);
  command->add_option("KEY", options->key, "The key; put -- before one that begins with a dash")
      ->required();
  command->add_option("BY", options->by, "What to add, which may be negative")
      ->capture_default_str();
  add_spec(*command, options->spec);
  add_hex(*command, options->hex);
  command->footer(
      "A key that is absent counts as 0. Values of kind bytes are decimal digits. Shows the sum.\n"
      "A sum below 0 or above 2^64 - 1 is an error and changes nothing.\n\n"
      "Examples:\n"
      "  perdix incr shop.pool stock pears 200 --values u64\n"
      "  perdix incr shop.pool stock pears -1");
}

void add_scan(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<ScanOptions>();
  CLI::App* command =
      add_command(app, status, "scan", "Show pairs in the order of their keys", options, scan);
  add_target(*command, options->target);
  command->add_option("--from", options->from, "Show no key that is less");
  command->add_option("--to", options->to, "Show only keys that are less");
  command->add_option("--prefix", options->prefix,
                      "Show only keys that begin with this (keys of kind bytes)");
  command->add_option("--limit", options->limit, "Show at most that many pairs")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--reverse", options->reverse, "Show them in descending order");
  command->add_flag("--keys-only", options->keys_only, "Leave the values out");
  add_hex(*command, options->hex);
  command->footer(
      "One pair per line, key and value separated by a tab, with \\t \\n \\r \\\\ and \\xHH for "
      "bytes\n"
      "that would spoil it.\n\n"
      "Examples:\n"
      "  perdix scan words.pool words --prefix perd\n"
      "  perdix scan shop.pool orders --from 1000 --to 2000\n"
      "  perdix scan shop.pool orders --reverse --limit 20");
}

void add_dump(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<DumpOptions>();
  CLI::App* command = add_command(app, status, "dump",
                                  "Write a whole index as TSV that load reads back", options, dump);
  add_target(*command, options->target);
  command->add_flag("!--no-header", options->header,
                    "Leave out the first line, which says what the index is");
  command->footer(
      "One pair per line; any bytes come back exactly, since \\t \\n \\r \\\\ and \\xHH stand for "
      "those\n"
      "that would spoil a line. The first line lets load create an index of the same engine and\n"
      "kinds.\n\n"
      "Examples:\n"
      "  perdix dump shop.pool orders > orders.tsv\n"
      "  perdix dump shop.pool orders | perdix load backup.pool orders -");
}

void add_info(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<InfoOptions>();
  CLI::App* command =
      add_command(app, status, "info", "Show facts about a pool and its indexes", options, info);
  add_pool(*command, options->pool);
  command->add_flag("--stats", options->stats, "Open each index and show its sizes too");
  add_json(*command, options->json);
  command->footer(
      "Examples:\n"
      "  perdix info words.pool --stats\n"
      "  perdix info words.pool --json | jq .size");
}

void add_check(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<CheckOptions>();
  CLI::App* command =
      add_command(app, status, "check", "Verify everything in a pool", options, check);
  add_pool(*command, options->pool);
  add_json(*command, options->json);
  command->footer(
      "Exit status 1 if something is wrong. A pool that only survives the end of a process, and\n"
      "was open when the machine went down, can be opened again once this command has found it\n"
      "sound.\n\n"
      "Example:\n"
      "  perdix check words.pool");
}

void add_drop(CLI::App& app, ExitStatus& status) {
  const auto target = std::make_shared<Target>();
  CLI::App* command =
      add_command(app, status, "drop", "Remove an index and all that is in it", target, drop);
  add_target(*command, *target);
  command->footer(
      "There is no way back, and no question is asked.\n\n"
      "Example:\n"
      "  perdix drop shop.pool orders");
}

void add_engines(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<EnginesOptions>();
  CLI::App* command = add_command(
      app, status, "engines", "Show which engines there are, and their options", options, engines);
  add_json(*command, options->json);
  command->footer(
      "Each line has an option, its default, what its values can be, and what it means. Numbers\n"
      "may end in K, M, G or T; a budget may be 'unlimited'.\n\n"
      "Example:\n"
      "  perdix load shop.pool orders orders.tsv --engine elimda --option collecting_logs=64");
}

void add_commands(CLI::App& app, ExitStatus& status) {
  app.set_version_flag("--version", "perdix " PERDIX_VERSION);
  app.require_subcommand(1);
  app.footer(
      "'perdix COMMAND --help' explains a command and shows examples. A first tour:\n"
      "  perdix create words.pool\n"
      "  perdix load words.pool words /usr/share/dict/words --value-column 0 --values u64\n"
      "  perdix get words.pool words partridge\n"
      "  perdix scan words.pool words --prefix perd\n"
      "  perdix info words.pool --stats\n\n"
      "Exit status: 0; 1 if the answer is no (a key is absent, a check found problems); 2 after "
      "an\n"
      "error, with one line on standard error that says what to do.");
  for (const auto add : {add_create, add_load, add_get, add_put, add_del, add_incr, add_scan,
                         add_dump, add_info, add_check, add_drop, add_engines, add_elf}) {
    add(app, status);
  }
  add_bench(app);
}

int fail(std::string_view message) {
  terminal::tell(fmt::format("perdix: {}\n", printable(message)));
  return static_cast<int>(ExitStatus::failed);
}

// Help and version are "errors" for the parser, with exit code 0.
int end_of_parsing(const CLI::App& app, const CLI::ParseError& e) {
  if (e.get_exit_code() == 0) return app.exit(e);
  const auto commands = app.get_subcommands();
  const std::string help =
      commands.empty() ? "perdix --help" : "perdix " + commands.front()->get_name() + " --help";
  return fail(fmt::format("{}; see '{}'", e.what(), help));
}

}  // namespace

int run_command_line(int argc, char** argv) {
  CLI::App app("Crash-proof indexes in DRAM and persistent memory", "perdix");
  ExitStatus status = ExitStatus::ok;
  try {
    handle_bus_errors();
    add_commands(app, status);
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return end_of_parsing(app, e);
  } catch (const ReaderGone&) {
    return static_cast<int>(ExitStatus::ok);
  } catch (const std::exception& e) {
    return fail(e.what());
  }
  return static_cast<int>(status);
}

}  // namespace perdix::tool
