// add_sample_points POOL INDEX X Y: adds a row to a table of points.
#include <string>

#include <perdix/pool.h>

#include "samples/points/points.h"

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const perdix::Pool pool = perdix::Pool::open(argv[1]);
  const auto table = perdix::samples::points::Table::open_or_create(pool, argv[2]);
  table->add({std::stoull(argv[3]), std::stoull(argv[4])});
  return 0;
}
