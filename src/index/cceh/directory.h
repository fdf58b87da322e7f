// The directory: which segment is responsible for a hash (H2, H3).
//
//   find(hash)                     the entry of a hash, as a Route
//   current(route)                 whether that still is the entry of the hash
//   commit_change, commit_replacement
//                                  commit a session by changing the segments of a range
//   may_exceed, grow               doubling
//
// Lookups read two entries, mostly of one line, and take no lock. Changes are made under the
// directory's lock, in three steps: the entry where a leader will be or was is marked as pending;
// the leader is stored, marked as pending, which is the commit; then both and the entries behind
// them are stored unmarked. A thread that meets a pending entry, or one that differs from its
// leader, waits for the lock, finds the leader from the top, and stores what a crash has kept from
// being stored. So no reader sees a change that is not durable, and a crash needs no repair when
// the index is opened.
//
// There may be a copy of the directory in DRAM (directory_copy.h), which lookups ask first.
//
// Thread-safe. The caller holds a Guard. The lock is taken last: after latches and Sessions.
#pragma once

#include <cstdint>
#include <optional>

#include "alloc/session.h"
#include "index/cceh/directory_copy.h"
#include "index/cceh/layout.h"
#include "index/cceh/shape.h"
#include "pm/access.h"
#include "pool/checked.h"
#include "pool/open_index.h"
#include "pool/pool_core.h"
#include "util/spin_lock.h"

namespace perdix::detail::index::cceh {

class Directory {
 public:
  /// The greatest depth of a directory.
  static constexpr unsigned kMaxDepth = 30;

  Directory(pool::PoolCore& pool, Root& root, const Shape& shape)
      : pool_(pool), root_(root), shape_(shape) {}

  /// The entry of a hash, and where it was found in PM.
  struct Place {
    Entry entry;
    const std::uint64_t* leader = nullptr;  ///< its leader
    std::uint64_t directory = 0;            ///< the word that led to the directory of the leader
  };
  /// The entry of a hash, found in the copy, or in PM if the copy does not know it.
  struct Route : Place {
    DirectoryCopy::Found copied = {};  ///< no word if it was found in PM
  };

  /// Makes a copy in DRAM of at most this many bytes, empty at first. No other thread uses the
  /// directory.
  void open_copy(std::uint64_t budget);

  bool has_copy() const { return copy_.has_value(); }

  /// The entry of the segment that is responsible for a hash. Throws corrupt.
  [[gnu::always_inline]] inline Place find_in_pool(KeyHash hash) const {
    const std::uint64_t word = pm::load(root_.directory);
    const View all = view(word);
    const std::uint64_t number = hash.prefix(all.depth);
    const Entry entry = Entry::unpack(pm::load(all.entries[number]));
    if (!entry.pending() && entry.depth() <= all.depth) [[likely]] {
      const std::uint64_t& leader = all.entries[all.first_of(number, entry.depth())];
      if (pm::load(leader) == entry.pack()) [[likely]]
        return {checked(entry), &leader, word};
    }
    return find_from_top(hash);
  }
  /// The entry of the segment that is responsible for a hash: asks the copy first, if there is one.
  /// Throws corrupt.
  Route find(KeyHash hash) const {
    if (!has_copy()) return {find_in_pool(hash)};
    const DirectoryCopy::Found found = copy_->find(hash);
    if (found.word == nullptr) [[unlikely]]
      return {find_and_copy(hash)};
    return {{found.entry}, found};
  }

  /// Whether a place's entry still is that of its hash. The leader is read first: it counts if its
  /// directory is current after that.
  [[gnu::always_inline]] inline bool current(const Place& place) const {
    return pm::load(*place.leader) == place.entry.pack() &&
           pm::load(root_.directory) == place.directory;
  }
  bool current(const Route& route) const {
    return route.copied.word != nullptr ? copy_->current(route.copied)
                                        : current(static_cast<const Place&>(route));
  }

  unsigned depth() const { return Reference::unpack(pm::load(root_.directory)).log; }

  /// Whether it may become deeper than `depth`. Its size is bounded by the pool's, since keys that
  /// hash alike could double it without end.
  bool may_exceed(unsigned depth) const;

  /// Makes it deeper than `depth`, unless it is. Throws out_of_space.
  void grow(unsigned depth);

  /// Commits a session by a split or a join: by changing the segments of the halves of `range`.
  /// After a split `first` and `middle` are the entries of the two halves. After a join `first` is
  /// that of the whole range, as its depth says, and `middle` what was that of the upper half. The
  /// caller holds the latches of the segments.
  void commit_change(alloc::Session& session, HashRange range, Entry first, Entry middle);

  /// Commits a session by putting another segment in the place of the one of `range`, whose latch
  /// the caller holds.
  void commit_replacement(alloc::Session& session, HashRange range, Entry entry);

  /// With the segment's latch: marks the leader of a range as crowded, durably.
  void mark_crowded(HashRange range, Entry leader);

  /// Whether an entry is as H3 says, and that of the copy as D1 (directory_copy.h). Writers are
  /// idle.
  bool sound_entry(std::uint64_t number) const;

  std::uint64_t bytes() const { return sizeof(std::uint64_t) << depth(); }
  std::uint64_t dram_bytes() const { return copy_ ? copy_->bytes() : 0; }

 private:
  /// The entries of one directory.
  struct View {
    std::uint64_t* entries = nullptr;
    unsigned depth = 0;

    std::uint64_t size() const { return std::uint64_t{1} << depth; }
    /// How many entries a leader of that depth decides: itself and those behind it.
    std::uint64_t span_of(unsigned of_depth) const {
      return std::uint64_t{1} << (depth - of_depth);
    }
    /// The number of the leader of an entry that has that depth.
    std::uint64_t first_of(std::uint64_t number, unsigned of_depth) const {
      return number & ~(span_of(of_depth) - 1);
    }
  };

  [[gnu::always_inline]] inline View view(std::uint64_t word) const {
    const Reference at = Reference::unpack(word);
    if (at.log > kMaxDepth || at.offset % alignof(std::uint64_t) != 0 ||
        !pool_.contains(at.offset, sizeof(std::uint64_t) << at.log)) [[unlikely]]
      pool::throw_corrupt(pool_, "a directory", at.offset);
    return {pool_.at<std::uint64_t>(at.offset), at.log};
  }
  [[gnu::always_inline]] inline Entry checked(Entry entry) const {
    if (entry.offset() == pm::kNull || entry.offset() % pm::kLineSize != 0 ||
        !pool_.contains(entry.offset(), shape_.segment_bytes())) [[unlikely]]
      pool::throw_corrupt(pool_, "a segment", entry.offset());
    return entry;
  }
  Entry checked_leader(const View& all, std::uint64_t number) const;
  Place find_from_top(KeyHash hash) const;
  Place find_and_copy(KeyHash hash) const;
  void set_in_copy(std::uint64_t first, Entry leader) const {
    if (copy_) copy_->set(first, leader);
  }
  std::uint64_t leader_from_top(const View& all, KeyHash hash) const;
  void store_entries(const View& all, std::uint64_t first, Entry leader) const;

  pool::PoolCore& pool_;
  Root& root_;
  const Shape shape_;
  mutable util::SpinLock lock_;
  mutable std::optional<DirectoryCopy> copy_;
};

}  // namespace perdix::detail::index::cceh
