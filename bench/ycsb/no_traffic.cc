// A normal build has no meter.
#include "ycsb/traffic.h"

namespace perdix::bench {

void add_meter(CLI::App&, Options&) {}

}  // namespace perdix::bench
