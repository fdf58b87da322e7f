#include <fmt/format.h>

#include "perdix/commands.h"
#include "perdix/output.h"
#include "terminal/format.h"

namespace perdix::tool {
namespace {

// A device that keeps nothing over a power failure can't be given any durability.
const char* what_it_survives(const PoolInfo& info) {
  if (info.durability != Durability::power)
    return "survives the end of any process, but not of the machine";
  if (!info.in_memory) return "survives power failures and the end of any process";
  return "survives the end of any process, but no power failure: its file lies in memory (tmpfs)";
}

}  // namespace

ExitStatus create(const CreateOptions& o) {
  PoolOptions options;
  options.durability = o.durability;
  options.domain = o.domain;
  if (!o.size.empty()) options.initial_size = terminal::parse_size(o.size);
  if (!o.max_size.empty()) options.max_size = terminal::parse_size(o.max_size);
  Pool pool = Pool::create(o.pool, options);
  const PoolInfo info = pool.info();
  Output out;
  out.write(fmt::format("{} created: {}, {}\n", o.pool,
                        terminal::format_bytes(static_cast<double>(info.size)),
                        what_it_survives(info)));
  pool.close();
  out.flush();
  return ExitStatus::ok;
}

}  // namespace perdix::tool
