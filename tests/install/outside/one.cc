// Uses one engine of the library.
//
//   one POOL           puts a value into an index, and shows it
//   one POOL INDEX     drops another index
#include <iostream>

#include <perdix/error.h>
#include <perdix/pool.h>
#include <perdix/sptree.h>

int main(int argc, char** argv) try {
  auto pool = perdix::Pool::open_or_create(argv[1]);
  if (argc > 2) pool.drop(argv[2]);
  if (!pool.check().ok()) return 1;
  perdix::SpTree<std::uint64_t, std::string> orders(pool, "orders");
  orders.put(42, "two crates of pears");
  std::cout << orders.get(42).value_or("nothing") << '\n';
} catch (const perdix::Error& error) {
  std::cout << error.what() << '\n';
  return 1;
}
