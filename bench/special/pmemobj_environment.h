// libpmemobj reads its settings before main().
#pragma once

namespace perdix::bench {

/// Starts the program again, unless it was, with an environment in which libpmemobj takes any file
/// for persistent memory and, unless the environment says otherwise, the CPU's caches for
/// persistent. argv[0] is the name of a special.
void set_pmemobj_up(int argc, char** argv);

}  // namespace perdix::bench
