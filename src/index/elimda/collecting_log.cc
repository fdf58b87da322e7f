#include "index/elimda/collecting_log.h"

#include <new>

#include "pool/checked.h"

namespace perdix::detail::index::elimda {
namespace {

constexpr std::size_t kLine = 64;

std::size_t line_bytes(const Shape& shape) {
  const std::size_t bytes = sizeof(LogLine) + shape.unit_pairs * sizeof(LogLine::Print);
  return (bytes + kLine - 1) / kLine * kLine;
}

}  // namespace

CollectingLogs::CollectingLogs(pool::PoolCore& pool, Root& root, const Shape& shape)
    : pool_(pool), root_(root), shape_(shape), line_bytes_(line_bytes(shape)) {}

/// The new logs are empty, and the root's word links them. Logs are created only where a store is
/// durable once it is visible: so the commit's fence makes the heads durable, without a flush.
void CollectingLogs::create() {
  const pm::Persister& pm = pool_.pm();
  alloc::Session session = pool_.allocator().session();
  const pm::Offset area = session.reserve(shape_.log_area_bytes());
  auto* heads = pool_.at<std::uint64_t>(area);
  pm.zero(heads, shape_.log_heads_bytes());
  session.commit(pm::set_word(root_.log_area, area));
}

void CollectingLogs::open() {
  const pm::Offset area = pm::load(root_.log_area);
  if (!pool_.contains(area, shape_.log_area_bytes()) || area % kLine != 0)
    pool::throw_corrupt(pool_, "a log area", area);
  heads_ = pool_.at<std::uint64_t>(area);
  pairs_ = pool_.at<Pair>(pairs_at(area));
  lines_.resize(std::size_t{shape_.logs} * line_bytes_ + kLine, std::byte{});
  const auto begin = reinterpret_cast<std::uintptr_t>(lines_.data());
  first_line_ = lines_.data() + (kLine - begin % kLine);
  for (unsigned log = 0; log < shape_.logs; ++log) {
    const std::uint64_t found = pm::load(word(log));
    const auto head = LogWord::unpack(found);
    if (head.pack() != found || head.count > shape_.unit_pairs)
      pool::throw_corrupt(pool_, "a collecting log", pool_.offset(&word(log)));
    ::new (&line(log)) LogLine;
    line(log).count = head.count;
    clear_dead(log, head.count);
  }
}

/// Clears the dead bits of pair `from` and all behind it. They are flushed, and durable with the
/// log's next commit: so before the log counts a pair that an old bit would kill.
void CollectingLogs::clear_dead(unsigned log, unsigned from) {
  for (unsigned i = from / 64 * 64; i < shape_.unit_pairs; i += 64) {
    const std::uint64_t kept = i < from ? dead_bit(from) - 1 : 0;
    std::uint64_t& dead = dead_word(log, i);
    if ((pm::load(dead) & ~kept) == 0) continue;
    pool_.pm().store(dead, pm::load(dead) & kept);
    pool_.pm().flush(&dead, sizeof dead);  // the next commit fences
  }
}

/// The commit is the store of the first word, by which the log has no pairs. It must be durable
/// before the copy's unit can be used again: from then on nothing in PM says that the log was
/// copied, and its pairs would count once more. Dead bits are cleared after the commit: they mean
/// nothing for pairs that the log does not count, and open() clears any that a crash leaves. A
/// fence is needed for this only with volatile caches, where drain_logs() empties the logs; nearly
/// always a later one follows.
void CollectingLogs::reset(unsigned log) {
  const pm::Persister& pm = pool_.pm();
  auto word = LogWord::unpack(pm::load(this->word(log)));
  word.count = 0;
  ++word.number;
  pm.publish(this->word(log), word.pack());  // the commit
  clear_dead(log, 0);
  LogLine& line = this->line(log);
  line.count = 0;
  for (unsigned i = 0; i < shape_.unit_pairs; ++i) line.set_print(i, 0);
}

}  // namespace perdix::detail::index::elimda
