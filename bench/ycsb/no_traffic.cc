// A normal build has no meter.
#include "ycsb/traffic.h"

namespace perdix::bench {

std::unique_ptr<Meter> make_meter(const TrafficModel&) { return nullptr; }

void add_meter(CLI::App&, Options&) {}

}  // namespace perdix::bench
