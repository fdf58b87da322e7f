#include "pm/processor.h"

#include <cpuid.h>

#include <perdix/error.h>

namespace perdix::detail::pm {
namespace {

enum Register : unsigned { kEax, kEbx, kEcx, kEdx };

/// Where CPUID says that an extension is there, in the order of Extension, and which states the
/// operating system must save for it (XCR0).
struct CpuidBit {
  const char* name;
  unsigned leaf, subleaf;
  Register in;
  unsigned bit;
  unsigned states;
};

constexpr unsigned kYmm = 0x06, kZmm = 0xe6;  // with those of SSE
constexpr unsigned kAmd = 0x8000'0001;        // the leaf with what AMD has added

constexpr CpuidBit kRows[] = {
    {"CMPXCHG16B", 1, 0, kEcx, 13, 0},
    {"LAHF/SAHF", kAmd, 0, kEcx, 0, 0},
    {"POPCNT", 1, 0, kEcx, 23, 0},
    {"SSE3", 1, 0, kEcx, 0, 0},
    {"SSSE3", 1, 0, kEcx, 9, 0},
    {"SSE4.1", 1, 0, kEcx, 19, 0},
    {"SSE4.2", 1, 0, kEcx, 20, 0},
    {"MOVBE", 1, 0, kEcx, 22, 0},
    {"LZCNT", kAmd, 0, kEcx, 5, 0},
    {"BMI", 7, 0, kEbx, 3, 0},
    {"BMI2", 7, 0, kEbx, 8, 0},
    {"F16C", 1, 0, kEcx, 29, kYmm},
    {"FMA", 1, 0, kEcx, 12, kYmm},
    {"FMA4", kAmd, 0, kEcx, 16, kYmm},
    {"XOP", kAmd, 0, kEcx, 11, kYmm},
    {"TBM", kAmd, 0, kEcx, 21, 0},
    {"GFNI", 7, 0, kEcx, 8, 0},
    {"AVX", 1, 0, kEcx, 28, kYmm},
    {"AVX2", 7, 0, kEbx, 5, kYmm},
    {"AVX-VNNI", 7, 1, kEax, 4, kYmm},
    {"AVX512F", 7, 0, kEbx, 16, kZmm},
    {"AVX512BW", 7, 0, kEbx, 30, kZmm},
    {"AVX512CD", 7, 0, kEbx, 28, kZmm},
    {"AVX512DQ", 7, 0, kEbx, 17, kZmm},
    {"AVX512VL", 7, 0, kEbx, 31, kZmm},
    {"AVX512-IFMA", 7, 0, kEbx, 21, kZmm},
    {"AVX512-VBMI", 7, 0, kEcx, 1, kZmm},
    {"AVX512-VBMI2", 7, 0, kEcx, 6, kZmm},
    {"AVX512-VNNI", 7, 0, kEcx, 11, kZmm},
    {"AVX512-BITALG", 7, 0, kEcx, 12, kZmm},
    {"AVX512-VPOPCNTDQ", 7, 0, kEcx, 14, kZmm},
    {"AVX512-BF16", 7, 1, kEax, 5, kZmm},
    {"AVX512-FP16", 7, 0, kEdx, 23, kZmm},
};
static_assert(sizeof kRows / sizeof kRows[0] == kExtensionCount && kExtensionCount <= 64);

constexpr unsigned longest_name() {
  unsigned longest = 0;
  for (const CpuidBit& row : kRows) {
    unsigned size = 0;
    while (row.name[size] != '\0') ++size;
    if (size > longest) longest = size;
  }
  return longest;
}

constexpr char kBegin[] = "this processor lacks ";
constexpr char kEnd[] =
    ", which perdix was compiled to use: build perdix with -DPERDIX_MARCH=x86-64-v2 for most "
    "machines, or here with -DPERDIX_MARCH=native";
constexpr unsigned kMaxNames = 20;  // at most so many are named
static_assert(sizeof kBegin + kMaxNames * (longest_name() + 2) + sizeof "others" + sizeof kEnd <=
              Sentence::kMaxSize);

bool reads_leaf(unsigned leaf, unsigned subleaf, unsigned (&registers)[4]) {
  return __get_cpuid_count(leaf, subleaf, &registers[kEax], &registers[kEbx], &registers[kEcx],
                           &registers[kEdx]) != 0;
}

/// XCR0: what the operating system saves of a thread. None if it does not say.
unsigned saved_states() {
  constexpr unsigned kOsxsaveBit = 1u << 27;
  unsigned registers[4];
  if (!reads_leaf(1, 0, registers) || (registers[kEcx] & kOsxsaveBit) == 0) return 0;
  unsigned low, high;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

char* append(char* to, const char* text) {
  while (*text != '\0') *to++ = *text++;
  return to;
}

char* append_names(char* to, Extensions missing) {
  unsigned named = 0;
  for (unsigned i = 0; missing != 0; ++i, missing >>= 1) {
    if ((missing & 1) == 0) continue;
    if (named > 0) to = append(to, ", ");
    if (named++ == kMaxNames) return append(to, "others");
    to = append(to, kRows[i].name);
  }
  return to;
}

}  // namespace

Extensions processor_extensions() noexcept {
  const unsigned saved = saved_states();
  Extensions found = 0;
  for (unsigned i = 0; i < kExtensionCount; ++i) {
    const CpuidBit& row = kRows[i];
    unsigned registers[4];
    if (!reads_leaf(row.leaf, row.subleaf, registers)) continue;
    if ((registers[row.in] >> row.bit & 1) != 0 && (row.states & ~saved) == 0)
      found |= Extensions{1} << i;
  }
  return found;
}

bool has_extensions(Extensions needed, Extensions there, Sentence& missing) noexcept {
  if ((needed & ~there) == 0) return true;
  char* end = append(missing.text, kBegin);
  end = append_names(end, needed & ~there);
  *append(end, kEnd) = '\0';
  return false;
}

void require_processor() {
  Sentence missing;
  if (has_extensions(kCompiledExtensions, processor_extensions(), missing)) return;
  throw Error(Errc::unsupported, missing.text);
}

}  // namespace perdix::detail::pm
