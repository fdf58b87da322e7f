// Seeded streams of operations on a sorted set of keys. A profile is a cycle of phases, each with
// its own mix of operations and its own walk through the keys: growth, steady change, waves of
// erases that empty and merge leaves. A stream chooses positions in the set; its user chooses
// the values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "support/keys.h"
#include "support/rng.h"

namespace perdix::test {

enum class Op : std::uint8_t { put, insert, update, erase, get, contains, scan };

inline constexpr std::size_t kOps = 7;

std::string_view to_string(Op op);

/// How a phase walks through the keys.
enum class Walk {
  uniform,
  ascending,  ///< one neighbour after the other, round and round
  descending,
  window,  ///< within some dozens of neighbours, which move on
  hot,     ///< a handful of keys far from each other
};

struct Phase {
  std::array<unsigned, kOps> weights;  ///< of put, insert, update, erase, get, contains, scan
  Walk walk;
};

struct Profile {
  std::string_view name;
  KeyStyle style;
  std::size_t keys;  ///< size of the set
  std::vector<Phase> phases;
};

/// The profiles of the conformance suite.
std::span<const Profile> profiles();

/// Growth and erase waves without reads: what the kill tests run.
const Profile& write_profile();

struct Step {
  Op op;
  std::size_t key;    ///< position in the set
  std::size_t limit;  ///< of a scan
};

class Workload {
 public:
  /// Over `keys` positions, which may differ from what the profile says.
  Workload(std::uint64_t seed, const Profile& profile, std::size_t keys);

  Step next();

 private:
  void start_phase();
  std::size_t choose_key();
  Op choose_op();

  Rng rng_;
  const Profile& profile_;
  std::size_t keys_;
  std::size_t phase_ = 0;
  std::size_t left_ = 0;    // steps until the next phase
  std::size_t cursor_ = 0;  // of the walks that have a place
};

}  // namespace perdix::test
