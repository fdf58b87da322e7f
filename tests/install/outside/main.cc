// The program of the README as a user would write it. Prints the value that it finds after a
// reopen.
#include <cstdint>
#include <iostream>
#include <string>

#include <perdix/perdix.h>

using namespace perdix;

// Names that a program may define itself, beside all public names of perdix.
int pool = 0, alloc = 0, art = 0, epoch = 0, pm = 0, util = 0, wal = 0;
int uses_own_names() { return pool + alloc + art + epoch + pm + util + wal; }

int main(int, char** argv) {
  if (uses_own_names() != 0) return 1;
  const std::string path = argv[1];
  {
    auto pool = perdix::Pool::create(path);
    perdix::SpTree<std::uint64_t, std::string> orders(pool, "orders");
    orders.put(42, "two crates of pears");
  }
  try {
    perdix::Pool::create(path);
    return 1;
  } catch (const perdix::Error& e) {
    if (e.code() != perdix::Errc::already_exists) return 1;
  }
  auto pool = perdix::Pool::open(path);
  perdix::SpTree<std::uint64_t, std::string> orders(pool, "orders");
  std::cout << orders.get(42).value_or("nothing") << '\n';
}
