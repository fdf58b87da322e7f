#include "perdix/elf_commands.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <perdix/elf_table.h>

#include "perdix/elf_rows.h"
#include "perdix/elf_values.h"
#include "perdix/new_index.h"
#include "perdix/notation.h"
#include "perdix/output.h"
#include "perdix/plugins.h"
#include "perdix/predicate.h"
#include "terminal/format.h"
#include "terminal/interrupt.h"
#include "terminal/progress.h"

namespace perdix::tool {
namespace {

using nlohmann::json;
using terminal::format_bytes;
using terminal::format_count;

constexpr std::uint64_t kWholeWork = 1'000'000;

terminal::ProgressStyle style_of(bool progress) {
  return terminal::progress_style(progress ? terminal::ProgressStyle::log
                                           : terminal::ProgressStyle::none);
}

// Shows the share of the work that is done, and ends it at an interrupt.
Elf::Progress shown_by(terminal::ProgressBar& bar, std::uint64_t rows,
                       const std::atomic<bool>& stop) {
  return [&bar, rows, &stop](double share) {
    bar.update(static_cast<std::uint64_t>(share * kWholeWork),
               static_cast<std::uint64_t>(share * static_cast<double>(rows)));
    return !stop;
  };
}

[[noreturn]] void throw_interrupted(std::string_view what) {
  throw Error(Errc::io_error,
              fmt::format("interrupted; the table is as it was before: {} again", what));
}

// Rows of a source as columns of a table.
class ElfLoader {
 public:
  ElfLoader(const ElfBuildCommand& command, const std::atomic<bool>& stop)
      : command_(command),
        stop_(stop),
        columns_(parse_columns(command.columns)),
        source_(command.file, stop),
        format_(format_of(command)),
        reader_(source_, source_.name(), format_),
        rows_(columns_) {}

  void read() {
    terminal::ProgressBar bar(style_of(command_.progress), "reading " + escape(command_.file),
                              "rows", source_.size());
    Row row;
    if (command_.header && !stop_ && next(row)) at(row, [&] { rows_.take_names(row); });
    reader_.take_empty_lines(rows_.width() == 1);
    // An interrupt ends the source early, so the row that was read then may be a part of one.
    while (!stop_ && next(row) && !stop_) {
      at(row, [&] { rows_.add(row); });
      bar.update(source_.bytes_read(), rows_.size());
    }
    if (stop_) throw_interrupted("build");
  }

  const std::vector<ElfColumn>& columns() const { return columns_; }
  const ElfRows& rows() const { return rows_; }

 private:
  static RowFormat format_of(const ElfBuildCommand& command) {
    return command.format.value_or(command.file.ends_with(".tsv") ? RowFormat::tsv
                                                                  : RowFormat::csv);
  }

  // In TSV, fields are escaped as a query shows them.
  bool next(Row& row) {
    if (!reader_.next(row)) return false;
    if (format_ != RowFormat::tsv) return true;
    at(row, [&] {
      for (std::string& field : row.fields) field = unescape(field);
    });
    return true;
  }

  // Errors say where the row is.
  template <class Call>
  void at(const Row& row, const Call& call) const {
    try {
      call();
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}:{}: {}; nothing has changed", source_.name(),
                                            row.line, error.what()));
    }
  }

  const ElfBuildCommand& command_;
  const std::atomic<bool>& stop_;
  const std::vector<ElfColumn> columns_;
  FileSource source_;
  const RowFormat format_;
  RowReader reader_;
  ElfRows rows_;
};

void write_plan(Output& out, const ElfPlan& plan) {
  out.write(fmt::format("{} walk over the Elf, then {} inserted rows one by one\n",
                        plan.walks ? "one" : "no", format_count(plan.delta_rows)));
  for (const ElfPlan::Step& step : plan.steps) {
    std::uint64_t codes = 0;
    for (const ElfInterval& interval : step.codes)
      codes += std::uint64_t{interval.upper} - interval.lower + 1;
    out.write(fmt::format("  {:<24}{} codes in {} interval{}\n", escape(step.column),
                          format_count(codes), format_count(step.codes.size()),
                          step.codes.size() == 1 ? "" : "s"));
  }
  if (plan.dimensions.empty()) return;
  out.write(fmt::format("\n  {:<12}{:>12}{:>12}   {}\n", "dimension", "lists", "cached",
                        "probability of a list"));
  for (std::size_t i = 0; i < plan.dimensions.size(); ++i) {
    const ElfStep& step = plan.dimensions[i];
    out.write(fmt::format("  {:<12}{:>12}{:>12}   {:.3g} to {:.3g}\n", i, format_count(step.lists),
                          format_count(step.cached), step.lowest_probability,
                          step.highest_probability));
  }
}

void write_rows(Output& out, const ElfTable& table, std::span<const ElfPredicate> where,
                std::uint64_t limit) {
  out.write("tid");
  for (const ElfColumn& column : table.columns()) out.write("\t" + escape(column.name));
  out.write("\n");
  if (limit == 0) return;
  table.rows(where, [&](std::uint32_t tid, std::span<const ElfValue> row) {
    out.write(std::to_string(tid));
    for (const ElfValue& value : row) out.write("\t" + to_text(value));
    out.write("\n");
    return --limit > 0;
  });
}

// Counts over and over again in this process, which takes no account of its start and opening.
std::uint64_t count_for_time(const ElfTable& table, std::span<const ElfPredicate> where,
                             std::uint64_t times) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> milliseconds;
  std::uint64_t rows = 0;
  for (std::uint64_t i = 0; i < times; ++i) {
    const auto begin = Clock::now();
    rows = table.count(where);
    milliseconds.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  std::ranges::sort(milliseconds);
  terminal::tell(fmt::format("{} quer{}: median {:.3f} ms, fastest {:.3f} ms\n",
                             format_count(times), times == 1 ? "y" : "ies", milliseconds[times / 2],
                             milliseconds[0]));
  return rows;
}

json to_json(const ElfTableStats& stats) {
  json out = {{"rows", stats.rows},
              {"delta_rows", stats.delta_rows},
              {"pm_bytes", stats.pm_bytes},
              {"elf_bytes", stats.elf.elf_bytes},
              {"columns", json::array()}};
  for (const ElfColumnStats& column : stats.columns) {
    out["columns"].push_back({{"name", column.column.name},
                              {"type", to_string(column.column.type)},
                              {"dimension", column.dimension},
                              {"words", column.words},
                              {"dictionary_bytes", column.dictionary_bytes}});
  }
  return out;
}

void write_stats(Output& out, const ElfTableStats& stats) {
  const auto bytes = [](std::uint64_t n) { return format_bytes(static_cast<double>(n)); };
  out.write(fmt::format("{:<12}{}, {} of them inserted since the last compact\n", "rows",
                        format_count(stats.rows), format_count(stats.delta_rows)));
  out.write(fmt::format("{:<12}{}, {} of it lists of the Elf\n", "PM", bytes(stats.pm_bytes),
                        bytes(stats.elf.elf_bytes)));
  out.write(fmt::format("\n  {:<24}{:<10}{:>10}{:>14}{:>14}\n", "column", "type", "dimension",
                        "words", "dictionary"));
  for (const ElfColumnStats& column : stats.columns) {
    out.write(fmt::format("  {:<24}{:<10}{:>10}{:>14}{:>14}\n", escape(column.column.name),
                          to_string(column.column.type), column.dimension,
                          format_count(column.words), bytes(column.dictionary_bytes)));
  }
}

void build_table(const Pool& pool, const ElfBuildCommand& command, const ElfLoader& loader,
                 const std::atomic<bool>& stop) {
  ElfTable table(pool, command.target.index, loader.columns());
  terminal::ProgressBar bar(style_of(command.progress), "building " + escape(command.target.index),
                            "rows", kWholeWork);
  ElfBuildOptions options;
  if (!command.order.empty()) options.order = parse_names(command.order);
  options.progress = shown_by(bar, loader.rows().size(), stop);
  if (!table.build(loader.rows().data(), options)) throw_interrupted("build");
}

}  // namespace

ExitStatus elf_build(const ElfBuildCommand& command) {
  const std::atomic<bool>& stop = terminal::catch_interrupts();
  const auto begin = std::chrono::steady_clock::now();
  ElfLoader loader(command, stop);
  Pool pool = Pool::open(command.target.pool, with_plugins());
  loader.read();
  const std::uint64_t rows = loader.rows().size();
  {
    NewIndex made(pool, command.target.index);
    build_table(pool, command, loader, stop);
    made.keep();
  }
  pool.close();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  Output out;
  out.write(fmt::format("{} rows of {} columns in table '{}', in {:.2f} s\n", format_count(rows),
                        loader.columns().size(), escape(command.target.index), seconds));
  out.flush();
  return ExitStatus::ok;
}

ExitStatus elf_query(const ElfQueryCommand& command) {
  const Pool pool = Pool::open(command.target.pool, with_plugins());
  const ElfTable table(pool, command.target.index);
  const auto where = parse_predicates(command.conditions, table.columns());
  Output out;
  if (command.explain) {
    write_plan(out, table.explain(where));
  } else if (command.times > 0) {
    out.write(fmt::format("{}\n", count_for_time(table, where, command.times)));
  } else if (command.count) {
    out.write(fmt::format("{}\n", table.count(where)));
  } else {
    write_rows(out, table, where, command.limit);
  }
  out.flush();
  return ExitStatus::ok;
}

ExitStatus elf_info(const ElfCommand& command) {
  const Pool pool = Pool::open(command.target.pool, with_plugins());
  const ElfTableStats stats = ElfTable(pool, command.target.index).stats();
  Output out;
  if (command.json) {
    out.write(to_json(stats).dump(2, ' ', true, json::error_handler_t::replace) + "\n");
  } else {
    write_stats(out, stats);
  }
  out.flush();
  return ExitStatus::ok;
}

ExitStatus elf_check(const ElfCommand& command) {
  const Pool pool = Pool::open(command.target.pool, with_plugins());
  const CheckReport report = ElfTable(pool, command.target.index).check();
  Output out;
  for (const std::string& problem : report.problems) out.write(printable(problem) + "\n");
  out.write(fmt::format(
      "table '{}' is {}; {} rows, {} blocks checked\n", escape(command.target.index),
      report.ok() ? "sound" : fmt::format("damaged: {} problems", report.problems.size()),
      format_count(report.pairs), format_count(report.blocks)));
  out.flush();
  return report.ok() ? ExitStatus::ok : ExitStatus::negative;
}

ExitStatus elf_compact(const ElfCommand& command) {
  const std::atomic<bool>& stop = terminal::catch_interrupts();
  Pool pool = Pool::open(command.target.pool, with_plugins());
  std::uint64_t rows = 0;
  {
    ElfTable table(pool, command.target.index);
    rows = table.size();
    terminal::ProgressBar bar(style_of(command.progress),
                              "compacting " + escape(command.target.index), "rows", kWholeWork);
    if (!table.compact(shown_by(bar, rows, stop))) throw_interrupted("compact");
  }
  pool.close();
  Output out;
  out.write(fmt::format("table '{}' is compact; {} rows\n", escape(command.target.index),
                        format_count(rows)));
  out.flush();
  return ExitStatus::ok;
}

}  // namespace perdix::tool
