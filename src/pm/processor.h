// Whether this processor has the instructions that the library was compiled to use.
//
// The question must be asked before any of them runs. So processor.cc, and the files that ask
// (perdix_baseline() in CMake), are compiled for every x86-64, and until the answer they call only
// functions of such files: none that other objects have too, such as templates, of which the linker
// may take a copy with wider instructions. What was compiled into the others is data. (An Error is
// thrown by functions that others may have: they copy a string by memcpy, and have no loops.)
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace perdix::detail::pm {

/// The extensions of x86-64 that compilers use without being told to by an intrinsic.
enum class Extension : unsigned {
  cx16,  ///< word_pair.h needs it everywhere
  lahf_sahf,
  popcnt,
  sse3,
  ssse3,
  sse4_1,
  sse4_2,
  movbe,
  lzcnt,
  bmi,
  bmi2,
  f16c,
  fma,
  fma4,
  xop,
  tbm,
  gfni,
  avx,
  avx2,
  avx_vnni,
  avx512f,
  avx512bw,
  avx512cd,
  avx512dq,
  avx512vl,
  avx512ifma,
  avx512vbmi,
  avx512vbmi2,
  avx512vnni,
  avx512bitalg,
  avx512vpopcntdq,
  avx512bf16,
  avx512fp16,
};
inline constexpr unsigned kExtensionCount = static_cast<unsigned>(Extension::avx512fp16) + 1;

/// A set of extensions: bit i is Extension i.
using Extensions = std::uint64_t;

constexpr Extensions set_of(Extension extension) {
  return Extensions{1} << static_cast<unsigned>(extension);
}

/// Extensions that the layers were compiled to use.
extern const Extensions kCompiledExtensions;

/// Extensions that this processor has, and its operating system saves for programs.
Extensions processor_extensions() noexcept;

/// A sentence without memory of its own.
struct Sentence {
  static constexpr std::size_t kMaxSize = 600;
  char text[kMaxSize];
};

/// Returns whether `needed` are all there; if not, says which are missing and what to do.
bool has_extensions(Extensions needed, Extensions there, Sentence& missing) noexcept;

/// Throws unsupported if this processor can't run the library.
void require_processor();

}  // namespace perdix::detail::pm
