// Disturbances while the threads work: forked children, live copies, other indexes that are created
// and dropped, suspended threads, and calls that must be refused. The main thread of the worker
// runs them as long as `more` is true. Each throws a Finding.
#pragma once

#include <pthread.h>

#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "storm/board.h"
#include "storm/client.h"
#include "storm/plan.h"
#include "support/options.h"
#include "support/pool_options.h"
#include "support/rng.h"

namespace perdix::test::storm {

/// The arguments of a disturbance.
struct Scene {
  OpenIndexes& indexes;
  std::vector<std::optional<Pool>>& pools;
  const std::vector<std::string>& paths;
  const Episode& episode;
  Board& board;
  Rng& rng;
  /// Held while a helper is started, and by what kills this process: between fork and exec a helper
  /// shares the lock of the pool's file.
  std::mutex& starting;
  std::vector<pthread_t> threads;  ///< of the clients
};

void disturb(Disturbance disturbance, Scene& scene, const std::function<bool()>& more);

/// A child that lives on for some seconds when this process is killed. Tells the board its pid.
void leave_orphan(Scene& scene);

/// Acts like daemon(3): a child continues in the background and this process ends. The child
/// uses the inherited pools, which must be refused, and reports to the board if they were not.
void become_daemon(Scene& scene);

/// In a process that a disturbance has started: stops its parent for a while, or computes until
/// that ends. False in others.
bool run_helper(const Options& options);

/// Lets a thread be suspended; before the threads start.
void allow_suspension();

/// A copy of a closed pool with damaged bytes is opened, used and dropped from in a child of its
/// own: any Error is right, and no crash, hang or change of a file that was refused.
void open_damaged(const std::string& path, const Episode& episode, Board& board, Rng& rng);

/// Keeps the head of a closed pool's file, superblocks and all, for a damage of later.
void keep_head(const std::string& path);

/// Loses the descriptor of a pool (descriptors.h), or looks at one that has lost it.
void lose_descriptor(Scene& scene);

/// The name of an index that goes when its pool is opened again.
std::string other_name(std::string_view what);

/// Indexes that an earlier worker left behind while it disturbed.
void drop_others(Pool& pool);

}  // namespace perdix::test::storm
