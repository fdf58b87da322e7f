#include <ostream>

#include <fmt/format.h>
#include <fmt/ostream.h>

#include "resume/report.h"
#include "terminal/format.h"

namespace perdix::bench::resumption {
namespace {

using terminal::format_bytes;
using terminal::format_count;
using terminal::format_nanoseconds;
using terminal::format_number;

std::string time_text(double seconds) { return format_nanoseconds(seconds * 1e9); }
std::string size_text(std::uint64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

void write_rebuild(std::ostream& out, const Report& report) {
  out << "\nUntil the DRAM layers are back, in the background, while the index is idle\n";
  fmt::print(out, "{:>12}{:>10}{:>14}{:>14}{:>12}{:>12}{:>12}\n", "keys", "buffers", "first answer",
             "all back", "M keys/s", "leaves", "DRAM");
  for (const RebuildRow& row : report.rebuild) {
    fmt::print(out, "{:>12}{:>10}{:>14}{:>14}{:>12}{:>12}{:>12}\n", format_count(row.keys),
               row.buffers ? "all" : "none", time_text(row.first_answer_seconds()),
               time_text(row.rebuilt_seconds()), format_number(row.keys_per_second() / 1e6),
               format_count(row.rounds.front().leaves), size_text(row.rounds.front().dram_bytes));
  }
}

void write_first_answers(std::ostream& out, const Report& report) {
  out << "\nUntil the first answer, by the size of the log\n";
  fmt::print(out, "{:>12}{:>14}{:>16}{:>16}{:>14}{:>14}{:>10}\n", "keys", "live records",
             "structured log", "first answer", "plain log", "first answer", "ratio");
  for (const ServiceRow& row : report.service) {
    const double ours = row.structured.first_answer_seconds();
    const double plain = row.plain.first_answer_seconds();
    fmt::print(out, "{:>12}{:>14}{:>16}{:>16}{:>14}{:>14}{:>10}\n", format_count(row.keys),
               format_count(row.records), size_text(row.structured.log_bytes), time_text(ours),
               size_text(row.plain.log_bytes), time_text(plain), format_number(plain / ours));
  }
}

void write_answers(std::ostream& out, const Report& report) {
  const auto& within = report.config.within;
  fmt::print(out, "\nLookups answered since the restart, opening included, {} thread{}\n",
             report.config.threads, report.config.threads == 1 ? "" : "s");
  fmt::print(out, "{:>12}  {:<12}", "keys", "log");
  for (const std::uint64_t moment : within) fmt::print(out, "{:>11}", fmt::format("{} ms", moment));
  out << '\n';
  for (const ServiceRow& row : report.service) {
    for (const ServingLog* log : {&row.structured, &row.plain}) {
      fmt::print(out, "{:>12}  {:<12}", format_count(row.keys),
                 log == &row.structured ? "structured" : "plain");
      for (std::size_t i = 0; i < within.size(); ++i)
        fmt::print(out, "{:>11}", format_count(log->answers(i)));
      out << '\n';
    }
  }
}

}  // namespace

void write_text(std::ostream& out, const Report& report) {
  fmt::print(out, "{}\n{}\n{} ({}); medians of {} round{}\n", report.machine, report.build,
             report.directory, report.file_system, report.config.repeat,
             report.config.repeat == 1 ? "" : "s");
  write_rebuild(out, report);
  write_first_answers(out, report);
  write_answers(out, report);
  const std::uint64_t lost = report.wrong_answers();
  if (lost != 0) fmt::print(out, "\n{} answers were wrong or lost\n", format_count(lost));
}

}  // namespace perdix::bench::resumption
