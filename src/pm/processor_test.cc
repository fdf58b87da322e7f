#include "pm/processor.h"

#include <string>

#include <gtest/gtest.h>

#include <perdix/error.h>

namespace perdix::detail::pm {
namespace {

constexpr Extensions kAll = (Extensions{1} << kExtensionCount) - 1;

Extensions without(Extension extension) { return kAll & ~set_of(extension); }

TEST(Processor, HasWhatThisTestWasCompiledFor) {
  EXPECT_NO_THROW(require_processor());
  EXPECT_NE(kCompiledExtensions, 0u);
}

TEST(Processor, HasWhatTheCompilerFindsInIt) {
  const Extensions found = processor_extensions();
  EXPECT_EQ((found & set_of(Extension::sse4_2)) != 0, __builtin_cpu_supports("sse4.2") != 0);
  EXPECT_EQ((found & set_of(Extension::popcnt)) != 0, __builtin_cpu_supports("popcnt") != 0);
  EXPECT_EQ((found & set_of(Extension::avx2)) != 0, __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ((found & set_of(Extension::bmi2)) != 0, __builtin_cpu_supports("bmi2") != 0);
  EXPECT_EQ((found & set_of(Extension::avx512vl)) != 0, __builtin_cpu_supports("avx512vl") != 0);
}

TEST(Processor, MayHaveMoreThanIsNeeded) {
  Sentence missing;
  EXPECT_TRUE(has_extensions(0, 0, missing));
  EXPECT_TRUE(has_extensions(set_of(Extension::sse3), kAll, missing));
}

TEST(Processor, IsRefusedForEachExtensionThatItLacks) {
  for (unsigned i = 0; i < kExtensionCount; ++i) {
    const auto lacking = static_cast<Extension>(i);
    Sentence missing;
    EXPECT_TRUE(has_extensions(without(lacking), without(lacking), missing)) << i;
    EXPECT_FALSE(has_extensions(set_of(lacking), without(lacking), missing)) << i;
  }
}

TEST(Processor, SaysWhatItLacksAndWhatToDo) {
  Sentence missing;
  const Extensions wide = set_of(Extension::avx2) | set_of(Extension::bmi2);
  ASSERT_FALSE(has_extensions(kAll, kAll & ~wide, missing));
  EXPECT_EQ(std::string(missing.text),
            "this processor lacks BMI2, AVX2, which perdix was compiled to use: build perdix with "
            "-DPERDIX_MARCH=x86-64-v2 for most machines, or here with -DPERDIX_MARCH=native");
}

TEST(Processor, NamesSomeOfManyThatItLacks) {
  Sentence missing;
  ASSERT_FALSE(has_extensions(kAll, 0, missing));
  const std::string text = missing.text;
  EXPECT_LT(text.size(), Sentence::kMaxSize);
  EXPECT_NE(text.find("AVX-VNNI, others, which"), std::string::npos) << text;
}

}  // namespace
}  // namespace perdix::detail::pm
