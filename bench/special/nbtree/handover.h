// What it costs two cores to write to the same cache line in turns.
#pragma once

namespace perdix::bench::figures {

/// Nanoseconds until a thread on one CPU sees what one on another CPU has written, and has written
/// itself: the mean of some milliseconds. Where virtual CPUs move among a host's cores it changes
/// with them. 0 if this process may use one CPU only.
double handover_nanoseconds();

}  // namespace perdix::bench::figures
