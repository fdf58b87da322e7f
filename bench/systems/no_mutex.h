// In place of a readers-writer lock where none is needed.
#pragma once

namespace perdix::bench {

struct NoMutex {
  void lock() {}
  void unlock() {}
  void lock_shared() {}
  void unlock_shared() {}
};

}  // namespace perdix::bench
