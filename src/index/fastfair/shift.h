// Failure-atomic shift (FAST, paper §3): an entry is added to a node's sorted array, or removed
// from it, by stores of eight bytes. After each store the node holds either the old or the new
// entries.
//
// It relies on F3: an entry counts if its key is not that of its right neighbour. So
//   S1. the value of an entry whose key equals that of its right neighbour may be anything;
//   S2. making an entry's key equal to its right neighbour's takes the entry away;
//   S3. changing the key of the left one of two equals adds an entry: its value must be right
//       before.
// A line may reach the medium with any prefix of the stores made to it. Inside a line the order of
// stores is therefore enough; where a store relies on one to another line, that line is persisted
// between them.
//
// docs/durability/fastfair.md explains every step. The caller holds the node's latch. A crash may
// leave copies in a node (layout.h, F3). An insert leaves them there. Before a removal, a split or
// a merge the caller removes them: remove_copies().
//
//   insert_entry, remove_entry    of an entry whose words own nothing
//   stage_insert, commit_insert, commit_of_insert
//                                 an insert whose commit is also that of a session
//   commit_of_removal, close_gap  a removal whose commit is also that of a session
//   insertion_changes, removal_changes
//                                 where several stores become durable together
#pragma once

#include <cstdint>

#include "index/fastfair/layout.h"
#include "pm/access.h"
#include "pm/persist.h"

namespace perdix::detail::index::fastfair {

inline Meta meta_of(const Node& node) { return Meta::unpack(pm::load(node.meta)); }

/// The node's first word with another number of entries.
inline std::uint64_t meta_with(const Node& node, unsigned count) {
  Meta meta = meta_of(node);
  meta.count = count;
  return meta.pack();
}

inline Entry load_entry(const Node& node, unsigned i) {
  return {pm::load(node.entries[i].key), pm::load(node.entries[i].value)};
}

/// The value first: whether the key counts with this value is decided by the key (S1, S3).
inline void store_entry(const pm::Persister& pm, Node& node, unsigned i, Entry entry) {
  pm.store(node.entries[i].value, entry.value);
  pm.store(node.entries[i].key, entry.key);
}

/// The store by which an operation commits.
struct Commit {
  std::uint64_t& word;
  std::uint64_t value;
};

/// An insert at position `at`, in two steps. The first writes behind the last entry, where no
/// thread reads. Then the caller must make earlier flushes durable, by a fence or by the
/// allocator's log. The second step ends with the commit. Cost: the lines from `at` to the end, and
/// the node's first; a fence for each.
void stage_insert(const pm::Persister& pm, Node& node, unsigned at, Entry entry);
void commit_insert(const pm::Persister& pm, Node& node, unsigned at, Entry entry);

/// The store that commits such an insert: the last one of commit_insert().
Commit commit_of_insert(Node& node, unsigned at, Entry entry);

/// Where pm.commits_as_one(): the stores of a whole insert, in their order (S1 to S3), of which a
/// crash leaves all or nothing.
pm::Changes insertion_changes(Node& node, unsigned at, Entry entry);

/// Where pm.commits_as_one(): the stores of a whole removal, from a node without copies.
pm::Changes removal_changes(Node& node, unsigned at);

/// The store that commits the removal of entry `at`. Then close_gap(at) follows, unless that was
/// the last entry. close_gap() makes the commit durable, so the caller persists it only if
/// something relies on it before.
Commit commit_of_removal(Node& node, unsigned at);

/// Whether an entry is a copy: its key equals its right neighbour's, so it does not count (F3).
bool is_copy(const Node& node, unsigned i);

/// Moves the entries behind entry `at`, which does not count, to the left over it. The node holds
/// the same after each store. The line of entry `at` is durable before another one changes. Cost:
/// as an insert.
void close_gap(const pm::Persister& pm, Node& node, unsigned at);

/// Removes the copies that crashes in the middle of shifts have left. Returns true if there were
/// any, so that entries have moved.
bool remove_copies(const pm::Persister& pm, Node& node);

/// A whole insert and a whole removal of an entry whose words own nothing.
void insert_entry(const pm::Persister& pm, Node& node, unsigned at, Entry entry);
void remove_entry(const pm::Persister& pm, Node& node, unsigned at);

}  // namespace perdix::detail::index::fastfair
