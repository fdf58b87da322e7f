#include "index/elimda/chunk_lists.h"

#include "alloc/session.h"
#include "pm/change.h"
#include "pool/checked.h"

namespace perdix::detail::index::elimda {

pm::Offset ChunkLists::table() const {
  const auto at = Reference::unpack(pm::load(root_.chunks));
  if (at.depth == 0) return pm::kNull;
  if (at.depth > kMaxDepth || at.offset % 16 != 0 ||
      !pool_.contains(at.offset, table_bytes(at.depth)))
    pool::throw_corrupt(pool_, "the lists of chunks", at.offset);
  return at.offset;
}

std::uint64_t& ChunkLists::head(Region region) const {
  const pm::Offset lists = table();
  return lists == pm::kNull ? root_.chunks : pool_.at<std::uint64_t>(lists)[region];
}

void ChunkLists::deepen() const {
  const pm::Persister& pm = pool_.pm();
  const unsigned depth = this->depth();
  const pm::Offset old = table();
  alloc::Session session = pool_.allocator().session();
  const Reference larger{session.reserve(table_bytes(depth + 1)), depth + 1};
  auto* const words = pool_.at<std::uint64_t>(larger.offset);
  pm.zero(words, table_bytes(larger.depth));
  for (Region region = 1; region < 2u << depth; ++region)
    pm.store(words[region], pm::load(head(region)));
  pm.flush(words, table_bytes(larger.depth));  // durable before the commit, by its fence
  if (old != pm::kNull) session.free(old);
  session.commit(pm::set_word(root_.chunks, larger.pack()));
}

}  // namespace perdix::detail::index::elimda
