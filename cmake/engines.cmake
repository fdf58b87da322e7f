# The engines, found by their files: src/index/<engine>/test_traits.h, or test_points.h of one that
# is no map. Makes a header for the suites that lists the traits of the maps, so that joining needs
# no line there. A folder may have several engines: a tuple of traits.

file(GLOB traits CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/src"
  "${PROJECT_SOURCE_DIR}/src/index/*/test_traits.h")
set(PERDIX_ENGINES "")
set(includes "")
set(types "")
foreach(header ${traits})
  get_filename_component(folder "${header}" DIRECTORY)
  get_filename_component(engine "${folder}" NAME)
  list(APPEND PERDIX_ENGINES ${engine})
  string(APPEND includes "#include \"${header}\"\n")
  list(APPEND types "detail::index::listed<detail::index::${engine}::TestTraits>()")
endforeach()
list(JOIN types ",\n    " types)
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/engine_list.h" CONTENT
"// Made by cmake/engines.cmake: the traits of all engines.
#pragma once

#include <tuple>

@includes@
namespace perdix {

using EngineList = decltype(std::tuple_cat(
    @types@));

}  // namespace perdix
" @ONLY)

file(GLOB point_engines CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}/src"
  "${PROJECT_SOURCE_DIR}/src/index/*/test_points.h")
set(PERDIX_POINT_ENGINES "")
foreach(header ${point_engines})
  get_filename_component(folder "${header}" DIRECTORY)
  get_filename_component(engine "${folder}" NAME)
  list(APPEND PERDIX_POINT_ENGINES ${engine})
endforeach()

add_library(perdix_engine_list INTERFACE)
target_include_directories(perdix_engine_list INTERFACE ${PROJECT_BINARY_DIR}/generated)
