#include "index/elimda/shape.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "index/common/hash_seed.h"
#include "index/elimda/options.h"
#include "pool/checked.h"

namespace perdix::detail::index::elimda {
namespace {

bool is_power(std::uint64_t number) { return std::has_single_bit(number); }

bool possible(const Shape& shape) {
  const unsigned most = shape.logs_grow ? Shape::kMaxGrowingLogs : Shape::kMaxLogs;
  return is_power(shape.logs) && shape.logs <= most && is_power(shape.unit_pairs) &&
         shape.unit_pairs >= 4 && shape.unit_pairs <= Shape::kMaxUnitPairs &&
         is_power(shape.d_pairs) && shape.d_pairs >= shape.unit_pairs && is_power(shape.p_pairs) &&
         shape.p_pairs >= 2 * shape.d_pairs && shape.p_pairs >= kMinPmPairs &&
         shape.p_pairs <= kMaxPmPairs && shape.buckets >= 1 && shape.buckets <= 4096;
}

/// The first segment, without pairs, and a directory of one entry that leads to it. Flushed.
pm::Offset make_table(pool::PoolCore& pool, alloc::Session& session, const Shape& shape) {
  const pm::Offset segment = session.reserve(shape.segment_bytes());
  const pm::Offset directory = session.reserve(16);
  auto& head = *pool.at<SegmentHead>(segment);
  pool.pm().zero(&head, shape.segment_pairs_at());
  pool.pm().store(head.magic, SegmentHead::kMagic);
  auto& leader = *pool.at<std::uint64_t>(directory);
  pool.pm().store(leader, Reference{segment, 0}.pack());
  // Both are durable before the commit of the caller, by its fence.
  pool.pm().flush(&head, shape.segment_pairs_at());
  pool.pm().flush(&leader, sizeof leader);
  return directory;
}

/// A small pool has fewer collecting logs: they take at most a sixty-fourth of its greatest size.
Shape fit(Shape shape, std::uint64_t max_size) {
  constexpr unsigned kFewest = 4, kShare = 64;
  while (shape.logs > kFewest && shape.log_area_bytes(shape.logs) > max_size / kShare)
    shape.logs /= 2;
  return shape;
}

/// An index without pairs; the root word is the commit.
void create(pool::PoolCore& pool, std::uint64_t& word, const Shape& shape) {
  alloc::Session session = pool.allocator().session();
  const pm::Offset offset = session.reserve(sizeof(Root));
  const Root root{shape.logs_grow ? Root::kGrowingMagic : Root::kMagic,
                  shape.logs,
                  shape.unit_pairs,
                  shape.d_pairs,
                  shape.p_pairs,
                  shape.buckets,
                  0,
                  Reference{make_table(pool, session, shape), 0}.pack(),
                  pm::kNull,
                  pm::kNull,
                  shape.seed != 0 ? shape.seed : draw_hash_seed()};
  pool.pm().copy(pool.at<Root>(offset), &root, sizeof root);
  pool.pm().flush(pool.at<Root>(offset), sizeof root);  // durable before the commit
  session.commit(pm::set_word(word, offset));
}

}  // namespace

/// A pool that need not survive power failures lies in ordinary memory, or in pages of a file which
/// the system writes back in its own units; the journal of an ordinary file is written in sectors.
bool in_media_units(MediaUnits choice, const pool::PoolCore& pool) {
  if (choice != MediaUnits::detect) return choice == MediaUnits::always;
  switch (pool.pm().domain()) {
    case pm::Domain::cpu_cache: return pool.survives_power() || pool.dax();
    case pm::Domain::memory_controller: return true;
    case pm::Domain::page_cache: return false;
  }
  return true;
}

Shape shape_from(const ElimDaOptions& options) {
  Shape shape;
  shape.logs_grow = options.collecting_logs == 0;
  if (!shape.logs_grow) shape.logs = options.collecting_logs;
  shape.unit_pairs = options.media_unit / sizeof(Pair);
  shape.d_pairs = d_pairs_of(options);
  shape.p_pairs = p_pairs_of(options);
  shape.buckets = buckets_for(shape.p_pairs);
  assert(possible(shape));
  return shape;
}

Shape shape_of(const pool::PoolCore& pool, const Root& root) {
  const std::uint64_t magic = pm::load(root.magic);
  const Shape shape{root.logs,
                    root.unit_pairs,
                    root.d_pairs,
                    root.p_pairs,
                    root.segment_buckets,
                    root.seed,
                    magic == Root::kGrowingMagic || magic == Root::kSilentGrowingMagic};
  const bool known = shape.seed == 0
                         ? magic == Root::kUnseededMagic
                         : magic == Root::kMagic || magic == Root::kSilentMagic || shape.logs_grow;
  if (!known || !possible(shape)) pool::throw_corrupt(pool, "a root", pool.offset(&root));
  return shape;
}

bool logs_say_copying(const Root& root) {
  const std::uint64_t magic = pm::load(root.magic);
  return magic == Root::kMagic || magic == Root::kGrowingMagic;
}

/// One from before there were seeds stays as it is.
void let_logs_say_copying(const pool::PoolCore& pool, Root& root) {
  const std::uint64_t magic = pm::load(root.magic);
  // Durable before a log is copied: an opening then looks only at logs that say so.
  if (magic == Root::kSilentMagic) pool.pm().publish(root.magic, Root::kMagic);
  if (magic == Root::kSilentGrowingMagic) pool.pm().publish(root.magic, Root::kGrowingMagic);
}

Root& open_root(pool::PoolCore& pool, std::uint64_t& word, const Shape& shape) {
  if (pm::load(word) == pm::kNull) create(pool, word, fit(shape, pool.max_size()));
  return root_at(pool, pm::load(word));
}

Root& root_at(const pool::PoolCore& pool, pm::Offset offset) {
  if (!pool.contains(offset, sizeof(Root)) || offset % alignof(Root) != 0)
    pool::throw_corrupt(pool, "a root", offset);
  return *pool.at<Root>(offset);
}

}  // namespace perdix::detail::index::elimda
