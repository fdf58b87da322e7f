# The functions that every folder uses, and the compiler options that all code shares.

# --- Compiler -------------------------------------------------------------------------------------

find_program(PERDIX_CCACHE ccache)
if(PERDIX_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  # Without this it keeps nothing that uses a precompiled header, which most sources do.
  set(launcher "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros
    "${PERDIX_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

# The many programs of the tests are linked in half the time.
find_program(PERDIX_GOLD ld.gold)
if(PERDIX_GOLD AND PERDIX_TESTS)
  add_link_options(-fuse-ld=gold)
endif()

if(PERDIX_SANITIZE)
  add_compile_options(-fsanitize=${PERDIX_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${PERDIX_SANITIZE})
endif()

# Coverage for libFuzzer, of what it looks into; its main() comes with the targets in tests/fuzz. In
# the layers not of comparisons, which would make all tests of the build half as fast: the input of
# a pool says which word is changed, so there is little to guess.
set(PERDIX_COVERAGE "")
set(PERDIX_LAYER_COVERAGE "")
if(PERDIX_FUZZ)
  set(PERDIX_COVERAGE -fsanitize=fuzzer-no-link)
  set(PERDIX_LAYER_COVERAGE ${PERDIX_COVERAGE} -fno-sanitize-coverage=trace-cmp)
endif()

# ThreadSanitizer's shadow memory collides with the mappings of a kernel that randomises addresses
# by more than 28 bits, so its programs run without randomisation where the system lets them.
if(PERDIX_SANITIZE MATCHES "thread" AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  execute_process(COMMAND setarch -R true RESULT_VARIABLE setarch_failed OUTPUT_QUIET ERROR_QUIET)
  if(NOT setarch_failed)
    set(CMAKE_CROSSCOMPILING_EMULATOR "${PROJECT_SOURCE_DIR}/scripts/without-aslr")
  endif()
endif()

add_library(perdix_options INTERFACE)
target_compile_options(perdix_options INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Werror=return-type)
if(PERDIX_MARCH)
  target_compile_options(perdix_options INTERFACE -march=${PERDIX_MARCH})
endif()

# perdix_baseline(source...)
# Sources that may run before it is known whether the processor has what PERDIX_MARCH allows: they
# are compiled for every processor of the kind (src/pm/processor.h).
function(perdix_baseline)
  set_source_files_properties(${ARGN} PROPERTIES
    COMPILE_OPTIONS "${PERDIX_BASELINE}" SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# The thread-local variables of other libraries (liburcu's) are plain pointers: no access needs to
# ask whether they must be initialized first. GCC's option; clang has none like it, and asks.
include(CheckCXXCompilerFlag)
check_cxx_compiler_flag(-fno-extern-tls-init PERDIX_HAS_NO_EXTERN_TLS_INIT)
if(PERDIX_HAS_NO_EXTERN_TLS_INIT)
  target_compile_options(perdix_options INTERFACE -fno-extern-tls-init)
endif()
if(PERDIX_INSTRUMENTED)
  target_compile_definitions(perdix_options INTERFACE PERDIX_INSTRUMENTED)
endif()
# For what is neither the library nor a program that computes a lot: it may compile faster instead.
target_compile_options(perdix_options INTERFACE
  "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:PERDIX_COMPUTES>>>:${PERDIX_OUTER_OPTIONS}>")

# For what runs for a moment in a build that is otherwise fully optimised: command lines, reports.
set(PERDIX_BRIEF_OPTIONS "")
if(CMAKE_CXX_FLAGS_RELEASE MATCHES "-O[23]")
  set(PERDIX_BRIEF_OPTIONS "$<$<CONFIG:Release>:-O1>")
endif()
target_link_libraries(perdix_options INTERFACE fmt::fmt)
target_include_directories(perdix_options INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)

# Headers that nearly every source includes; compiled once where sources are compiled in batches.
set(PERDIX_COMMON_HEADERS <algorithm> <atomic> <filesystem> <fstream> <functional> <map> <memory>
  <mutex> <optional> <sstream> <string> <thread> <unordered_map> <vector> <fmt/format.h>)
if(CMAKE_UNITY_BUILD)
  file(CONFIGURE OUTPUT layer_header.cc CONTENT "namespace perdix {}\n")
  add_library(perdix_layer_header OBJECT ${CMAKE_CURRENT_BINARY_DIR}/layer_header.cc)
  set_target_properties(perdix_layer_header PROPERTIES PERDIX_COMPUTES ON)
  target_link_libraries(perdix_layer_header PRIVATE perdix_options)
  target_compile_options(perdix_layer_header PRIVATE ${PERDIX_LAYER_COVERAGE})
  target_precompile_headers(perdix_layer_header PRIVATE ${PERDIX_COMMON_HEADERS})
endif()

# --- Layers ---------------------------------------------------------------------------------------

# perdix_add_engine(name)
# Adds the folder of an engine, unless another engine that is made of it has done so.
function(perdix_add_engine name)
  if(NOT TARGET perdix_index_${name})
    add_subdirectory("${PROJECT_SOURCE_DIR}/src/index/${name}"
      "${PROJECT_BINARY_DIR}/src/index/${name}")
  endif()
endfunction()

# perdix_layer(name [SOURCES file...] [DEPS layer...] [LIBS target...])
# One layer of src/: an object library that becomes part of the library `perdix`. A layer may use
# only the layers in DEPS. A layer without SOURCES consists of headers.
function(perdix_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  foreach(dep ${ARG_DEPS})
    if(dep MATCHES "^index_(.+)$")
      perdix_add_engine(${CMAKE_MATCH_1})
    endif()
  endforeach()
  list(TRANSFORM ARG_DEPS PREPEND perdix_)
  if(ARG_SOURCES)
    add_library(perdix_${name} OBJECT ${ARG_SOURCES})
    set_target_properties(perdix_${name} PROPERTIES PERDIX_COMPUTES ON)
    target_compile_options(perdix_${name} PRIVATE ${PERDIX_LAYER_COVERAGE})
    if(CMAKE_UNITY_BUILD)
      target_precompile_headers(perdix_${name} REUSE_FROM perdix_layer_header)
    endif()
    target_link_libraries(perdix_${name} PRIVATE perdix_options PUBLIC ${ARG_DEPS} ${ARG_LIBS})
    set_property(GLOBAL APPEND PROPERTY PERDIX_LAYERS perdix_${name})
  else()
    add_library(perdix_${name} INTERFACE)
    target_link_libraries(perdix_${name} INTERFACE ${ARG_DEPS} ${ARG_LIBS})
  endif()
  set_property(GLOBAL APPEND PROPERTY PERDIX_LIBS ${ARG_LIBS})
endfunction()

# --- Tests ----------------------------------------------------------------------------------------

# Every test has one of these labels, which decides in which builds it runs (CONTRIBUTING.md,
# "Tests"). The target `tests-<label>` builds the programs of one label.
set(PERDIX_LABELS
  unit faults quick space conformance concurrency kill storm tool bench instrumented fuzz model
  tidy install valkey)
if(PERDIX_TESTS)
  foreach(label ${PERDIX_LABELS})
    add_custom_target(tests-${label})
  endforeach()
endif()

function(perdix_require_label name label)
  if(NOT label IN_LIST PERDIX_LABELS)
    message(FATAL_ERROR "test ${name}: unknown label '${label}', choose one of: ${PERDIX_LABELS}")
  endif()
endfunction()

# GoogleTest's header costs more to compile than most tests, so it is compiled once for all of them,
# with others that they all use. Files include them all the same.
if(PERDIX_TESTS)
  file(CONFIGURE OUTPUT test_header.cc CONTENT "int main() {}\n")
  add_executable(perdix_test_header ${CMAKE_CURRENT_BINARY_DIR}/test_header.cc)
  target_link_libraries(perdix_test_header PRIVATE perdix_options GTest::gtest)
  target_precompile_headers(perdix_test_header PRIVATE <gtest/gtest.h> ${PERDIX_COMMON_HEADERS})
endif()

# A test program whose running costs more than its compiling: it is optimised as the library is.
function(perdix_computes name)
  set_target_properties(${name} PROPERTIES PERDIX_COMPUTES ON)
endfunction()

# A compiled header only fits sources with the same options.
function(perdix_use_test_header name)
  get_target_property(computes ${name} PERDIX_COMPUTES)
  if(NOT computes OR NOT PERDIX_OUTER_OPTIONS)
    target_precompile_headers(${name} REUSE_FROM perdix_test_header)
  endif()
endfunction()

# perdix_unit_test(name SOURCES file... [DEPS layer...] [LIBS target...]
#                  [LABEL label] [TIMEOUT seconds] [COMPUTES] [LONG pattern...])
# A GoogleTest program that is linked with the whole library; its cases are registered with ctest
# under LABEL (default: unit). DEPS are the layers whose internal headers it includes. COMPUTES: see
# perdix_computes(). LONG are cases that the quick suite leaves out.
function(perdix_unit_test name)
  if(NOT PERDIX_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "COMPUTES" "LABEL;TIMEOUT" "SOURCES;DEPS;LIBS;LONG" ${ARGN})
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
  endif()
  perdix_require_label(${name} ${ARG_LABEL})
  add_executable(${name} ${ARG_SOURCES})
  foreach(dep ${ARG_DEPS})
    target_include_directories(${name} PRIVATE
      $<TARGET_PROPERTY:perdix_${dep},INTERFACE_INCLUDE_DIRECTORIES>)
  endforeach()
  target_link_libraries(${name} PRIVATE
    perdix_options perdix ${ARG_LIBS} GTest::gtest_main GTest::gmock)
  if(ARG_COMPUTES)
    perdix_computes(${name})
  endif()
  perdix_use_test_header(${name})
  add_dependencies(tests-${ARG_LABEL} ${name})
  if(PERDIX_QUICK)
    # In one process, which takes half the time. Keys of one kind with values of the other are a
    # mixture of what others have.
    list(JOIN ARG_LONG ":" long)
    add_test(NAME ${name}
      COMMAND ${name} --gtest_brief=1 "--gtest_filter=-${long}:*u64_bytes*:*bytes_u64*")
    set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 1200)
  else()
    gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
      PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
  endif()
endfunction()

# perdix_command_test(name LABEL label COMMAND command... [TIMEOUT seconds] [SECONDS seconds]
#                     [BUILDS target...])
# A test that is a command; it passes if the command returns 0. BUILDS are the programs that it
# runs. SECONDS says about how long it takes on an idle machine, for those that take long: they
# begin first, so that none of them is left alone at the end. TIMEOUT is ten times that by default,
# and at least 600: it finds what hangs, and is no bound on how slow a busy machine may be.
function(perdix_command_test name)
  if(NOT PERDIX_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT;SECONDS" "COMMAND;BUILDS" ${ARGN})
  if(NOT ARG_SECONDS)
    set(ARG_SECONDS 1)
  endif()
  if(NOT ARG_TIMEOUT)
    math(EXPR ARG_TIMEOUT "10 * ${ARG_SECONDS}")
    if(ARG_TIMEOUT LESS 600)
      set(ARG_TIMEOUT 600)
    endif()
  endif()
  perdix_require_label(${name} "${ARG_LABEL}")
  add_test(NAME ${name} COMMAND ${ARG_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT}
    COST ${ARG_SECONDS})
  if(ARG_BUILDS)
    add_dependencies(tests-${ARG_LABEL} ${ARG_BUILDS})
  endif()
endfunction()
