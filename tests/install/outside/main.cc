// The program of the README, as somebody else would write it. Prints what it found after a reopen.
#include <perdix/perdix.h>

#include <cstdint>
#include <iostream>
#include <string>

int main(int, char** argv) {
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
