# The engines: which are built, and the lists of them that sources are made of. An engine is a
# folder of src/index/; one that holds pairs has a test_traits.h, another a test_points.h.

# All of them, in the order in which programs show them.
set(PERDIX_ALL_ENGINES sptree fastfair nbtree elimda cceh skiplist elf elf_table tips tips_of)

set(PERDIX_ENGINES "all" CACHE STRING
  "Engines to build: all, or some of ${PERDIX_ALL_ENGINES}, with semicolons between them")
foreach(engine ${PERDIX_ENGINES})
  if(NOT engine IN_LIST PERDIX_ALL_ENGINES AND NOT engine STREQUAL "all")
    list(JOIN PERDIX_ALL_ENGINES ", " names)
    message(FATAL_ERROR "PERDIX_ENGINES: no engine '${engine}'; choose all, or some of: ${names}")
  endif()
endforeach()

set(chosen ${PERDIX_ENGINES})
if(elf_table IN_LIST chosen)
  list(APPEND chosen elf)  # whose header the one of ElfTable includes
endif()
set(PERDIX_CHOSEN_ENGINES "")
set(PERDIX_PAIRS_ENGINES "")
foreach(engine ${PERDIX_ALL_ENGINES})
  if("all" IN_LIST chosen OR engine IN_LIST chosen)
    list(APPEND PERDIX_CHOSEN_ENGINES ${engine})
    if(EXISTS "${PROJECT_SOURCE_DIR}/src/index/${engine}/test_traits.h")
      list(APPEND PERDIX_PAIRS_ENGINES ${engine})
    endif()
  endif()
endforeach()
if(NOT PERDIX_CHOSEN_ENGINES)
  message(FATAL_ERROR "PERDIX_ENGINES names no engine")
endif()
if((PERDIX_TESTS OR PERDIX_BENCH) AND NOT PERDIX_CHOSEN_ENGINES STREQUAL PERDIX_ALL_ENGINES)
  message(FATAL_ERROR "tests and benchmarks are about all engines: configure with "
    "-DPERDIX_TESTS=OFF -DPERDIX_BENCH=OFF, or leave PERDIX_ENGINES out")
endif()

set(generated "${PROJECT_BINARY_DIR}/generated")

# The registry. The sets of engines are weak in one list, so that a program that is linked with the
# static library has those only that it uses; the other list brings all of them.
set(weak "")
set(strong "")
set(sets "")
foreach(engine ${PERDIX_CHOSEN_ENGINES})
  string(APPEND weak "namespace ${engine} {\nextern const EngineSet engine_set [[gnu::weak]];\n}\n")
  string(APPEND strong "namespace ${engine} {\nextern const EngineSet engine_set;\n}\n")
  string(APPEND sets "      &${engine}::engine_set,\n")
endforeach()
function(perdix_write_registry file purpose declarations function)
  file(CONFIGURE OUTPUT "${generated}/${file}" CONTENT
"// Made by cmake/engines.cmake: @purpose@
#include <array>

#include \"index/engine.h\"

namespace perdix::detail::index {

@declarations@
std::span<const EngineSet* const> @function@() {
  static constexpr std::array kSets = {
@sets@  };
  return kSets;
}

}  // namespace perdix::detail::index
" @ONLY)
endfunction()
perdix_write_registry(linked_engines.cc "the engines, of which a program may have some." "${weak}"
  linked_engine_sets)
perdix_write_registry(all_engines.cc "all engines of this build." "${strong}" all_engine_sets)

# The traits of the engines of pairs, for the suites. A folder may have several engines: a tuple of
# traits.
set(includes "")
set(types "")
set(sorted ${PERDIX_PAIRS_ENGINES})
list(SORT sorted)
foreach(engine ${sorted})
  string(APPEND includes "#include \"index/${engine}/test_traits.h\"\n")
  list(APPEND types "detail::index::listed<detail::index::${engine}::TestTraits>()")
endforeach()
list(JOIN types ",\n    " types)
file(CONFIGURE OUTPUT "${generated}/engine_list.h" CONTENT
"// Made by cmake/engines.cmake: the traits of all engines.
#pragma once

#include <tuple>

@includes@
namespace perdix {

using EngineList = decltype(std::tuple_cat(
    @types@));

}  // namespace perdix
" @ONLY)

add_library(perdix_engine_list INTERFACE)
target_include_directories(perdix_engine_list INTERFACE ${generated})
