// The workloads: YCSB's load and A to F (Cooper et al., SoCC 2010), and phases of one operation
// each.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "util/zipf.h"

namespace perdix::bench {

enum class OpKind : std::uint8_t {
  get,
  absent,
  insert,
  update,
  rmw,
  scan,
  erase,
  batched_get,
  insert_ahead,  ///< as an insert, but without an answer
};
inline constexpr std::size_t kOpKinds = 9;

/// Whether an operation adds a record.
constexpr bool adds(OpKind kind) noexcept {
  return kind == OpKind::insert || kind == OpKind::insert_ahead;
}

/// The number of consecutive batched_gets that become one call, if a system has such a call.
inline constexpr std::size_t kBatch = 16;

/// One operation of a plan, made before the clock starts.
struct Op {
  std::uint64_t number : 48;  ///< record number
  std::uint64_t length : 12;  ///< pairs that a scan asks for
  std::uint64_t kind : 4;     ///< OpKind

  OpKind op() const noexcept { return static_cast<OpKind>(kind); }
};
static_assert(sizeof(Op) == 8);

/// How the records that operations touch are chosen.
enum class Distribution : std::uint8_t {
  uniform,  ///< each record alike
  zipfian,  ///< popular records, scattered over the key space (YCSB's "scrambled zipfian")
  latest,   ///< the newest records are the most popular
};

std::string_view to_string(Distribution distribution) noexcept;

enum class PhaseKind : std::uint8_t {
  load,    ///< inserts every record into an empty index
  mix,     ///< a mix of operations on a loaded index
  reopen,  ///< a process that loaded the index is killed, another opens it
};

struct Workload {
  std::string_view name;
  std::string_view title;
  PhaseKind phase = PhaseKind::mix;
  std::array<std::uint8_t, kOpKinds> percent{};  ///< by OpKind; adds up to 100
  Distribution distribution = Distribution::uniform;
  std::uint16_t scan_min = 0;
  std::uint16_t scan_max = 0;
  double theta = detail::util::Zipf::kYcsbTheta;  ///< of zipfian and latest

  std::uint8_t share(OpKind kind) const noexcept { return percent[static_cast<std::size_t>(kind)]; }
};

/// All workloads, in the order in which `--help` lists them.
std::span<const Workload> workloads() noexcept;

/// The workload of that name (any case). Throws perdix::Error invalid_argument, which lists the
/// names.
const Workload& find_workload(std::string_view name);

}  // namespace perdix::bench
