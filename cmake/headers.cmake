# Every header compiles alone, which a build that compiles sources in batches does not show. Of a
# header whose source includes it first, that source is the proof (in the build `apart`, which has
# no batches); for each of the others there is a source here that includes nothing else.

# perdix_headers(name FOLDERS folder... [EXCEPT regex] [DEFINITIONS name...] LIBS target...)
# Compiles the headers below the folders, which are relative to the project.
function(perdix_headers name)
  cmake_parse_arguments(ARG "" "EXCEPT" "FOLDERS;DEFINITIONS;LIBS" ${ARGN})
  list(TRANSFORM ARG_FOLDERS PREPEND "${PROJECT_SOURCE_DIR}/")
  list(TRANSFORM ARG_FOLDERS APPEND "/*.h")
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE "${PROJECT_SOURCE_DIR}" ${ARG_FOLDERS})
  if(ARG_EXCEPT)
    list(FILTER headers EXCLUDE REGEX "${ARG_EXCEPT}")
  endif()
  set(sources "")
  foreach(header ${headers})
    string(REGEX REPLACE "h$" "cc" own_source "${PROJECT_SOURCE_DIR}/${header}")
    if(NOT EXISTS "${own_source}")
      set(source "${PROJECT_BINARY_DIR}/headers/${header}.cc")
      file(CONFIGURE OUTPUT "${source}" CONTENT "#include \"${PROJECT_SOURCE_DIR}/${header}\"\n")
      list(APPEND sources "${source}")
    endif()
  endforeach()
  add_library(${name} OBJECT ${sources})
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  target_compile_definitions(${name} PRIVATE ${ARG_DEFINITIONS})
  target_include_directories(${name} PRIVATE
    ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/tools
    ${PROJECT_SOURCE_DIR}/bench)
  target_link_libraries(${name} PRIVATE perdix_options ${ARG_LIBS})
endfunction()

# What only an instrumented build has.
set(probing "^src/(testing/|alloc/test_crash\\.h)|^tests/(crash|linearizability|zero_cost)/")
set(not_cxx "^tests/model/")
# What belongs to a patched copy of NbTree.
set(of_forms "^bench/nbtree_forms/(leaf_lock|metadata_copy)\\.h")

perdix_headers(perdix_public_headers FOLDERS include LIBS perdix)
perdix_headers(perdix_headers FOLDERS src plugins tests tools bench EXCEPT
  "${probing}|${not_cxx}|${of_forms}"
  LIBS perdix_bench_cli perdix_nbtree_forms perdix_test_support GTest::gmock)
perdix_headers(perdix_probing_headers FOLDERS src/testing src/alloc tests/crash
  EXCEPT "^src/alloc/[^t]" DEFINITIONS PERDIX_INSTRUMENTED
  LIBS perdix_bench_cli perdix_test_support GTest::gmock)
