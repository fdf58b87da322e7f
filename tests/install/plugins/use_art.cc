#include <cstdint>
#include <iostream>
#include <string>

#include <perdix/perdix.h>
#include <perdix/tips_indexes.h>

int main(int, char** argv) {
  perdix::PoolOptions options;
  options.plugins = perdix::tips::Art::plugins();
  const auto pool = perdix::Pool::open_or_create(argv[1], options);
  perdix::Tips<perdix::tips::Art, std::uint64_t, std::string> crates(pool, "crates");
  crates.put(7, "two crates of pears");
  std::cout << *crates.get(7) << '\n';
}
