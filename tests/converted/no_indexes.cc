// Of a build without the packages that examples/converted needs.
#include "converted/indexes.h"

namespace perdix {

std::vector<const tips::Plugin*> test::converted_plugins() { return {}; }
std::vector<test::IndexType> test::converted_types() { return {}; }

}  // namespace perdix
