// The call sites of flush and fence that schedules reach, one of which may be suppressed.
//
// Thread-safe.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "testing/trace.h"

namespace perdix::testing {

class CallSites {
 public:
  /// From now on the flushes, or the fences, of this site ("src/a.cc:1:2") are left out.
  void suppress(const std::string& site, Event::Kind kind);

  bool suppresses() const;

  /// Counts a flush or a fence; false if it is left out.
  bool counts(const detail::pm::Site& site, Event::Kind kind);

  std::vector<Sites::Use> uses() const;

 private:
  mutable std::mutex mutex_;
  Sites sites_;
  std::optional<Suppression> suppressed_;
};

}  // namespace perdix::testing
