// Carries out what a configuration asks for.
#pragma once

#include "common/report.h"
#include "special/resume/config.h"

namespace perdix::bench::resumption {

/// The calling process must have one thread and keep to it. Throws perdix::Error, Cancelled.
Report run(const Config& config);

}  // namespace perdix::bench::resumption
