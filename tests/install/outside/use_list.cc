#include <cstdint>
#include <iostream>
#include <string>

#include <perdix/perdix.h>

#include "list.h"

using Lists = perdix::tips::User<"list", SortedList>;

int main(int, char** argv) {
  perdix::PoolOptions options;
  options.plugins = Lists::plugins();  // each program that uses the index names its plug-in
  {
    const auto pool = perdix::Pool::open_or_create(argv[1], options);
    perdix::Tips<Lists, std::uint64_t, std::string> crates(pool, "crates");
    crates.put(7, "of pears");
    crates.put(3, "two crates ");
  }
  const auto pool = perdix::Pool::open(argv[1], options);
  const perdix::Tips<Lists, std::uint64_t, std::string> crates(pool, "crates");
  crates.scan(0, [](std::uint64_t, std::string_view text) { return bool(std::cout << text); });
  std::cout << '\n';
}
