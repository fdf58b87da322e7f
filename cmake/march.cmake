# The instruction set that is compiled for: PERDIX_MARCH, for all code, and PERDIX_BASELINE, an
# option for the sources that run on any processor of the target (perdix_baseline()).
#
# The default runs on all processors since about 2009. Nothing is chosen at run time; the code for
# AVX-512 in src/util is used where PERDIX_MARCH has it. For targets other than x86-64 the default
# is the compiler's: `native` would be the machine that builds.
include(CheckCXXCompilerFlag)

set(default_march "")
set(PERDIX_BASELINE "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(default_march "x86-64-v2")
  set(PERDIX_BASELINE "-march=x86-64")
endif()
set(PERDIX_MARCH "${default_march}" CACHE STRING
  "Instruction set for -march: x86-64-v2, x86-64-v3, native, ...; empty for the compiler's default")

if(PERDIX_MARCH)
  string(MAKE_C_IDENTIFIER "PERDIX_HAS_MARCH_${PERDIX_MARCH}" has_march)
  check_cxx_compiler_flag("-march=${PERDIX_MARCH}" ${has_march})
  if(NOT ${has_march})
    message(FATAL_ERROR "PERDIX_MARCH=${PERDIX_MARCH}: ${CMAKE_CXX_COMPILER} knows no such "
      "instruction set for ${CMAKE_SYSTEM_PROCESSOR}. Choose one that its -march takes, native for "
      "the machine that builds, or leave it empty for the compiler's default "
      "(-DPERDIX_MARCH=).")
  endif()
endif()
