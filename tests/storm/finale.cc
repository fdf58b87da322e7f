#include "storm/finale.h"

#include <filesystem>
#include <string_view>

#include <fmt/format.h>

#include "storm/bounds.h"
#include "storm/verify.h"

namespace perdix::test::storm {
namespace {

class Finale {
 public:
  Finale(OpenIndexes& indexes, std::vector<std::optional<Pool>>& pools,
         const std::vector<std::string>& paths, const Episode& episode, Board& board)
      : indexes_(indexes), pools_(pools), paths_(paths), episode_(episode), board_(board) {}

  void run() {
    for (auto& index : indexes_) compare_all(*index, seat());
    for (auto& index : indexes_) erase_everything(*index);
    for (auto& index : indexes_) compare_all(*index, seat());
    for (unsigned i = 0; i < pools_.size(); ++i) {
      if (expects_space(i) && episode_.pools[i].tight)
        use_space(*pools_[i], episode_, i, "that its emptied indexes left", 2, seat());
    }
    indexes_.clear();
    if (episode_.leftovers) expect_little_left();
    for (unsigned i = 0; i < pools_.size(); ++i) {
      check_pool(*pools_[i], i, board_);
      for (const IndexInfo& info : pools_[i]->indexes()) drop(i, info.name);
      if (expects_space(i) && episode_.pools[i].tight)
        use_space(*pools_[i], episode_, i, "that dropped indexes left", 3, seat());
      close_and_expect_nothing(i);
    }
  }

 private:
  static constexpr std::uint64_t kSegmentBytes = 64;  // for each pair that there was, at most

  Seat& seat() { return board_.seats[0]; }

  /// Not where a drop that is unfinished still occupies some.
  bool expects_space(unsigned pool) const {
    return episode_.leftovers && !board_.drop_unfinished[pool];
  }

  // An erase needs no space, so it never fails.
  void erase_everything(OpenIndex& index) {
    for (std::uint32_t number = 0; number < index.plan.count + kHotKeys; ++number) {
      const bool hot = number >= index.plan.count;
      if (!hot && !index.model.cells[number].load().decided.present) continue;
      const State before = hot ? State{} : index.model.cells[number].load().decided;
      if (!hot) index.model.cells[number].begin({before.version + 1, false});
      bool erased = false;
      const Call marked(seat(), "erase at the end");
      const Outcome outcome =
          attempt("erase", [&] { erased = index.index.erase(index.key(number)); });
      require(!outcome.threw, fmt::format("{} ({}): erase() threw {}", index.plan.name,
                                          index.plan.type->engine, outcome.text));
      require(hot || erased,
              index.plan.name + ": erase() does not find " + show(index.key(number)));
      if (!hot)
        index.model.cells[number].finish();
      else
        forget_hot(index, number - index.plan.count);
    }
  }

  static void forget_hot(OpenIndex& index, std::uint32_t hot) {
    HotCell& cell = index.model.hot[hot];
    cell.begin(0, cell.next(false));
    cell.finish(0);
  }

  /// Leaves, logs and tables of emptied indexes are small, whatever they have held, but for
  /// segments that only a full pool joins. What waits for readers or for the next writes of a
  /// thread is freed by a full pool, or by the next opening.
  void expect_little_left() {
    {
      std::vector<AnyIndex> reopened;
      for (const IndexPlan& plan : episode_.indexes) {
        const Call marked(seat(), "open an emptied index");
        reopened.push_back(plan.type->open(*pools_[plan.pool], plan.name));
        require(reopened.back().size() == 0, plan.name + ": pairs come back after the end");
      }
      for (const AnyIndex& index : reopened)
        require(index.check().ok(), "an emptied index is damaged");
    }
    for (unsigned i = 0; i < pools_.size(); ++i) {
      if (expects_space(i)) expect_little_left(i);
    }
  }

  void expect_little_left(unsigned pool) {
    std::uint64_t indexes = 0, segments = 0;
    for (const IndexPlan& plan : episode_.indexes) {
      if (plan.pool != pool) continue;
      ++indexes;
      const std::string_view engine = plan.type->engine;
      const bool has_segments = engine == "cceh" || engine == "elimda";
      if (has_segments && !episode_.pools[pool].tight) segments += kSegmentBytes * plan.count;
    }
    const std::uint64_t bound = (4 + 8 * indexes) * kMiB + segments;
    const PoolInfo info = pools_[pool]->info();
    require(info.allocated <= bound,
            fmt::format("{} bytes stay allocated in a pool of {} empty indexes ({})",
                        info.allocated, indexes, engines_of(episode_, pool)));
  }

  void drop(unsigned pool, const std::string& name) {
    const Call marked(seat(), "drop");
    const Outcome outcome = attempt("drop", [&] { pools_[pool]->drop(name); });
    require(!outcome.threw,
            fmt::format("drop() at the end threw {} ({})", to_string(outcome.code), outcome.text));
  }

  void close_and_expect_nothing(unsigned number) {
    const Call marked(seat(), "close at the end");
    auto& pool = pools_[number];
    for (const IndexInfo& info : pool->indexes()) drop(number, info.name);
    pool->close();
    pool.reset();
    PoolOptions options = options_for(episode_.pools[number].domain);
    options.max_size = episode_.pools[number].max_size;
    pool.emplace(Pool::open(paths_[number], options));
    require(pool->info().allocated == 0,
            fmt::format("{} bytes are allocated in a pool without indexes (it had {})",
                        pool->info().allocated, engines_of(episode_, number)));
    pool->close();
    pool.reset();
  }

  OpenIndexes& indexes_;
  std::vector<std::optional<Pool>>& pools_;
  const std::vector<std::string>& paths_;
  const Episode& episode_;
  Board& board_;
};

}  // namespace

void run_finale(OpenIndexes& indexes, std::vector<std::optional<Pool>>& pools,
                const std::vector<std::string>& paths, const Episode& episode, Board& board) {
  Finale(indexes, pools, paths, episode, board).run();
}

}  // namespace perdix::test::storm
