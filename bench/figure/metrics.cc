#include "figure/metrics.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <perdix/error.h>

namespace perdix::bench {
namespace {

using M = Measurement;

/// `part` divided by `whole`, which may be 0.
double ratio(std::uint64_t part, std::uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(whole, 1));
}

double of_phase(const M& m, double (*value)(const PhaseResult&)) {
  return m.phase ? value(*m.phase) : kUnknown;
}

template <int kPerTenThousand>
double percentile(const M& m) {
  return of_phase(m, [](const PhaseResult& phase) {
    return static_cast<double>(phase.latency.percentile(kPerTenThousand / 100.0));
  });
}

double mean(const M& m) {
  return of_phase(m, [](const PhaseResult& phase) { return 1e9 / phase.throughput(); });
}

/// For each operation, by all programs.
double device_written(const M& m) {
  if (!m.phase || !m.phase->device_bytes) return kUnknown;
  return ratio(*m.phase->device_bytes, m.phase->done);
}

double bytes_of(const std::optional<std::uint64_t>& bytes) {
  return static_cast<double>(bytes.value_or(0));
}

double per_pair(const M& m, const std::optional<std::uint64_t>& bytes) {
  return ratio(bytes.value_or(0), m.records);
}

double dram_of_stored(const M& m) {
  const double stored = bytes_of(m.after.stored_bytes);
  return stored == 0 ? 0 : bytes_of(m.after.dram_bytes) / stored;
}

/// A count of Tips during the phase. Reading the counts replays all logs, so a phase begins and
/// ends without a backlog.
template <auto kField>
double counted(const M& m) {
  const TipsStats none;
  return static_cast<double>(m.after.tips.value_or(none).*kField -
                             m.before.tips.value_or(none).*kField);
}

double quotient(double part, double whole) { return part / std::max(whole, 1.0); }

double done(const M& m) { return m.phase ? static_cast<double>(m.phase->done) : 0; }

double writes(const M& m) {
  const double percent = m.workload.share(OpKind::update) + m.workload.share(OpKind::insert);
  return done(m) * percent / 100;
}

double hits(const M& m) {
  const double found = counted<&TipsStats::cache_hits>(m);
  return quotient(found, found + counted<&TipsStats::cache_misses>(m));
}

double saved(const M& m) {
  const double not_written = counted<&TipsStats::undo_saved>(m);
  return quotient(not_written, not_written + counted<&TipsStats::undo_records>(m));
}

/// A count of the meter for each operation. What threads in the background did belongs to the
/// operations as well.
double each(const M& m, std::string_view name) {
  if (!m.phase || m.phase->counts.empty()) return kUnknown;
  double sum = 0;
  for (const Count& count : m.phase->counts)
    sum += count.name == name ? static_cast<double>(count.value) : 0;
  return sum / done(m);
}

double of_pair(const M& m, std::string_view name) {
  return each(m, name) / static_cast<double>(m.shape.pair_size());
}

constexpr auto kClock = MetricKind::From::clock;
constexpr auto kSizes = MetricKind::From::sizes;
constexpr auto kDifferences = MetricKind::From::differences;
constexpr auto kMeter = MetricKind::From::meter;

constexpr MetricKind kMetrics[] = {
    {"throughput", Unit::operations_per_second, kClock,
     [](const M& m) { return of_phase(m, [](const PhaseResult& p) { return p.throughput(); }); }},
    {"mean", Unit::nanoseconds, kClock, mean},
    {"p50", Unit::nanoseconds, kClock, percentile<5000>},
    {"p90", Unit::nanoseconds, kClock, percentile<9000>},
    {"p99", Unit::nanoseconds, kClock, percentile<9900>},
    {"p99.9", Unit::nanoseconds, kClock, percentile<9990>},
    {"p99.99", Unit::nanoseconds, kClock, percentile<9999>},
    {"device written", Unit::bytes, kClock, device_written},
    {"first answer", Unit::nanoseconds, kClock,
     [](const M& m) { return m.reopened ? m.reopened->first_answer_seconds * 1e9 : kUnknown; }},
    {"all back", Unit::nanoseconds, kClock,
     [](const M& m) { return m.reopened ? m.reopened->resumed_seconds * 1e9 : kUnknown; }},
    {"pairs back", Unit::operations_per_second, kClock,
     [](const M& m) {
       return m.reopened ? static_cast<double>(m.records) / m.reopened->resumed_seconds : kUnknown;
     }},
    {"budget", Unit::bytes, kClock, [](const M& m) { return static_cast<double>(m.budget); }},
    {"DRAM", Unit::bytes, kSizes, [](const M& m) { return bytes_of(m.after.dram_bytes); }},
    {"DRAM of a pair", Unit::bytes, kSizes,
     [](const M& m) { return per_pair(m, m.after.dram_bytes); }},
    {"stored of a pair", Unit::bytes, kSizes,
     [](const M& m) { return per_pair(m, m.after.stored_bytes); }},
    {"DRAM of stored", Unit::ratio, kSizes, dram_of_stored},
    {"load factor", Unit::ratio, kSizes,
     [](const M& m) { return m.after.load_factor.value_or(0); }},
    {"hits", Unit::ratio, kDifferences, hits},
    {"workers", Unit::count, kDifferences,
     [](const M& m) {
       return quotient(counted<&TipsStats::workers_used>(m), counted<&TipsStats::replays>(m));
     }},
    {"writes of a replay", Unit::count, kDifferences,
     [](const M& m) {
       return quotient(counted<&TipsStats::replayed>(m), counted<&TipsStats::replays>(m));
     }},
    {"reclamations", Unit::count, kDifferences, counted<&TipsStats::reclamations>},
    {"undo saved", Unit::ratio, kDifferences, saved},
    {"undo written", Unit::ratio, kDifferences,
     [](const M& m) { return quotient(counted<&TipsStats::undo_records>(m), writes(m)); }},
    {"replayed", Unit::ratio, kDifferences,
     [](const M& m) { return quotient(counted<&TipsStats::replayed>(m), writes(m)); }},
    {"conflicts of a million", Unit::count, kDifferences,
     [](const M& m) {
       const auto found = m.after.conflicts.value_or(0) - m.before.conflicts.value_or(0);
       return quotient(static_cast<double>(found) * 1e6, done(m));
     }},
    {"lines read", Unit::count, kMeter, [](const M& m) { return each(m, "PM lines read"); }},
    {"lines written", Unit::count, kMeter, [](const M& m) { return each(m, "PM lines written"); }},
    {"lines flushed", Unit::count, kMeter, [](const M& m) { return each(m, "lines flushed"); }},
    {"fences", Unit::count, kMeter, [](const M& m) { return each(m, "fences"); }},
    {"media read", Unit::bytes, kMeter, [](const M& m) { return each(m, "media bytes read"); }},
    {"media written", Unit::bytes, kMeter,
     [](const M& m) { return each(m, "media bytes written"); }},
    {"read to modify", Unit::bytes, kMeter,
     [](const M& m) { return each(m, "media bytes read to modify"); }},
    {"read amplif.", Unit::ratio, kMeter,
     [](const M& m) { return of_pair(m, "media bytes read"); }},
    {"write amplif.", Unit::ratio, kMeter,
     [](const M& m) { return of_pair(m, "media bytes written"); }},
};

// Buckets of latencies: four for each power of two from 64 ns to 134 ms.
constexpr int kFirstPower = 6, kLastPower = 27, kBucketsPerPower = 4;

/// Returns how many latencies are at most `bound`, by bisection, since a histogram has percentiles
/// only.
std::uint64_t count_upto(const detail::util::Histogram& latency, double bound) {
  const auto at_rank = [&](std::uint64_t rank) {
    const double share = (static_cast<double>(rank) + 0.5) / static_cast<double>(latency.count());
    return static_cast<double>(latency.percentile(share * 100));
  };
  std::uint64_t within = 0, beyond = latency.count();
  while (within < beyond) {
    const std::uint64_t middle = within + (beyond - within) / 2;
    if (at_rank(middle) <= bound)
      within = middle + 1;
    else
      beyond = middle;
  }
  return within;
}

}  // namespace

const MetricKind& find_metric(std::string_view name) {
  const auto found = std::ranges::find(kMetrics, name, &MetricKind::name);
  if (found != std::end(kMetrics)) return *found;
  std::vector<std::string_view> names;
  for (const MetricKind& kind : kMetrics) names.push_back(kind.name);
  throw Error(Errc::invalid_argument,
              fmt::format("no metric '{}'; choose from: {}", name, fmt::join(names, ", ")));
}

std::vector<std::pair<double, double>> distribution_of(const detail::util::Histogram& latency) {
  std::vector<std::pair<double, double>> points;
  std::uint64_t before = 0;
  const int last = kLastPower * kBucketsPerPower;
  for (int i = kFirstPower * kBucketsPerPower; i <= last; ++i) {
    const double bound = std::exp2(static_cast<double>(i) / kBucketsPerPower);
    const std::uint64_t upto = i == last ? latency.count() : count_upto(latency, bound);
    points.emplace_back(bound, ratio(upto - before, latency.count()));
    before = upto;
  }
  return points;
}

}  // namespace perdix::bench
