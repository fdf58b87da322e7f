#include "ycsb/plan.h"

#include <algorithm>
#include <cassert>
#include <optional>

#include <fmt/format.h>

#include <perdix/error.h>

#include "util/random.h"
#include "util/zipf.h"

namespace perdix::bench {
namespace {

using detail::util::Random;

// Draws ranks of records: 0 is the oldest.
class RankChooser {
 public:
  RankChooser(Distribution distribution, double theta, std::uint64_t count)
      : distribution_(distribution), count_(count), zipfian_(count, theta), latest_(count, theta) {}

  std::uint64_t operator()(Random& random) const {
    switch (distribution_) {
      case Distribution::uniform: return random.below(count_);
      case Distribution::zipfian: return zipfian_(random);
      case Distribution::latest: return latest_(random);
    }
    return 0;
  }

  void inserted_one() { latest_.resize(++newest_ + count_); }

 private:
  Distribution distribution_;
  std::uint64_t count_;
  std::uint64_t newest_ = 0;
  detail::util::ScrambledZipf zipfian_;
  detail::util::Latest latest_;
};

// Which kind each operation is, and how long each scan.
void draw_kinds(const Workload& workload, std::span<Op> ops, Random& random) {
  std::array<OpKind, 100> kinds{};
  auto out = kinds.begin();
  for (std::size_t kind = 0; kind < kOpKinds; ++kind) {
    out = std::fill_n(out, workload.percent[kind], static_cast<OpKind>(kind));
  }
  assert(out == kinds.end());
  const std::uint64_t lengths = workload.scan_max - workload.scan_min + std::uint64_t{1};
  for (Op& op : ops) {
    op.kind = static_cast<std::uint64_t>(kinds[random.below(100)]);
    op.length = workload.scan_min + (lengths > 1 ? random.below(lengths) : 0);
  }
}

// The record of each operation. Inserted records are numbered from `insert_at`, erased ones from
// `erase_at`.
void draw_numbers(std::span<Op> ops, Distribution distribution, double theta, const Records& before,
                  std::uint64_t insert_at, std::uint64_t erase_at, Random& random) {
  std::optional<RankChooser> chooser;
  if (before.count() > 0) chooser.emplace(distribution, theta, before.count());
  const std::uint64_t own = insert_at;
  for (Op& op : ops) {
    switch (op.op()) {
      case OpKind::insert:
      case OpKind::insert_ahead:
        op.number = insert_at++;
        if (chooser) chooser->inserted_one();
        break;
      case OpKind::erase: op.number = erase_at++; break;
      default: {
        const std::uint64_t rank = (*chooser)(random);
        op.number = rank < before.count() ? before.first + rank : own + (rank - before.count());
      }
    }
  }
}

std::uint64_t count_erased(std::span<const Op> ops) {
  return static_cast<std::uint64_t>(std::ranges::count(ops, OpKind::erase, &Op::op));
}

std::uint64_t count_added(std::span<const Op> ops) {
  return static_cast<std::uint64_t>(std::ranges::count_if(ops, adds, &Op::op));
}

bool only(const Workload& workload, OpKind kind) { return workload.share(kind) == 100; }

std::uint64_t possible_operations(const Workload& workload, std::uint64_t operations,
                                  const Records& records) {
  if (only(workload, OpKind::erase)) operations = std::min(operations, records.count());
  const bool only_adds = only(workload, OpKind::insert) || only(workload, OpKind::insert_ahead);
  if (only_adds || records.count() > 0) return operations;
  throw Error(
      Errc::invalid_argument,
      fmt::format(
          "workload '{}' finds no records left; run it before 'erase' or ask for fewer operations",
          workload.name));
}

}  // namespace

std::vector<std::span<const Op>> Planner::plan(const Workload& workload, Distribution distribution,
                                               std::uint64_t operations, unsigned threads,
                                               std::uint64_t seed, Records& records) {
  assert(threads > 0 && operations <= ops_.size());
  operations = possible_operations(workload, operations, records);
  std::vector<std::span<Op>> slices;
  std::vector<Random> randoms;
  for (unsigned t = 0; t < threads; ++t) {
    const std::uint64_t begin = operations * t / threads;
    slices.push_back(std::span(ops_).subspan(begin, operations * (t + 1) / threads - begin));
    randoms.emplace_back(seed * 1000 + t);
    draw_kinds(workload, slices[t], randoms[t]);
  }
  const Records before = records;
  for (unsigned t = 0; t < threads; ++t) {
    draw_numbers(slices[t], distribution, workload.theta, before, records.next, records.first,
                 randoms[t]);
    records.next += count_added(slices[t]);
    records.first += count_erased(slices[t]);
  }
  return {slices.begin(), slices.end()};
}

}  // namespace perdix::bench
