// Options by name, for suites that run over all engines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <perdix/index.h>

#include "index/common/engine_options.h"

namespace perdix::detail::index {

/// Sets an option of an index if its engine has one of that name.
template <class T>
void set_if_there(IndexOptions& options, std::string_view engine, const std::string& name,
                  T value) {
  for (const OptionInfo& option : Index::options(engine))
    if (option.name == name) options.named[name] = OptionText<T>::write(value);
}

/// The budget of write buffers; 0 if none is set.
inline std::uint64_t dram_budget_of(const IndexOptions& options) {
  const auto found = options.named.find("dram_budget");
  if (found == options.named.end()) return 0;
  return OptionText<std::uint64_t>::read(found->second).value_or(0);
}

}  // namespace perdix::detail::index
