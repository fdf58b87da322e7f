// Contenders with the techniques of SpTree's paper, section 3 (IndexOptions::technique): a form
// with buffers has the run's budget, the plain one has none.
#pragma once

#include "engines/perdix_map.h"

namespace perdix::bench {

inline IndexOptions technique_options(const Setup& setup, Technique technique) {
  IndexOptions options;
  options.technique = technique;
  options.dram_budget = technique == Technique::none ? 0 : setup.dram_budget;
  return options;
}

template <template <Storable, Storable> class Index, class K, class V, Technique kTechnique>
class TechniqueMap : public PerdixMap<Index, K, V> {
 public:
  explicit TechniqueMap(const Setup& setup)
      : PerdixMap<Index, K, V>(setup, technique_options(setup, kTechnique)) {}
};

}  // namespace perdix::bench
