#include "index/elimda/collecting_log.h"

#include <bit>
#include <memory>
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

/// Clears the dead bits of pair `from` and all behind it. They are flushed, and durable with the
/// log's next commit: so before the log counts a pair that an old bit would kill.
void CollectingLog::clear_dead(unsigned from) const {
  const pm::Persister& pm = set_->pool_.pm();
  for (unsigned i = from / 64 * 64; i < set_->shape_.unit_pairs; i += 64) {
    const std::uint64_t kept = i < from ? dead_bit(from) - 1 : 0;
    std::uint64_t& dead = dead_word(i);
    if ((pm::load(dead) & ~kept) == 0) continue;
    pm.store(dead, pm::load(dead) & kept);
    pm.flush(&dead, sizeof dead);  // the next commit fences
  }
}

void CollectingLog::begin_copy() const {
  auto head = LogWord::unpack(pm::load(word()));
  head.copying = true;
  set_->pool_.pm().store(word(), head.pack());
  set_->pool_.pm().flush(&word(), sizeof word());  // the caller fences
}

/// The commit is the store of the first word, by which the log has no pairs. It must be durable
/// before the copy's unit can be used again: from then on nothing in PM says that the log was
/// copied, and its pairs would count once more. Dead bits are cleared after the commit: they mean
/// nothing for pairs that the log does not count, and open() clears any that a crash leaves. A
/// fence is needed for this only with volatile caches, where drain_logs() empties the logs; nearly
/// always a later one follows.
void CollectingLog::reset() const {
  auto head = LogWord::unpack(pm::load(word()));
  head.count = 0;
  head.copying = false;
  ++head.number;
  set_->pool_.pm().publish(word(), head.pack());  // the commit
  clear_dead(0);
  LogLine& line = this->line();
  line.count = 0;
  for (unsigned i = 0; i < set_->shape_.unit_pairs; ++i) line.set_print(i, 0);
}

LogSet::LogSet(pool::PoolCore& pool, const Shape& shape, unsigned depth)
    : pool_(pool),
      shape_(shape),
      depth_(depth),
      head_words_(shape.log_head_words()),
      line_bytes_(line_bytes(shape)),
      lines_(std::size_t{count()} * line_bytes_ + kLine, std::byte{}) {
  const auto begin = reinterpret_cast<std::uintptr_t>(lines_.data());
  first_line_ = lines_.data() + (kLine - begin % kLine);
  for_each([](CollectingLog log) { ::new (&log.line()) LogLine; });
}

void LogSet::place(pm::Offset area) {
  heads_ = pool_.at<std::uint64_t>(area);
  pairs_ = pool_.at<Pair>(shape_.round_up(area + shape_.log_heads_bytes(count())));
}

void LogSet::open() {
  for_each([&](CollectingLog log) {
    const std::uint64_t found = pm::load(log.word());
    const auto head = LogWord::unpack(found);
    if (head.pack() != found || head.count > shape_.unit_pairs)
      pool::throw_corrupt(pool_, "a collecting log", pool_.offset(&log.word()));
    log.line().count = head.count;
    log.clear_dead(head.count);
  });
}

Reference CollectingLogs::area() const {
  const std::uint64_t word = pm::load(root_.log_area);
  return shape_.logs_grow ? Reference::unpack(word) : Reference{word, shape_.max_log_depth()};
}

std::uint64_t CollectingLogs::area_word(Reference area) const {
  return shape_.logs_grow ? area.pack() : area.offset;
}

/// Whole lines, so that the allocator aligns the area to a line.
pm::Offset CollectingLogs::reserve(alloc::Session& session, unsigned depth) const {
  return session.reserve((shape_.log_area_bytes(1u << depth) + kLine - 1) / kLine * kLine);
}

/// The new logs are empty, and the root's word links them. Logs are created only where a store is
/// durable once it is visible: so the commit's fence makes the heads durable, without a flush.
void CollectingLogs::create(unsigned segments) {
  const pm::Persister& pm = pool_.pm();
  const unsigned depth = shape_.log_depth_for(segments);
  alloc::Session session = pool_.allocator().session();
  const pm::Offset area = reserve(session, depth);
  pm.zero(pool_.at<std::uint64_t>(area), shape_.log_heads_bytes(1u << depth));
  session.commit(pm::set_word(root_.log_area, area_word({area, depth})));
}

void CollectingLogs::open() {
  const Reference at = area();
  if (at.depth > shape_.max_log_depth() ||
      !pool_.contains(at.offset, shape_.log_area_bytes(1u << at.depth)) || at.offset % kLine != 0)
    pool::throw_corrupt(pool_, "a log area", at.offset);
  auto set = std::make_unique<LogSet>(pool_, shape_, at.depth);
  set->place(at.offset);
  set->open();
  use(set.release());
}

}  // namespace perdix::detail::index::elimda
