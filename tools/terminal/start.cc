// The first that a program does. If its processor can't run it, it says so and ends. Then it takes
// the standard descriptors that it was started without, so that no file that it opens gets their
// number. Before main(), since objects of the program have initialisers, which may use what the
// processor lacks, or open files.
#include <unistd.h>

#include "pm/descriptor.h"
#include "pm/processor.h"

namespace perdix::terminal {
namespace {

constexpr int kFirst = 101;  // the first priority that programs may use
constexpr int kSecond = 102;
constexpr int kFailed = 2;  // ExitStatus::failed of the tool

void say(const char* text) {
  std::size_t size = 0;
  while (text[size] != '\0') ++size;
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, size);
}

[[gnu::constructor(kFirst)]] void require_processor() {
  detail::pm::Sentence missing;
  if (has_extensions(detail::pm::kCompiledExtensions, detail::pm::processor_extensions(), missing))
    return;
  say("perdix: ");
  say(missing.text);
  say("\n");
  ::_exit(kFailed);
}

[[gnu::init_priority(kSecond)]] const detail::pm::StandardDescriptors standard_descriptors;

}  // namespace
}  // namespace perdix::terminal
