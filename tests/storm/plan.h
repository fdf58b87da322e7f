// The plan of an episode: pools, indexes, keys, and rounds of steps with their disturbances. It
// follows from a seed and the episode's number, so a finding can be replayed as far as threads
// allow.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <perdix/pool.h>
#include <perdix/types.h>

#include "storm/shape.h"
#include "support/domain.h"
#include "support/engines.h"

namespace perdix::test::storm {

inline constexpr std::uint64_t kKiB = 1 << 10;
inline constexpr std::uint64_t kMiB = 1 << 20;

inline constexpr unsigned kMaxPools = 2;
inline constexpr unsigned kMaxIndexes = 4;  ///< of an episode, in all pools
inline constexpr unsigned kMaxThreads = 6;
inline constexpr std::uint32_t kHotKeys = 8;

/// The work of threads in a step.
enum class Work : std::uint8_t {
  fill,   ///< keys that are absent come in
  drain,  ///< keys that are there go, until none is left
  churn,  ///< everything at random
  few,    ///< churn of very few keys
  hot,    ///< many writers of the hot keys
  read,   ///< lookups and scans
  idle,   ///< little, with pauses
};

/// The order of fill and drain. Keys of ordered shapes then come and go from one end.
enum class Order : std::uint8_t { ascending, descending, random };

/// Disturbances of the process while its threads work.
enum class Disturbance : std::uint8_t {
  none,
  forks,        ///< children that use, close, destroy what they inherited
  copies,       ///< the pool's file is copied alive, and the copy opened
  recreate,     ///< other indexes are created, filled, dropped
  suspend,      ///< single threads stand still for a while
  stop,         ///< SIGSTOP for the whole process
  burn,         ///< neighbours that keep the cores busy
  misuse,       ///< calls that must be refused: a second owner, a drop of what is open
  descriptors,  ///< a pool's descriptor is closed, or its number given to another file
};

/// The system calls that fail.
enum class Fault : std::uint8_t { none, memory, map, space, sync, thread };

/// The end of a round.
enum class Ending : std::uint8_t {
  close,    ///< Pool::close()
  destroy,  ///< the pool object goes
  kill,     ///< by a signal, at some moment of the last step
  orphan,   ///< the same, and a forked child survives
  daemon,   ///< the same, by an end like daemon(3)'s: a child goes on, and uses what it inherited
  power,    ///< the same, and what was not synced is lost; where all pools survive that
};

std::string_view name_of(Work work);
std::string_view name_of(Order order);
std::string_view name_of(Disturbance disturbance);
std::string_view name_of(Fault fault);
std::string_view name_of(Ending ending);

struct IndexPlan {
  const IndexType* type = nullptr;
  std::string name;
  unsigned pool = 0;
  Keys keys;
  Values values;
  std::uint32_t count = 0;  ///< keys with an owner; the hot keys come behind them
};

struct PoolPlan {
  Domain domain = Domain::process;
  std::uint64_t max_size = 0;
  bool tight = false;  ///< what the indexes want does not fit
};

struct Step {
  Work work = Work::churn;
  Order order = Order::random;
  Disturbance disturbance = Disturbance::none;
  Fault fault = Fault::none;
  bool visitors = false;  ///< scans whose visitors write, throw, sleep and close
  bool restarts = false;  ///< threads come and go
  bool bounds = true;     ///< what stats() says is looked at
  unsigned threads = 1;
  std::uint64_t operations = 0;  ///< of each thread
};

struct Round {
  std::vector<IndexOptions> options;  ///< by index
  bool default_options = false;       ///< the pool is opened without its max_size
  Fault opening_fault = Fault::none;  ///< the opening is tried with this before
  Fault closing_fault = Fault::none;
  unsigned kills_while_opening = 0;
  bool look_first = true;  ///< everything is compared before the work begins
  std::vector<Step> steps;
  Ending ending = Ending::close;
  bool damage = false;           ///< behind the end: damaged copies of the file are opened
  int signal = 0;                ///< of kill and orphan
  std::uint64_t kill_after = 0;  ///< operations of the last step, in per mille
};

struct Episode {
  std::uint64_t seed = 0;
  std::vector<PoolPlan> pools;
  std::vector<IndexPlan> indexes;
  std::vector<Round> rounds;
  bool leftovers = true;    ///< what stays of emptied and dropped indexes is compared with bounds
  bool closed_pool = true;  ///< misuse calls a pool that is closed
  bool bad_alloc = false;   ///< std::bad_alloc is as right as an Error
  bool bounds = true;       ///< and what an index in use takes
};

/// What a run leaves out: the names of disturbances, faults and endings, "kills-while-opening",
/// "visitors", "restarts", "tight", "damage", "millions", "large", names of shapes.
using Words = std::set<std::string, std::less<>>;

/// Throws std::invalid_argument for an unknown word.
Words parse_words(std::string_view words);

struct Selection {
  std::string engine;  ///< only this; empty: all
  std::string kinds;
  std::string shape;
  Words without;
  Words with;  ///< where one of these can be chosen, no other is
};

Episode make_episode(std::uint64_t seed, std::uint64_t number, const Selection& selection);

/// Those of a pool, for findings.
std::string engines_of(const Episode& episode, unsigned pool);

/// A line for each pool, index and round.
std::string describe(const Episode& episode);
std::string describe(const Step& step);

}  // namespace perdix::test::storm
