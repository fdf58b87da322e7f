// A thread's calls on the indexes of an episode. Each result is compared with the model. A client
// owns the keys whose numbers have its remainder, and reads the keys of other clients, too. One
// thread may use it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <perdix/perdix.h>

#include "storm/board.h"
#include "storm/plan.h"
#include "support/any_index.h"
#include "support/rng.h"
#include "support/workload.h"

namespace perdix::test::storm {

/// An index of the episode while it is open.
struct OpenIndex {
  const IndexPlan& plan;
  const PoolPlan& pool_plan;
  IndexModel& model;
  Pool& pool;
  AnyIndex index;

  Datum key(std::uint32_t number) const { return plan.keys(number); }
};

using OpenIndexes = std::vector<std::unique_ptr<OpenIndex>>;

/// The outcome of a call of the library.
struct Outcome {
  bool threw = false;
  bool struck = false;  ///< a call to the system had been made to fail
  Errc code{};
  std::string text;
};

/// Calls; an exception that is no Error is a finding.
Outcome attempt(const char* name, const std::function<void()>& call);

/// The keys of a client: those of the numbers `first`, `first + stride`, …
struct Share {
  unsigned first = 0;
  unsigned stride = 1;
};

class Client {
 public:
  Client(OpenIndexes& indexes, Board& board, unsigned seat, Share share, std::uint64_t seed,
         const Step& step)
      : indexes_(indexes),
        board_(board),
        seat_(board.seats[seat]),
        writer_(seat),
        share_(share),
        rng_(seed),
        step_(step) {}

  /// The work of the step.
  void run();

  /// What is found under the key decides an operation that an earlier process left in flight.
  void settle(OpenIndex& index, std::uint32_t number);

  std::uint64_t operations() const { return operations_; }

 private:
  void work();
  void fill(OpenIndex& index);
  void drain(OpenIndex& index);
  void churn(bool few);
  void read_all();
  void idle();
  void one_of_everything(OpenIndex& index, std::uint32_t number);

  void write(OpenIndex& index, std::uint32_t number, Op op);
  void write_hot(OpenIndex& index, std::uint32_t hot, Op op);
  void read(OpenIndex& index, std::uint32_t number);
  void read_many(OpenIndex& index);
  void scan(OpenIndex& index, std::uint32_t from);
  void visit(OpenIndex& index, const Datum& key, DatumView value);
  void misbehave(OpenIndex& index);
  void look_at(OpenIndex& index);

  /// Runs the call, mostly without failures; those that may not be are findings.
  Outcome call(OpenIndex& index, const char* name, const std::function<void()>& body);
  bool may_throw(const OpenIndex& index, Op op, const Outcome& outcome) const;
  bool passes_over(const OpenIndex& index);
  void note_failed_sync(const OpenIndex& index, const Outcome& outcome);
  void after_failure(OpenIndex& index, std::uint32_t number, Op op, const Outcome& outcome);
  void expect_refusal(OpenIndex& index, std::uint32_t number);
  Found find(OpenIndex& index, std::uint32_t number);
  std::string name(const OpenIndex& index, std::uint32_t number) const;

  bool sick(const OpenIndex& index) const { return board_.sick[index.plan.pool].load(); }
  std::uint32_t owned(const OpenIndex& index) const;
  std::uint32_t number_of(std::uint32_t nth) const { return share_.first + nth * share_.stride; }
  std::uint32_t in_order(std::uint32_t nth, std::uint32_t count) const;
  bool enough() const { return operations_ >= step_.operations; }

  OpenIndexes& indexes_;
  Board& board_;
  Seat& seat_;
  unsigned writer_;
  Share share_;
  Rng rng_;
  const Step& step_;
  std::uint64_t operations_ = 0;
  unsigned full_ = 0;      // calls in a row that found the pool full
  unsigned refusals_ = 0;  // changes that a pool refused since its descriptor was lost
  unsigned depth_ = 0;     // visitors around this call
};

}  // namespace perdix::test::storm
