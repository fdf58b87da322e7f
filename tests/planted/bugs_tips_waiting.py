"""Bugs of what waits for its replay in Tips, and of scans that merge it with the index."""

from bug import Bug, drop, drop_part, schedules, swap_part, unit

BTREE = ("tips:btree:u64:u64", "tips:btree")
TIPS_TEST = "src/index/tips/tips_test"
WAITING_UNIT = (unit(TIPS_TEST, "WaitingWrites/*:Backlog/*"),)

REPLAY = "src/index/tips/replayer.cc"
SCAN = "src/index/tips/scan.cc"
WAITING = "src/index/tips/waiting.cc"

BUGS = [
    swap_part(
        "tips: a scan misses what is queued",
        WAITING,
        "for (const Queue::Position& begin : view.state_.begins)",
        "add_queued(begin, range)",
        "(void)begin",
        (*BTREE, *WAITING_UNIT),
    ),
    swap_part(
        "tips: a scan misses what is being replayed",
        WAITING,
        "add_part(view.cut_, range)",
        "view.cut_",
        "{}",
        WAITING_UNIT,
    ),
    swap_part(
        "tips: a scan misses runs of later writes",
        WAITING,
        "for (const RunPointer& run : view.state_.later_runs())",
        "add_part(run->slots, range)",
        "(void)run",
        WAITING_UNIT,
    ),
    drop(
        "tips: a scan up a run shows the oldest write of a key",
        WAITING,
        "while (part.size > 1 &&",
        WAITING_UNIT,
    ),
    swap_part(
        "tips: a scan shows the oldest queued write of a key",
        WAITING,
        "if (order == 0) return a.entry",
        "<",
        ">",
        WAITING_UNIT,
    ),
    drop_part(
        "tips: a scan prefers writes of an earlier run",
        WAITING,
        "if (order == 0 || (order < 0) != down_)",
        "order == 0 || ",
        WAITING_UNIT,
    ),
    drop(
        "tips: a scan shows a key once for each run",
        WAITING,
        "for (std::size_t i = 0; i < part_count_; ++i) skip_top",
        WAITING_UNIT,
    ),
    swap_part(
        "tips: earlier and later runs change places when they are merged",
        WAITING,
        "std::merge(earlier.begin()",
        "earlier.begin(), earlier.end(), later.begin(), later.end()",
        "later.begin(), later.end(), earlier.begin(), earlier.end()",
        WAITING_UNIT,
    ),
    drop(
        "tips: a scan down takes a queued write of its bound, which it must not",
        WAITING,
        "if (after == 0) return !range.strictly",
        WAITING_UNIT,
    ),
    Bug(
        "tips: the queues' places of an earlier State stay",
        WAITING,
        "  left_->begins = state().begins;\n",
        "  if (!{planted}) left_->begins = state().begins;\n",
        (*WAITING_UNIT, unit(TIPS_TEST, "Deferred/*")),
    ),
    Bug(
        "tips: writes are passed behind one that is deferred",
        REPLAY,
        "  if (deferred_ != 0) return;\n",
        "  if (!{planted} && deferred_ != 0) return;\n",
        (unit(TIPS_TEST, "Deferred/*.IsShown:TipsReplay.*"),),
    ),
    Bug(
        "tips: writes are passed before they are in the index",
        REPLAY,
        "      workers == 1 ? replay_alone(some) : replay_together(some, workers);\n"
        "      pass(some);\n",
        "      if ({planted}) waiting_.pass(some.size());\n"
        "      workers == 1 ? replay_alone(some) : replay_together(some, workers);\n"
        "      if (!{planted}) pass(some);\n"
        "      for (const RankedEntry& slot : some)\n"
        "        if ({planted}) cache_.dequeue(*slot.entry);\n",
        (schedules("--engine tips:btree --domain memory_controller"),),
    ),
    Bug(
        "tips: a scan reads the index before it sees what waits",
        SCAN,
        "  const Waiting::View waiting(this->core().waiting());  // before the index is read\n"
        "  Read read(std::min(limit, batch.kMaxPairs), this->value_kind());\n"
        "  read_index(read, position);\n",
        "  Read read(std::min(limit, batch.kMaxPairs), this->value_kind());\n"
        "  if ({planted}) read_index(read, position);\n"
        "  const Waiting::View waiting(this->core().waiting());\n"
        "  if (!{planted}) read_index(read, position);\n",
        (schedules("--engine tips:btree --domain memory_controller"),),
    ),
    drop_part(
        "tips: a scan shows pairs that are being erased",
        SCAN,
        "if (entry.operation() == Operation::put) batch",
        "if (entry.operation() == Operation::put) ",
        (*BTREE, *WAITING_UNIT),
    ),
    swap_part(
        "tips: the last pair is one that is being erased",
        SCAN,
        "erased = pair &&",
        "pair && key_at(change) == pair->first",
        "false",
        WAITING_UNIT,
    ),
]
