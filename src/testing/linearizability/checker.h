// Is a recorded history linearizable, and durably so if a crash cut it?
//
// Keys are independent of each other, and linearizability is a local property (Herlihy and Wing,
// 1990), so each key is checked by itself: is there an order of its operations that keeps the order
// of those that did not overlap, and in which every answer is right? The search is that of Wing and
// Gong (1993), which tries every operation that may come next, with the memory of Lowe (2017): a
// set of operations that led to a state once and failed is not tried again.
//
// An operation in flight at a crash may have happened or not, but not after the crash (durable
// linearizability, Izraelevitz et al., 2016); one that returned has happened. What is read after
// the crash is simply part of the history.
//
// A scan is no atomic snapshot. Each leaf is shown as it was at one moment of the scan, so every
// key in the scan's range, shown or passed over, was read at a moment between the call and when the
// scan showed the next pair: that is a get of that key. Also, keys must ascend strictly.
//
// Pure functions. The time is exponential in the number of overlapping operations on one key at
// worst; with a few threads it is small.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "testing/linearizability/operation.h"

namespace perdix::testing {

/// A sentence for each problem; empty if the history is linearizable. All keys are absent at first.
/// `keys`: those that scans are checked for.
std::vector<std::string> check(const History& history, std::span<const Key> keys);

/// Whether operations on one key are linearizable.
bool linearizable(std::vector<Operation> operations);

}  // namespace perdix::testing
