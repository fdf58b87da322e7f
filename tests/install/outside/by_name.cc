// Opens an index by the name of its engine, so that it may name any.
#include <iostream>

#include <perdix/index.h>
#include <perdix/pool.h>

int main(int, char** argv) {
  auto pool = perdix::Pool::open_or_create(argv[1]);
  const auto stock = perdix::Index::open_or_create(
      pool, {"stock", "cceh", perdix::Kind::bytes, perdix::Kind::bytes});
  stock->put("42", "two crates of pears");
  std::cout << stock->get("42").value_or("nothing") << '\n';
}
