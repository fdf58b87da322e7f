#include "index/elimda/pm_table.h"

#include <algorithm>

#include "pool/checked.h"

namespace perdix::detail::index::elimda {

Reference PmTable::checked_directory() const {
  const Reference at = directory();
  if (at.depth > kMaxDepth || at.offset == pm::kNull || at.offset % 16 != 0 ||
      !pool_.contains(at.offset, std::uint64_t{8} << at.depth))
    pool::throw_corrupt(pool_, "a directory", at.offset);
  return at;
}

/// The entry of a leader. DRAM knows its prefix and depth; but the page of the root may have been
/// lost since, and then there is no directory, or one with too few entries.
std::uint64_t& PmTable::entry_of(std::uint64_t prefix, unsigned depth) const {
  const Reference at = checked_directory();
  if (depth > at.depth) pool::throw_corrupt(pool_, "a directory", at.offset);
  return entries(at)[prefix << (at.depth - depth)];
}

/// The leader at an entry, without a look at its segment. Of one that a drop has freed the offset
/// is kNull.
Reference PmTable::leader_at(Reference directory, std::uint64_t number) const {
  auto leader = Reference::unpack(pm::load(entries(directory)[number]));
  if (leader.offset == pm::kNull && leader.depth >= kGone) leader.depth -= kGone;
  if (leader.depth > directory.depth ||
      number % (std::uint64_t{1} << (directory.depth - leader.depth)) != 0)
    pool::throw_corrupt(pool_, "a segment", leader.offset);
  return leader;
}

/// The leader at an entry, with its segment, unless a drop has freed that.
Reference PmTable::checked_leader(Reference directory, std::uint64_t number) const {
  const Reference leader = leader_at(directory, number);
  const bool is_gone = leader.offset == pm::kNull &&
                       Reference::unpack(pm::load(entries(directory)[number])).depth >= kGone;
  const auto sound = [&](const SegmentHead& head) {
    return pm::load(head.magic) == SegmentHead::kMagic &&
           pool_.contains(leader.offset, shape_.segment_bytes());
  };
  if (!is_gone) pool::checked<SegmentHead>(pool_, leader.offset, "a segment", sound, pm::kLineSize);
  return leader;
}

void PmTable::require_segment(Reference leader) const {
  if (leader.offset == pm::kNull) pool::throw_corrupt(pool_, "a segment", leader.offset);
}

void PmTable::format_segment(pm::Offset segment, unsigned depth, std::uint64_t prefix) const {
  auto& head = *pool_.at<SegmentHead>(segment);
  pool_.pm().zero(&head, shape_.segment_pairs_at());
  pool_.pm().store(head.magic, SegmentHead::kMagic);
  pool_.pm().store(head.depth, depth);
  pool_.pm().store(head.prefix, prefix);
}

void PmTable::flush_head(pm::Offset segment) const {
  // Durable before the commit that links the segment, by its fence.
  pool_.pm().flush(pool_.at<SegmentHead>(segment), shape_.segment_pairs_at());
}

/// Leaders keep their order; the entries between them are never read.
void PmTable::double_directory() const {
  const pm::Persister& pm = pool_.pm();
  const Reference old = checked_directory();
  alloc::Session session = pool_.allocator().session();
  const Reference larger{session.reserve(std::uint64_t{16} << old.depth), old.depth + 1};
  for (std::uint64_t i = 0; i < std::uint64_t{1} << old.depth; ++i) {
    pm.store(entries(larger)[2 * i], pm::load(entries(old)[i]));
    pm.store(entries(larger)[2 * i + 1], 0);
  }
  // Durable before the commit, by its fence.
  pm.flush(entries(larger), std::uint64_t{8} << larger.depth);
  session.free(old.offset);
  session.commit(pm::set_word(root_.directory, larger.pack()));
}

void PmTable::replace(alloc::Session& session, const Segment& old, pm::Offset left,
                      pm::Offset right, const Unlink& unlink) const {
  std::uint64_t& first = entry_of(old.prefix, old.depth);
  const unsigned depth = right == pm::kNull ? old.depth : old.depth + 1;
  if (right != pm::kNull) {
    // No leader before the commit: the old segment's leader covers it. In a small directory the two
    // entries are in one line, which the commit takes along: there nothing shows that this is
    // needed.
    std::uint64_t& leader = entry_of(2 * old.prefix + 1, depth);
    pool_.pm().store(leader, Reference{right, depth}.pack());
    pool_.pm().flush(&leader, sizeof leader);  // durable before the commit, by its fence
  }
  session.free(old.offset);
  session.commit(pm::set_word(first, Reference{left, depth}.pack()), unlink);
}

void PmTable::join(const Segment& left, const Segment& kept, const Segment& freed,
                   const Unlink& unlink) const {
  std::uint64_t& entry = entry_of(left.prefix, left.depth);
  alloc::Session session = pool_.allocator().session();
  session.free(freed.offset);
  session.commit(pm::set_word(entry, Reference{kept.offset, left.depth - 1}.pack()), unlink);
}

/// Halves the directory as long as the leader at the beginning of the half has a greater depth:
/// there is a leader at the beginning of each.
std::uint64_t PmTable::find_leader(Reference directory, KeyHash hash) const {
  std::uint64_t number = 0;
  Reference leader = leader_at(directory, number);
  for (unsigned depth = 0; depth < leader.depth; ++depth) {
    if (hash.bit(depth) == 0) continue;
    number |= std::uint64_t{1} << (directory.depth - depth - 1);
    leader = leader_at(directory, number);
  }
  return number;
}

Reference PmTable::leader_of(KeyHash hash) const {
  const Reference at = checked_directory();
  const Reference leader = checked_leader(at, find_leader(at, hash));
  require_segment(leader);
  return leader;
}

/// A segment of depth d has the share 2^-d of the hashes. So the mean of 2^d over hashes is the
/// number of segments.
unsigned PmTable::guess_segments() const {
  constexpr unsigned kSampleBits = 6;
  const Reference at = checked_directory();
  const unsigned bits = std::min(at.depth, kSampleBits);
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < std::uint64_t{1} << bits; ++i) {
    const KeyHash hash{bits == 0 ? 0 : i << (64 - bits)};
    sum += std::uint64_t{1} << leader_at(at, find_leader(at, hash)).depth;
  }
  return static_cast<unsigned>(sum >> bits);
}

}  // namespace perdix::detail::index::elimda
