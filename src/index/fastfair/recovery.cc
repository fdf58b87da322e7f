#include "index/fastfair/recovery.h"

#include <perdix/error.h>

#include "alloc/session.h"
#include "index/common/retry.h"
#include "pm/access.h"

namespace perdix::detail::index::fastfair {

Head* head_at(const pool::PoolCore& pool, std::uint64_t word) {
  if (word == pm::kNull || word % kNodeAlignment != 0 || !pool.contains(word, sizeof(Head)))
    return nullptr;
  Head* const head = pool.at<Head>(word);
  return pm::load(head->magic) == Head::kMagic ? head : nullptr;
}

namespace {

/// A head in front of the root node, if there is one. The index's word is the commit.
void make_head(pool::PoolCore& pool, std::uint64_t& word) {
  const pm::Persister& pm = pool.pm();
  alloc::Session session = pool.allocator().session();
  const pm::Offset offset = session.reserve(sizeof(Head));
  const Head made{Head::kMagic, pm::load(word), pm::kNull, 0, {}};
  pm.copy(pool.at<char>(offset), &made, sizeof made);
  pm.flush(pool.at<char>(offset), sizeof made);  // durable before the commit, by its fence
  session.commit(pm::set_word(word, offset));
}

}  // namespace

std::uint64_t& root_word(pool::PoolCore& pool, std::uint64_t& word, bool buffers) {
  if (buffers && head_at(pool, pm::load(word)) == nullptr) {
    try {
      retry_when_full(pool, [&] { make_head(pool, word); });
    } catch (const Error& error) {
      // Without space the tree is opened without buffers.
      if (error.code() != Errc::out_of_space) throw;
    }
  }
  Head* const head = head_at(pool, pm::load(word));
  return head == nullptr ? word : head->root;
}

void create_first_leaf(pool::PoolCore& pool, std::uint64_t& root) {
  const pm::Persister& pm = pool.pm();
  alloc::Session session = pool.allocator().session();
  const pm::Offset offset = session.reserve(sizeof(Node));
  Node& leaf = *pool.at<Node>(offset);
  pm.store(leaf.meta, Meta{0, 0}.pack());
  pm.store(leaf.next, pm::kNull);
  pm.store(leaf.low, 0);
  pm.store(leaf.leftmost, pm::kNull);
  pm.flush(&leaf, offsetof(Node, entries));  // log() fences before the leaf can be linked
  session.commit_when(root, ~std::uint64_t{0}, offset);
  session.log();
  pm.store(root, offset);          // the commit
  pm.flush(&root, sizeof offset);  // finish() fences: nothing is freed (rule R3)
  session.finish();
}

}  // namespace perdix::detail::index::fastfair
