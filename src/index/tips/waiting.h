// The writes that wait for their replay, as a replay takes them and as scans find them.
//
//   ring.queue.push(entry);                  // a writer (queue.h)
//   ...
//   const std::uint64_t to = waiting.cut();  // a replay takes all of them, in the order of keys
//   waiting.pass(n);                         // the first n of the cut are in the index
//   waiting.collect();                       // now and then: later ones are put in order
//   waiting.end_cut(release);                // what found no space stays
//   ...
//   const Waiting::View view(waiting);       // a scan, before it reads the index
//   for (auto at = view.up(from, last); at.entry() != nullptr; at.next()) ...
//
// A writer appends to the queue of its ring, which has no order. The thread that replays takes what
// is queued into sorted runs: the cut, which it replays, and later ones, each more than twice as
// long as the next. So no put pays for the order, and a scan finds few runs and short queues. If
// that thread gets no processor, queues are long; then a scan looks at the rank of each write in
// them.
//
// Invariants:
//   1. The State names each write that waits: in the cut and not passed, in a later run, or in a
//      queue behind `begins`. It never changes, but that the cut is passed and queues grow.
//   2. Of the writes of one key those in queues are newer than those in runs, and those in a run
//      are newer than those in an earlier run and in the cut. In a run the oldest is first.
//   3. A write is in the index before it is passed or the State lacks it. Its entry is retired
//      after that.
//
// So a View has each write that is not in the index when the View is made, and its Guard keeps
// their entries. What it lacks is in an index that is read later. Such an index may have a newer
// write of a key than the View. The View's was the newest one when the View was made, if it is the
// newest one in the View.
//
// Where the index has no order, runs have none, and there are no Views.
//
// Thread-safe: Views. One thread at a time makes the other calls.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <perdix/types.h>

#include "epoch/reclaimer.h"
#include "index/tips/entry.h"
#include "index/tips/key_order.h"
#include "index/tips/operation_log.h"
#include "index/tips/queue.h"

namespace perdix::detail::index::tips {

class Waiting {
 public:
  class View;
  class Cursor;

  Waiting(OperationLogs& logs, epoch::Reclaimer& reclaimer, Kind keys, bool ordered);
  ~Waiting();  ///< there is no View
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  /// On opening: takes the writes of the logs as the cut. Throws bad_alloc: then it has not.
  void adopt(std::vector<RankedEntry>& slots);

  /// Cuts: all writes that wait. Returns the number of the newest record (D2). Throws bad_alloc:
  /// then nothing has happened.
  std::uint64_t cut();

  /// What is not passed of the cut; in the order of keys, if the index has one.
  std::span<const RankedEntry> rest() const { return state().cut->rest(); }

  /// The next `count` writes of the cut are in the index.
  void pass(std::size_t count) noexcept {
    state().cut->passed.fetch_add(count, std::memory_order_release);
  }

  /// Puts queued writes in order if they are so many that a View would be long in reading them.
  /// Without memory for that they stay where they are.
  void collect() noexcept;

  /// Leaves in the cut those of rest() that are Entry::kDeferred, and calls release(entry) for the
  /// others, which are in the index. Takes no memory.
  template <class Release>
  void end_cut(const Release& release) noexcept {
    const RunPointer cut = state().cut;  // a State goes with its runs
    if (cut->rest().empty()) return;
    leave_deferred();
    for (const RankedEntry& slot : cut->rest())
      if (!slot.entry->has(Entry::kDeferred)) release(*slot.entry);
  }

  /// Calls show(entry) for each write that waits.
  template <class Show>
  void for_each(const Show& show) const {
    const auto show_all = [&](const RankedEntry* slots, std::size_t size) {
      for (std::size_t i = 0; i < size; ++i) show(*slots[i].entry);
    };
    show_all(rest().data(), rest().size());
    for (const RunPointer& run : state().later_runs())
      show_all(run->slots.data(), run->slots.size());
    for (const Queue::Position& begin : state().begins) Queue::for_each(begin, {}, show_all);
  }

 private:
  struct Run {
    std::vector<RankedEntry> slots;
    std::atomic<std::size_t> passed{0};  // of the cut

    std::span<const RankedEntry> rest() const {
      return std::span(slots).subspan(passed.load(std::memory_order_acquire));
    }
  };
  using RunPointer = std::shared_ptr<Run>;

  static constexpr std::size_t kMaxRuns = 32;  // their sizes grow as powers of 2

  struct State final : epoch::Retirable {
    RunPointer cut = std::make_shared<Run>();
    std::array<RunPointer, kMaxRuns> runs;  // later ones, oldest first
    std::size_t run_count = 0;
    OperationLogs::Ends begins;

    std::span<const RunPointer> later_runs() const { return std::span(runs).first(run_count); }
  };

  const State& state() const { return *state_.load(std::memory_order_relaxed); }
  std::uint64_t take_queued(State& next, Run& run) const;
  RunPointer merged(std::span<const RankedEntry> earlier, std::span<const RankedEntry> later) const;
  RunPointer merged_last(State& next, const Run& run) const;
  void leave_deferred() noexcept;
  void replace_state(std::unique_ptr<State> next) noexcept;

  OperationLogs& logs_;
  epoch::Reclaimer& reclaimer_;
  const Kind keys_;
  const bool ordered_;
  std::unique_ptr<State> left_;  // the next State, if anything is left; its cut has room for all
  std::atomic<State*> state_;
};

/// The newest writes of the keys of a range, in their order or in the opposite one.
class Waiting::Cursor {
 public:
  struct Range {
    bool down;
    std::string_view from;
    bool strictly;                         // without `from` itself
    std::optional<std::string_view> last;  // no need to go further
  };

  Cursor(const View& view, const Range& range);
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  /// The write that is next. Null if there is none up to `last`, and maybe if there is one.
  const Entry* entry() const { return top_.entry; }
  /// The rank of its key: of an integer, the key.
  std::uint64_t rank() const { return top_.rank; }
  /// Goes on behind all writes of its key.
  void next();

 private:
  /// What is left of a run.
  struct Part {
    const RankedEntry* first;
    std::size_t size;
  };

  void add_part(std::span<const RankedEntry> slots, const Range& range);
  void add_queued(const Queue::Position& begin, const Range& range);
  const RankedEntry& next_of(const Part& part) const {
    return part.first[down_ ? part.size - 1 : 0];
  }
  void find_newest(Part& part) const;
  void skip_top(Part& part) const;
  bool comes_later(const RankedEntry& a, const RankedEntry& b) const;
  void choose();

  const Kind keys_;
  const bool down_;
  RankedEntry top_{};
  std::size_t part_count_ = 0;
  std::array<Part, kMaxRuns + 1> parts_;  // those that are not empty, oldest first
  std::vector<RankedEntry> queued_;       // a heap, whose top comes next
};

/// The writes that wait at one moment. The thread is in an epoch::Guard that began before, and that
/// lasts as long as the View, its cursors, and the use of their entries.
class Waiting::View {
 public:
  explicit View(const Waiting& waiting)
      : state_(*waiting.state_.load(std::memory_order_acquire)),
        cut_(state_.cut->rest()),
        keys_(waiting.keys_) {}
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  /// From a key on, up to `last`.
  Cursor up(std::string_view from, std::optional<std::string_view> last) const {
    return Cursor(*this, {false, from, false, last});
  }
  /// From a key on, or from the one before it if `strictly`, down to `last`.
  Cursor down(std::string_view from, bool strictly, std::optional<std::string_view> last) const {
    return Cursor(*this, {true, from, strictly, last});
  }

 private:
  friend Cursor;

  const State& state_;
  const std::span<const RankedEntry> cut_;
  const Kind keys_;
};

}  // namespace perdix::detail::index::tips
