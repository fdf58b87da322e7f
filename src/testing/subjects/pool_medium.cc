#include "testing/subjects/pool_medium.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "pool/layout.h"
#include "pool/superblock.h"

namespace perdix::testing {

void forget_uuid(std::byte* pool) {
  for (const pm::Offset offset : pool::kSuperblockOffset) {
    pool::Superblock superblock;
    std::memcpy(&superblock, pool + offset, sizeof superblock);
    std::fill(std::begin(superblock.uuid), std::end(superblock.uuid), std::uint8_t{0});
    superblock.checksum = pool::checksum_of(superblock);
    std::memcpy(pool + offset, &superblock, sizeof superblock);
  }
}

}  // namespace perdix::testing
