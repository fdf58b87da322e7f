// The parts of opening that do not depend on the types of keys: the root block, its creation and
// its shape; and the checks of what was read from PM, which is not trusted.
#include "index/cceh/recovery.h"

#include <algorithm>

#include <fmt/format.h>

#include <perdix/error.h>

#include "index/cceh/options.h"
#include "index/common/hash_seed.h"
#include "pool/checked.h"

namespace perdix::detail::index::cceh {
namespace {

constexpr unsigned kMaxOverflow = 40;

bool is_possible(const Shape& shape) {
  const std::uint64_t bytes = (std::uint64_t{shape.buckets} + 1) * pm::kLineSize;
  return bytes >= kMinSegmentBytes && bytes <= kMaxSegmentBytes &&
         shape.lazy_depth <= kMaxLazyDepth;
}

/// Makes a root block, a directory of one entry and a segment without pairs. The root word is the
/// commit.
void create(pool::PoolCore& pool, std::uint64_t& word, const Shape& shape) {
  const pm::Persister& pm = pool.pm();
  alloc::Session session = pool.allocator().session();
  const pm::Offset root = session.reserve(sizeof(Root));
  const pm::Offset directory = session.reserve(sizeof(std::uint64_t));
  const pm::Offset segment = session.reserve(shape.segment_bytes());
  const SegmentHead head{SegmentHead::kMagic, 0, 0, {}};
  const std::uint64_t leader = Entry{segment, 0}.pack();
  const Root made{Root::kMagic,
                  shape.buckets,
                  shape.lazy_depth,
                  Reference{directory, 0}.pack(),
                  0,
                  {0, 0},
                  0,
                  shape.seed != 0 ? shape.seed : draw_hash_seed()};
  pm.zero(pool.at<char>(segment), shape.segment_bytes());
  pm.copy(pool.at<char>(segment), &head, sizeof head);
  pm.copy(pool.at<char>(directory), &leader, sizeof leader);
  pm.copy(pool.at<char>(root), &made, sizeof made);
  // All three are durable before the commit, by its fence.
  pm.flush(pool.at<char>(segment), shape.segment_bytes());
  pm.flush(pool.at<char>(directory), sizeof leader);
  pm.flush(pool.at<char>(root), sizeof made);
  session.commit(pm::set_word(word, root));
}

}  // namespace

Shape shape_from(const CcehOptions& options) {
  return {options.segment_bytes / static_cast<unsigned>(pm::kLineSize) - 1, options.lazy_depth};
}

Root& open_root(pool::PoolCore& pool, std::uint64_t& word, const Shape& shape) {
  if (pm::load(word) == pm::kNull) create(pool, word, shape);
  Root& root = checked_root(pool, pm::load(word));
  if (pm::load(root.magic) == Root::kMagic) return root;
  throw Error(Errc::older_format,
              fmt::format("{}: an index of the engine 'cceh' has the format of an earlier release, "
                          "which is not read any more: dump it by that release, and load it into "
                          "a new index",
                          pool.path().string()));
}

Root& checked_root(pool::PoolCore& pool, pm::Offset offset) {
  const auto is_root = [](const Root& root) {
    const std::uint64_t magic = pm::load(root.magic);
    return magic == Root::kMagic
               ? pm::load(root.seed) != 0
               : std::ranges::find(Root::kFormerMagics, magic) != Root::kFormerMagics.end();
  };
  return pool::checked<Root>(pool, offset, "a root", is_root, pm::kLineSize);
}

Shape shape_of(const pool::PoolCore& pool, const Root& root) {
  const Shape shape{root.buckets, root.lazy_depth, root.seed};
  if (!is_possible(shape)) pool::throw_corrupt(pool, "a root", pool.offset(&root));
  return shape;
}

std::span<Pair> checked_overflow(const pool::PoolCore& pool, Reference overflow) {
  if (overflow.log > kMaxOverflow || overflow.offset % sizeof(Pair) != 0 ||
      !pool.contains(overflow.offset, sizeof(Pair) << overflow.log))
    pool::throw_corrupt(pool, "an overflow", overflow.offset);
  return {pool.at<Pair>(overflow.offset), std::size_t{1} << overflow.log};
}

}  // namespace perdix::detail::index::cceh
