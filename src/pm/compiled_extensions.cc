// The extensions that the compiler may use in this file, which has the options of all layers.
#include "pm/processor.h"

namespace perdix::detail::pm {
namespace {

constexpr Extensions without_avx() {
  Extensions all = set_of(Extension::cx16);
#ifdef __LAHF_SAHF__
  all |= set_of(Extension::lahf_sahf);
#endif
#ifdef __POPCNT__
  all |= set_of(Extension::popcnt);
#endif
#ifdef __SSE3__
  all |= set_of(Extension::sse3);
#endif
#ifdef __SSSE3__
  all |= set_of(Extension::ssse3);
#endif
#ifdef __SSE4_1__
  all |= set_of(Extension::sse4_1);
#endif
#ifdef __SSE4_2__
  all |= set_of(Extension::sse4_2);
#endif
#ifdef __MOVBE__
  all |= set_of(Extension::movbe);
#endif
#ifdef __LZCNT__
  all |= set_of(Extension::lzcnt);
#endif
#ifdef __BMI__
  all |= set_of(Extension::bmi);
#endif
#ifdef __BMI2__
  all |= set_of(Extension::bmi2);
#endif
#ifdef __TBM__
  all |= set_of(Extension::tbm);
#endif
#ifdef __GFNI__
  all |= set_of(Extension::gfni);
#endif
  return all;
}

constexpr Extensions with_avx() {
  Extensions all = 0;
#ifdef __F16C__
  all |= set_of(Extension::f16c);
#endif
#ifdef __FMA__
  all |= set_of(Extension::fma);
#endif
#ifdef __FMA4__
  all |= set_of(Extension::fma4);
#endif
#ifdef __XOP__
  all |= set_of(Extension::xop);
#endif
#ifdef __AVX__
  all |= set_of(Extension::avx);
#endif
#ifdef __AVX2__
  all |= set_of(Extension::avx2);
#endif
#ifdef __AVXVNNI__
  all |= set_of(Extension::avx_vnni);
#endif
  return all;
}

constexpr Extensions with_avx512() {
  Extensions all = 0;
#ifdef __AVX512F__
  all |= set_of(Extension::avx512f);
#endif
#ifdef __AVX512BW__
  all |= set_of(Extension::avx512bw);
#endif
#ifdef __AVX512CD__
  all |= set_of(Extension::avx512cd);
#endif
#ifdef __AVX512DQ__
  all |= set_of(Extension::avx512dq);
#endif
#ifdef __AVX512VL__
  all |= set_of(Extension::avx512vl);
#endif
#ifdef __AVX512IFMA__
  all |= set_of(Extension::avx512ifma);
#endif
#ifdef __AVX512VBMI__
  all |= set_of(Extension::avx512vbmi);
#endif
#ifdef __AVX512VBMI2__
  all |= set_of(Extension::avx512vbmi2);
#endif
#ifdef __AVX512VNNI__
  all |= set_of(Extension::avx512vnni);
#endif
#ifdef __AVX512BITALG__
  all |= set_of(Extension::avx512bitalg);
#endif
#ifdef __AVX512VPOPCNTDQ__
  all |= set_of(Extension::avx512vpopcntdq);
#endif
#ifdef __AVX512BF16__
  all |= set_of(Extension::avx512bf16);
#endif
#ifdef __AVX512FP16__
  all |= set_of(Extension::avx512fp16);
#endif
  return all;
}

}  // namespace

constexpr Extensions kCompiledExtensions = without_avx() | with_avx() | with_avx512();

}  // namespace perdix::detail::pm
