#include "index/cceh/directory.h"

#include <mutex>

namespace perdix::detail::index::cceh {

/// The leader at an entry, as it is when its change is complete: not pending.
Entry Directory::checked_leader(const View& all, std::uint64_t number) const {
  const Entry leader = Entry::unpack(pm::load(all.entries[number]));
  if (leader.depth() > all.depth || number % all.span_of(leader.depth()) != 0)
    pool::throw_corrupt(pool_, "a segment", leader.offset());
  return checked(leader.settled());
}

/// The number of the leader of a hash. A range that has no leader of its depth at its beginning is
/// split, and each of its halves begins with a leader.
std::uint64_t Directory::leader_from_top(const View& all, KeyHash hash) const {
  for (unsigned depth = 0;; ++depth) {
    const std::uint64_t number = all.first_of(hash.prefix(all.depth), depth);
    const Entry entry = Entry::unpack(pm::load(all.entries[number]));
    if (entry.depth() == depth) return number;
    if (entry.depth() < depth || depth == all.depth)
      pool::throw_corrupt(pool_, "a segment", entry.offset());
  }
}

/// find() for a hash whose entry is pending or stale: waits for the change that is under way, or
/// completes the one that a crash has interrupted.
[[gnu::noinline]] auto Directory::find_from_top(KeyHash hash) const -> Place {
  pm::on_step("cceh: an entry is stale");
  const std::lock_guard lock(lock_);
  const std::uint64_t word = pm::load(root_.directory);
  const View all = view(word);
  const std::uint64_t number = leader_from_top(all, hash);
  const Entry leader = checked_leader(all, number);
  store_entries(all, number, leader);
  return {leader, &all.entries[number], word};
}

void Directory::open_copy(std::uint64_t budget) {
  copy_.emplace(pool_.reclaimer(), budget);
  copy_->resize(depth());
}

/// find() for a hash that the copy does not know. Copies the leader under the lock, so that only
/// durable entries are copied.
[[gnu::noinline]] auto Directory::find_and_copy(KeyHash hash) const -> Place {
  const Place place = find_in_pool(hash);
  if (!copy_->has_entries()) return place;
  const std::lock_guard lock(lock_);
  const View all = view(pm::load(root_.directory));
  const std::uint64_t number = leader_from_top(all, hash);
  set_in_copy(number, checked_leader(all, number));
  return place;
}

/// Stores a leader, not pending, at its place and in the entries behind it. Only flushed: until the
/// thread's next fence a crash leaves stale entries, which H3 allows.
void Directory::store_entries(const View& all, std::uint64_t first, Entry leader) const {
  const std::uint64_t count = all.span_of(leader.depth());
  for (std::uint64_t i = first; i < first + count; ++i) {
    if (pm::load(all.entries[i]) != leader.pack()) pool_.pm().store(all.entries[i], leader.pack());
  }
  // Unfenced: stale entries do no harm.
  pool_.pm().flush(&all.entries[first], count * sizeof(std::uint64_t));
}

bool Directory::may_exceed(unsigned depth) const {
  constexpr std::uint64_t kLeast = std::uint64_t{1} << 12, kShare = 8;
  const std::uint64_t bytes = std::uint64_t{16} << depth;
  return depth < this->depth() ||
         (depth < kMaxDepth && (bytes <= kLeast || bytes <= pool_.size() / kShare));
}

void Directory::grow(unsigned depth) {
  const pm::Persister& pm = pool_.pm();
  alloc::Session session = pool_.allocator().session();
  const Reference larger{session.reserve(std::uint64_t{16} << depth), depth + 1};
  const std::lock_guard lock(lock_);
  const std::uint64_t word = pm::load(root_.directory);
  const View old = view(word);
  if (old.depth > depth) return;  // another thread was first
  std::uint64_t* const entries = pool_.at<std::uint64_t>(larger.offset);
  for (std::uint64_t i = 0; i < old.size();) {
    const Entry leader = checked_leader(old, i);
    const std::uint64_t count = old.span_of(leader.depth());
    for (std::uint64_t j = 2 * i; j < 2 * (i + count); ++j) pm.store(entries[j], leader.pack());
    i += count;
  }
  pm.flush(entries, 2 * old.size() * sizeof *entries);  // durable before the commit, by its fence
  session.free(Reference::unpack(word).offset);
  session.commit(pm::set_word(root_.directory, larger.pack()));
  if (copy_) copy_->resize(depth + 1);
}

void Directory::commit_change(alloc::Session& session, HashRange range, Entry first, Entry middle) {
  const std::lock_guard lock(lock_);
  const View all = view(pm::load(root_.directory));
  const std::uint64_t begin = range.first().prefix(all.depth);
  const std::uint64_t half = all.span_of(range.depth + 1);
  // Before a split commits the entry in the middle is no leader yet, and after a join none any
  // more. Pending, it is not taken for one (H3). Durable before the commit, by its fence.
  pool_.pm().store(all.entries[begin + half], middle.as_pending().pack());
  pool_.pm().flush(&all.entries[begin + half], sizeof(std::uint64_t));
  // The leader is pending, so a thread that sees the change before it is durable waits for the
  // lock.
  session.commit(pm::set_word(all.entries[begin], first.as_pending().pack()));
  pm::on_step("cceh: a change of the directory is committed");
  store_entries(all, begin, first);
  if (first.depth() > range.depth) store_entries(all, begin + half, middle);
  // Before the latches are released (D1).
  set_in_copy(begin, first);
  if (first.depth() > range.depth) set_in_copy(begin + half, middle);
}

void Directory::commit_replacement(alloc::Session& session, HashRange range, Entry entry) {
  const std::lock_guard lock(lock_);
  const View all = view(pm::load(root_.directory));
  const std::uint64_t begin = range.first().prefix(all.depth);
  session.commit(pm::set_word(all.entries[begin], entry.as_pending().pack()));
  store_entries(all, begin, entry);
  set_in_copy(begin, entry);
}

void Directory::mark_crowded(HashRange range, Entry leader) {
  const std::lock_guard lock(lock_);
  const View all = view(pm::load(root_.directory));
  const std::uint64_t begin = range.first().prefix(all.depth);
  const Entry entry = leader.as_crowded();
  pool_.pm().publish(all.entries[begin], entry.pack());  // before the overflow can hold a pair
  store_entries(all, begin, entry);
  set_in_copy(begin, entry);
}

bool Directory::sound_entry(std::uint64_t number) const {
  const View all = view(pm::load(root_.directory));
  const Entry entry = Entry::unpack(pm::load(all.entries[number]));
  if (entry.pending() || entry.depth() > all.depth) return entry.pending();
  if (all.first_of(number, entry.depth()) != number) return true;
  const KeyHash hash{all.depth == 0 ? 0 : number << (64 - all.depth)};
  if (leader_from_top(all, hash) != number) return false;
  const DirectoryCopy::Found copied = copy_ ? copy_->find(hash) : DirectoryCopy::Found{};
  return copied.word == nullptr || copied.entry == entry;
}

}  // namespace perdix::detail::index::cceh
