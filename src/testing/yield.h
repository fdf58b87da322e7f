// A probe that learns when a thread waits for another.
//
// Every wait in perdix pauses by util::Backoff, which yields the processor now and then. yield.cc
// replaces sched_yield() by a function that tells the installed probe instead, if it is of this
// kind.
#pragma once

#include "pm/probe.h"

namespace perdix::testing {

class YieldingProbe : public detail::pm::Probe {
 public:
  /// The calling thread waits for something that another thread must do.
  virtual void on_yield() = 0;
};

/// What sched_yield() does where no such probe is installed.
void give_up_processor() noexcept;

}  // namespace perdix::testing
