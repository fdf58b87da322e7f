#include "wal/header.h"

#include <cstddef>

#include <fmt/format.h>

#include "pm/access.h"
#include "util/checksum.h"
#include "wal/owned_block.h"
#include "wal/record.h"

namespace perdix::detail::wal {
namespace {

std::uint64_t checksum_of(const Header& header) {
  pm::on_read(&header, offsetof(Header, checksum));
  return util::checksum(&header, offsetof(Header, checksum));
}

}  // namespace

void write_header(pool::PoolCore& pool, Header& header, std::uint64_t seed) {
  const pm::Persister& pm = pool.pm();
  pm.zero(&header, sizeof header);
  pm.store(header.magic, Header::kMagic);
  pm.store(header.seed, seed);
  pm.store(header.checksum, checksum_of(header));
  for (unsigned i = 0; i < kStripes; ++i) pm.store(header.stripes[i].start, first_position(i));
  pm.flush(&header, sizeof header);  // fenced by the log() of the session that links it
}

Header& checked_header(pool::PoolCore& pool, pm::Offset offset) {
  if (offset % alignof(Header) == 0 && pool.allocator().validate_block(offset, sizeof(Header))) {
    Header& header = *pool.at<Header>(offset);
    if (pm::load(header.magic) == Header::kMagic &&
        pm::load(header.checksum) == checksum_of(header)) {
      return header;
    }
  }
  throw_corrupt(pool, fmt::format("it has no header at offset {:#x}", offset));
}

}  // namespace perdix::detail::wal
