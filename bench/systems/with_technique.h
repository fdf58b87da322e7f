// Systems with the techniques of section 3 of the SpTree paper (Technique). A form
// with buffers gets the run's DRAM budget, the plain form gets none.
#pragma once

#include "systems/perdix_map.h"

namespace perdix::bench {

template <class Options>
Options technique_options(const Setup& setup, Technique technique) {
  Options options;
  options.technique = technique;
  options.dram_budget = technique == Technique::none ? 0 : setup.dram_budget;
  return options;
}

/// `Map`: a PerdixMap of an engine with techniques.
template <class Map, Technique kTechnique>
class WithTechnique : public Map {
 public:
  explicit WithTechnique(const Setup& setup)
      : Map(setup, technique_options<typename Map::Options>(setup, kTechnique)) {}
};

}  // namespace perdix::bench
