// The report as tables for a terminal or a log.
#include <algorithm>
#include <ostream>

#include <fmt/format.h>
#include <fmt/ostream.h>

#include "terminal/format.h"
#include "ycsb/report.h"

namespace perdix::bench {
namespace {

using terminal::format_bytes;
using terminal::format_count;
using terminal::format_nanoseconds;
using terminal::format_number;

std::string optional_bytes(const std::optional<std::uint64_t>& bytes) {
  return bytes ? format_bytes(static_cast<double>(*bytes)) : "-";
}

std::string optional_ratio(const std::optional<double>& ratio) {
  return ratio ? format_number(*ratio) + "x" : "-";
}

std::string in_words(unsigned threads) {
  return fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
}

std::string describe(const Shape& shape) {
  const auto kind = [](Kind k, std::size_t size) {
    return k == Kind::u64 ? std::string("u64") : fmt::format("{} bytes", size);
  };
  return kind(shape.key_kind, shape.key_size) + " -> " + kind(shape.value_kind, shape.value_size);
}

void write_head(std::ostream& out, const Report& report) {
  const Config& config = report.config;
  fmt::print(
      out, "{} records ({}), {} operations per workload, keys in {} order, seed {}, {} round{}\n",
      format_count(config.records), describe(config.data.shape), format_count(config.operations),
      config.data.order == KeyOrder::random ? "random" : "sequential", config.seed, config.repeat,
      config.repeat == 1 ? "" : "s");
  fmt::print(out, "{} on {}; {}\n", report.directory, report.file_system, report.machine);
  fmt::print(
      out,
      "{}; latencies include {:.0f} ns of looking at the clock, 1 operation in {} is timed\n\n",
      report.build, report.clock_nanoseconds, config.sample_every);
}

void write_phase_head(std::ostream& out, const Report& report, const Result& result) {
  const Workload& workload = find_workload(result.workload);
  const Distribution distribution = report.config.distribution.value_or(workload.distribution);
  fmt::print(out, "{}: {}", workload.name, workload.title);
  if (workload.phase == PhaseKind::mix) fmt::print(out, ", {}", to_string(distribution));
  fmt::print(out, ", {}\n", in_words(result.threads));
}

void write_mix(std::ostream& out, const Report& report, const std::vector<const Result*>& group) {
  fmt::print(out, "  {:<16}{:>10}{:>10}{:>10}{:>10}{:>10}{:>15}\n", "", "Mops/s", "ns/op", "p50",
             "p99", "p99.9", "vs " + report.config.baseline);
  for (const Result* result : group) {
    const auto percentile = [&](double p) {
      return format_nanoseconds(static_cast<double>(result->latency.percentile(p)));
    };
    fmt::print(out, "  {:<16}{:>10}{:>10}{:>10}{:>10}{:>10}{:>15}\n", result->system,
               format_number(result->operations_per_second() / 1e6),
               format_number(result->nanoseconds_per_operation()), percentile(50), percentile(99),
               percentile(99.9), optional_ratio(report.ratio(*result)));
  }
}

// What was counted, per operation: a column for each kind of operation.
void write_counts(std::ostream& out, const Result& result) {
  std::vector<std::string_view> operations;
  std::vector<std::string_view> names;
  const auto remember = [](std::vector<std::string_view>& known, std::string_view name) {
    if (std::ranges::find(known, name) == known.end()) known.push_back(name);
  };
  for (const Count& count : result.counts) {
    remember(operations, count.operation);
    remember(names, count.name);
  }
  fmt::print(out, "\n  {:<30}", result.system + ", per operation");
  for (const std::string_view operation : operations) fmt::print(out, "{:>19}", operation);
  for (const std::string_view name : names) {
    fmt::print(out, "\n    {:<28}", name);
    for (const Count& count : result.counts) {
      if (count.name == name) fmt::print(out, "{:>19}", format_number(result.per_operation(count)));
    }
  }
  out << '\n';
}

void write_memory(std::ostream& out, const std::vector<const Result*>& group) {
  fmt::print(out, "\n  {:<16}{:>12}{:>12}{:>12}{:>12}{:>14}{:>14}\n", "memory", "DRAM",
             "DRAM (RSS)", "stored", "files", "DRAM B/pair", "stored B/pair");
  for (const Result* result : group) {
    const Footprint& size = result->rounds.front().footprint;
    const auto per_pair = [&](std::uint64_t bytes) {
      return format_number(static_cast<double>(bytes) /
                           static_cast<double>(std::max<std::uint64_t>(size.records, 1)));
    };
    fmt::print(out, "  {:<16}{:>12}{:>12}{:>12}{:>12}{:>14}{:>14}\n", result->system,
               optional_bytes(size.own.dram_bytes),
               format_bytes(static_cast<double>(size.resident)),
               optional_bytes(size.own.stored_bytes), format_bytes(static_cast<double>(size.files)),
               per_pair(size.own.dram_bytes.value_or(size.resident)),
               size.files == 0 ? "-" : per_pair(size.own.stored_bytes.value_or(size.files)));
  }
}

void write_reopen(std::ostream& out, const Report& report,
                  const std::vector<const Result*>& group) {
  fmt::print(out, "  {:<16}{:>10}{:>14}{:>12}{:>10}{:>8}{:>15}\n", "", "open", "first answer",
             "all back", "M keys/s", "lost", "vs " + report.config.baseline);
  for (const Result* result : group) {
    std::vector<double> opens;
    std::vector<double> answers;
    std::vector<double> resumed;
    std::uint64_t lost = 0;
    for (const Round& round : result->rounds) {
      opens.push_back(round.reopened->open_seconds);
      answers.push_back(round.reopened->first_answer_seconds);
      resumed.push_back(round.reopened->resumed_seconds);
      lost += round.reopened->lost;
    }
    const double all_back = median(resumed);
    const auto records = static_cast<double>(result->rounds.front().reopened->records);
    fmt::print(out, "  {:<16}{:>10}{:>14}{:>12}{:>10}{:>8}{:>15}\n", result->system,
               format_nanoseconds(median(opens) * 1e9), format_nanoseconds(median(answers) * 1e9),
               format_nanoseconds(all_back * 1e9), format_number(records / all_back / 1e6),
               format_count(lost), optional_ratio(report.ratio(*result)));
  }
}

std::vector<const Result*> group_of(const Report& report, std::string_view workload,
                                    unsigned threads) {
  std::vector<const Result*> group;
  for (const std::string& system : report.config.systems) {
    if (const Result* result = report.find(system, workload, threads)) group.push_back(result);
  }
  return group;
}

void write_group(std::ostream& out, const Report& report, const std::vector<const Result*>& group) {
  if (group.empty()) return;
  write_phase_head(out, report, *group.front());
  if (group.front()->is_reopen()) {
    write_reopen(out, report, group);
  } else {
    write_mix(out, report, group);
    if (group.front()->workload == "load") write_memory(out, group);
    for (const Result* result : group) {
      if (!result->counts.empty()) write_counts(out, *result);
    }
  }
  out << '\n';
}

void write_notes(std::ostream& out, const Report& report) {
  for (const SystemNote& note : report.notes) {
    fmt::print(out, "{} ({}): {}\n", note.system, in_words(note.threads), note.text);
  }
}

// A line per workload and a column per system, of cell(result).
template <class Cell>
void write_table(std::ostream& out, const Report& report, unsigned threads, Cell cell) {
  fmt::print(out, "  {:<8}", "");
  for (const std::string& system : report.config.systems) fmt::print(out, "{:>16}", system);
  out << '\n';
  for (const Workload& workload : workloads()) {
    if (workload.phase == PhaseKind::reopen || group_of(report, workload.name, threads).empty())
      continue;
    fmt::print(out, "  {:<8}", workload.name);
    for (const std::string& system : report.config.systems) {
      const Result* result = report.find(system, workload.name, threads);
      fmt::print(out, "{:>16}", result == nullptr ? "-" : cell(*result));
    }
    fmt::print(out, "   {}\n", workload.title);
  }
}

}  // namespace

void write_summary(std::ostream& out, const Report& report) {
  const unsigned first = report.config.threads.front();
  for (const unsigned threads : report.config.threads) {
    fmt::print(out, "  million operations per second, {}\n", in_words(threads));
    write_table(out, report, threads, [](const Result& result) {
      return format_number(result.operations_per_second() / 1e6);
    });
    if (threads == first) continue;
    fmt::print(out, "  the same by that of {}\n", in_words(first));
    write_table(out, report, threads,
                [&](const Result& result) { return optional_ratio(report.scaling(result)); });
  }
}

void write_text(std::ostream& out, const Report& report) {
  write_head(out, report);
  for (const unsigned threads : report.config.threads) {
    for (const Workload& workload : workloads())
      write_group(out, report, group_of(report, workload.name, threads));
  }
  write_summary(out, report);
  out << '\n';
  write_notes(out, report);
  for (const std::string& problem : report.problems()) fmt::print(out, "PROBLEM: {}\n", problem);
}

}  // namespace perdix::bench
