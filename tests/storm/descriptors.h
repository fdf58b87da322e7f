// A program that does with a pool's descriptor what it must not: it closes the descriptor, or gives
// the number to another file, as code that makes a daemon of the process does, or a second close()
// of what was closed. The pool is promised to notice that before its next growth, to be read on
// from then on, and to leave the other file alone.
//
// The lock of a pool belongs to the open file description, which the mappings of the file keep
// alive: closing the descriptor does not free the lock. So all that the storm expects of a pool in
// use holds, a second opening is refused, too. Only a sync that fails takes the lock from such a
// pool, since its mapping then gives way to memory and can't be made again from the descriptor. A
// second opening may succeed then, so the storm does not try any (Board::descriptor_lost).
//
// Between the library's question whose the descriptor is and its use of the answer anything may
// happen to the other file, which is nobody's fault. So a call that was on its way when the
// descriptor was lost finds it closed, whatever has become of it (OldCalls). Later calls find the
// other file.
#pragma once

#include <shared_mutex>
#include <string>

#include "support/rng.h"

namespace perdix::test::storm::descriptors {

/// This thread begins a call of the library. Cheap.
void begin_call();

/// Closes the descriptor of the open pool at this path, and mostly gives its number to another
/// file. Only the thread that opens and closes the pools may do it. Throws a Finding if the library
/// has no descriptor of the file.
void lose(const std::string& path, Rng& rng);

/// Throws a Finding unless the other file is as it was.
void expect_untouched(const std::string& path);

/// Takes back what lose() has done, in this process or in one that was killed, when the pool is
/// closed. Throws a Finding unless the other file is as it was and still has its number.
void give_back(const std::string& path);

/// As long as it lives no descriptor is lost: for what the storm interposes.
class OldCalls {
 public:
  OldCalls();

  /// Whether the descriptor was lost while the call of this thread was on its way. A thread of the
  /// library's own is always on its way.
  bool have_lost(int descriptor) const;

 private:
  std::shared_lock<std::shared_mutex> lock_;
};

}  // namespace perdix::test::storm::descriptors
