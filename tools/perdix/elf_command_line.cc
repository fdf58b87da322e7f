#include "perdix/elf_command_line.h"

#include <map>
#include <memory>
#include <string>

#include "perdix/elf_commands.h"

namespace perdix::tool {
namespace {

// The options of a command live as long as its callback.
template <class Options>
CLI::App* add_elf_command(CLI::App& app, ExitStatus& status, const char* name,
                          const char* description, const std::shared_ptr<Options>& options,
                          ExitStatus (*command)(const Options&)) {
  CLI::App* added = app.add_subcommand(name, description);
  added->callback([options, command, &status] { status = command(*options); });
  added->add_option("POOL", options->target.pool, "File of the pool")->required();
  added->add_option("TABLE", options->target.index, "Name of the table in the pool")->required();
  return added;
}

void add_elf_progress(CLI::App& command, bool& progress) {
  command.add_flag("--progress", progress, "Show progress even if standard error is no terminal");
}

void add_elf_build(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<ElfBuildCommand>();
  CLI::App* command = add_elf_command(
      app, status, "build", "Build a table from the rows of a CSV or TSV file", options, elf_build);
  command->add_option("FILE", options->file, "File of rows; - for standard input")->required();
  command
      ->add_option("--columns", options->columns,
                   "Names and types, e.g. a:int32,b:string; types: int32 int64 double date string")
      ->required();
  command->add_flag("--header", options->header,
                    "The first row names the columns; those in --columns are taken by name");
  command->add_option("--order", options->order,
                      "Names of the columns that come first in the Elf (default: those with the "
                      "fewest different values)");
  const std::map<std::string, RowFormat> formats = {{"csv", RowFormat::csv},
                                                    {"tsv", RowFormat::tsv}};
  const auto store = [options, formats](const std::string& word) {
    options->format = formats.at(word);
  };
  command
      ->add_option_function<std::string>("--format", store,
                                         "Format of the file (default: tsv for *.tsv, else csv)")
      ->check(CLI::IsMember({"csv", "tsv"}));
  add_elf_progress(*command, options->progress);
  command->footer(
      "The table is created if the pool has none of that name; rows that it has are replaced, at\n"
      "once and when all of the file is read. Dates are YYYY-MM-DD. A name with a comma stands in\n"
      "double quotes. In TSV, \\t, \\n and \\\\ stand for tab, newline and backslash, as in the "
      "answers\n"
      "of 'perdix elf query', which --header reads back.\n\n"
      "Examples:\n"
      "  perdix elf build shop.pool sales sales.csv --columns day:date,shop:string,amount:double\n"
      "  tpchgen-cli csv --tables lineitem --stdout | perdix elf build tpch.pool lineitem - \\\n"
      "      --header --columns l_quantity:double,l_shipmode:string,l_shipdate:date");
}

void add_elf_query(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<ElfQueryCommand>();
  CLI::App* command = add_elf_command(app, status, "query", "Show the rows that meet conditions",
                                      options, elf_query);
  command->add_option("CONDITIONS", options->conditions, "See below; none: all rows");
  command->add_flag("--count", options->count, "Show only how many there are");
  command
      ->add_option("--time", options->times,
                   "Count that many times, and say on standard error how long that takes")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000}));
  command->add_option("--limit", options->limit, "Show at most that many rows")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--explain", options->explain, "Show how the query is answered instead");
  command->footer(
      "Conditions on columns, combined by 'and': = < <= > >=, between … and …, in (…, …), prefix.\n"
      "Values are words, or any text in single quotes; names with spaces stand in double quotes.\n"
      "Rows are shown in no order, as TSV below a line of names.\n\n"
      "Examples:\n"
      "  perdix elf query tpch.pool lineitem 'l_quantity between 1 and 10 and l_shipmode = AIR'\n"
      "  perdix elf query tpch.pool lineitem \"l_shipmode in (AIR, 'REG AIR')\" --count\n"
      "  perdix elf query tpch.pool lineitem 'l_shipdate >= 1994-01-01' --limit 10");
}

void add_elf_info(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<ElfCommand>();
  CLI::App* command = add_elf_command(
      app, status, "info", "Show facts about a table and its columns", options, elf_info);
  command->add_flag("--json", options->json, "Answer as JSON");
  command->footer("Example:\n  perdix elf info tpch.pool lineitem");
}

void add_elf_check(CLI::App& app, ExitStatus& status) {
  CLI::App* command = add_elf_command(app, status, "check", "Verify everything in a table",
                                      std::make_shared<ElfCommand>(), elf_check);
  command->footer(
      "Exit status 1 if something is wrong. 'perdix check' looks at all of a pool.\n\n"
      "Example:\n  perdix elf check tpch.pool lineitem");
}

void add_elf_compact(CLI::App& app, ExitStatus& status) {
  const auto options = std::make_shared<ElfCommand>();
  CLI::App* command = add_elf_command(
      app, status, "compact", "Fold inserted and erased rows into the Elf", options, elf_compact);
  add_elf_progress(*command, options->progress);
  command->footer("Example:\n  perdix elf compact tpch.pool lineitem");
}

}  // namespace

void add_elf(CLI::App& app, ExitStatus& status) {
  CLI::App* elf = app.add_subcommand("elf", "Tables of typed columns, filtered on any of them");
  elf->require_subcommand(1);
  for (const auto add :
       {add_elf_build, add_elf_query, add_elf_info, add_elf_check, add_elf_compact})
    add(*elf, status);
  elf->footer(
      "'perdix elf COMMAND --help' explains a command. Examples:\n"
      "  perdix elf build shop.pool sales sales.csv --columns day:date,shop:string,amount:double\n"
      "  perdix elf query shop.pool sales 'shop = Berlin and amount > 100' --count");
}

}  // namespace perdix::tool
