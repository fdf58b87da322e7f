// Whether a type of container can be made durable: a container of it is made in the pool, filled,
// read, moved, cleared and destroyed, and is then forgotten.
//
// It shows that the container keeps no address of the process in its memory, frees all that it
// allocates, stores nothing when it is only read, and counts its elements. It does not try all
// operations of a container: each write looks for addresses, too (foreign.cc). It can't tell
// whether a hash function is the same in each process, which the next opening does.
#pragma once

#include "index/tips_of/tips_of.h"

namespace perdix::detail::index::tips_of {

class Trial {
 public:
  explicit Trial(Table& table) : table_(table) {}

  /// Throws unsupported, with the reason.
  void run();

 private:
  void fill();
  void read();
  void destroy();
  void require_own_addresses() const;
  void clear_addresses() const;
  [[noreturn]] void refuse(const std::string& why) const;

  Table& table_;
};

}  // namespace perdix::detail::index::tips_of
