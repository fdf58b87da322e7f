#include "common/environment.h"

#include <sys/utsname.h>

#include <chrono>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "common/place.h"
#include "pm/probe.h"
#include "util/histogram.h"

namespace perdix::bench {
namespace {

using Clock = std::chrono::steady_clock;

std::string processor_name() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string line;
  while (std::getline(cpuinfo, line)) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

std::string machine_description() {
  utsname system{};
  ::uname(&system);
  return fmt::format("{}, {} CPUs, {} {}", processor_name(), std::thread::hardware_concurrency(),
                     system.sysname, system.release);
}

}  // namespace

Environment environment_of(const std::filesystem::path& directory) {
  return {directory.string(), file_system_of(directory), machine_description(),
          fmt::format("{}{}", PERDIX_BUILD, detail::pm::kInstrumented ? ", instrumented" : "")};
}

double clock_cost_nanoseconds() {
  constexpr int kTries = 10'000;
  detail::util::Histogram cost;
  for (int i = 0; i < kTries; ++i) {
    const Clock::time_point begin = Clock::now();
    cost.record(static_cast<std::uint64_t>((Clock::now() - begin).count()));
  }
  return static_cast<double>(cost.percentile(50));
}

}  // namespace perdix::bench
