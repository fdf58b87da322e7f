// Of a build without Tips, which is what takes plug-ins: there are none.
#include <vector>

namespace perdix::tips {

class Plugin;

std::vector<const Plugin*> further_plugins() { return {}; }

}  // namespace perdix::tips
