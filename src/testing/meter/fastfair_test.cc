// What write buffers save of an insert of FAST&FAIR (insert_traffic.h).
#include <cstdint>

#include <perdix/papers/fastfair.h>

#include "testing/meter/insert_traffic.h"

namespace perdix::testing {
namespace {

using Index = FastFair<std::uint64_t, std::uint64_t>;

TEST(FastFairTraffic, OfBuffers) {
  const Row none = measure<Index>("none", Technique::none);
  const Row in_place = measure<Index>("b", Technique::b);
  const Row out_of_place = measure<Index>("bo", Technique::bo);
  EXPECT_LE(in_place.media_written, none.media_written / 3);
  EXPECT_LE(out_of_place.media_written, none.media_written / 3);
  EXPECT_LE(out_of_place.fences, in_place.fences);
}

}  // namespace
}  // namespace perdix::testing
