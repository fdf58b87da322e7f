# The two functions that every folder uses, and the compiler options that all code shares.

add_library(perdix_options INTERFACE)
target_compile_options(perdix_options INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Werror=return-type)
if(PERDIX_MARCH)
  target_compile_options(perdix_options INTERFACE -march=${PERDIX_MARCH})
endif()
if(PERDIX_INSTRUMENTED)
  target_compile_definitions(perdix_options INTERFACE PERDIX_INSTRUMENTED)
endif()
target_include_directories(perdix_options INTERFACE
  ${PROJECT_SOURCE_DIR}/src $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)

set_property(GLOBAL PROPERTY PERDIX_LAYERS "")

# perdix_layer(name [SOURCES file...] [DEPS layer...] [LIBS target...])
# One layer of src/: an object library that becomes part of the library `perdix`. A layer may use only the layers in DEPS.
function(perdix_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  list(TRANSFORM ARG_DEPS PREPEND perdix_)
  if(ARG_SOURCES)
    add_library(perdix_${name} OBJECT ${ARG_SOURCES})
    target_link_libraries(perdix_${name} PRIVATE perdix_options PUBLIC ${ARG_DEPS} ${ARG_LIBS})
    set_property(GLOBAL APPEND PROPERTY PERDIX_LAYERS perdix_${name})
    set_property(GLOBAL APPEND PROPERTY PERDIX_LIBS ${ARG_LIBS})
  else()
    add_library(perdix_${name} INTERFACE)
    target_link_libraries(perdix_${name} INTERFACE ${ARG_DEPS} ${ARG_LIBS})
    set_property(GLOBAL APPEND PROPERTY PERDIX_LIBS ${ARG_LIBS})
  endif()
endfunction()

# perdix_unit_test(name SOURCES file... [DEPS layer...] [LIBS target...])
# A GoogleTest program that is linked with the whole library; its cases are registered with ctest.
function(perdix_unit_test name)
  if(NOT PERDIX_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS;LIBS" ${ARGN})
  list(TRANSFORM ARG_DEPS PREPEND perdix_)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE perdix_options perdix ${ARG_LIBS} GTest::gtest_main GTest::gmock)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600)
endfunction()
