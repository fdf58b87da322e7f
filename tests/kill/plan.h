// The knowledge that the parent and its children share: the index, the keys, and the operations of
// each thread. All of it follows from a Plan and the number of the round, so the parent knows every
// operation of a child that it has killed.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/domain.h"
#include "support/options.h"
#include "support/rng.h"
#include "support/workload.h"
#include "workloads/workloads.h"

namespace perdix::test::kill {

enum class Mode {
  alone,     ///< one writer
  apart,     ///< each writer has its own keys between those of the others; a thread that reads
             ///< them all, and one that creates, fills and drops a second index
  together,  ///< all writers have the same keys
};

std::string_view name_of(Mode mode);

struct Plan {
  std::string engine;  ///< or the name of a workload
  std::string kinds;   ///< "u64_bytes"; empty for a workload
  Domain domain = Domain::process;
  Mode mode = Mode::alone;
  unsigned threads = 1;
  std::uint64_t seed = 0;

  /// Throws std::invalid_argument for a name that has no meaning.
  static Plan from(const Options& options);
  std::vector<std::string> arguments() const;

  /// Null for an index by name.
  const WorkloadEntry* workload() const { return kinds.empty() ? workload_named(engine) : nullptr; }

  /// How long a child writes until it is killed.
  std::chrono::microseconds time_to_run(Rng& rng) const;

  /// Positions in the set of keys of the main index.
  std::size_t keys() const { return mode == Mode::together ? 250 : write_profile().keys; }
};

/// All types of indexes, and a user's index that is plugged into Tips.
const std::vector<IndexType>& killed_types();

/// Of the pool, with that user's plug-in.
PoolOptions pool_options(const Plan& plan);

inline constexpr std::string_view kIndexName = "killed";
inline constexpr std::string_view kSecondName = "second";
inline constexpr std::size_t kSecondKeys = 80;

/// Which operation wrote a value. Never 0, which stands for "no value".
struct Tag {
  unsigned round;   // 24 bits
  unsigned thread;  // 8 bits
  std::uint32_t number;

  std::uint64_t pack() const {
    return (std::uint64_t{round} << 40) | (std::uint64_t{thread + 1} << 32) | number;
  }
  static Tag unpack(std::uint64_t packed) {
    return {static_cast<unsigned>(packed >> 40), static_cast<unsigned>(packed >> 32 & 0xff) - 1,
            static_cast<std::uint32_t>(packed)};
  }
};

/// "round 3, thread 0, operation 17", or "no value".
std::string show_tag(std::uint64_t packed);

struct Command {
  Op op;
  std::size_t key;
  std::uint64_t tag;
};

/// The operations of one thread in one round, in order, without end.
class Stream {
 public:
  Stream(const Plan& plan, unsigned round, unsigned thread);

  Command next();

 private:
  const Plan& plan_;
  unsigned round_;
  unsigned thread_;
  std::uint32_t number_ = 0;
  Workload workload_;
};

}  // namespace perdix::test::kill
