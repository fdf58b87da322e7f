// Delivers a fault at a protected page to the write of the faulting thread.
//
//   {
//     Faults faults(pages);   // this thread may store to the pages
//     ...
//   }
//
// A handler of SIGSEGV belongs to the process, so there is one, which looks only for the writes of
// the faulting thread. A store by any other thread ends the program, as it would without perdix.
// The handler passes other faults on to the handler that was installed before it; if a program
// installs another one later, the next write puts this one before it.
//
// The handler runs at a store of the container's, so no lock of perdix or of the C library is held
// by its thread. It copies into the pool, flushes, fences and changes a protection. It takes a lock
// in the page_cache domain only, that of the sync.
#pragma once

#include <cstdint>

namespace perdix::detail::index::tips_of {

class Pages;

class Faults {
 public:
  explicit Faults(Pages& pages);
  Faults(const Faults&) = delete;
  Faults& operator=(const Faults&) = delete;
  ~Faults();

  /// Whether this thread is in a write, of whatever container.
  static bool any();

 private:
  friend struct FaultHandler;

  Pages& pages_;
};

}  // namespace perdix::detail::index::tips_of
