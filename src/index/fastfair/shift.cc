#include "index/fastfair/shift.h"

#include <cassert>

#include "alloc/layout.h"

namespace perdix::detail::index::fastfair {
namespace {

constexpr std::uint64_t position_of(unsigned i) {
  return offsetof(Node, entries) + i * sizeof(Entry);
}

/// The value first, as in store_entry().
void set_entry(pm::Changes& changes, Node& node, unsigned i, Entry entry) {
  changes.set(node.entries[i].value, entry.value);
  changes.set(node.entries[i].key, entry.key);
}

static_assert(2 * kCapacity + 1 + 2 * alloc::kMaxBlocks <= pm::kMaxChanges,
              "a whole insert or removal, and the allocator's marks");

constexpr bool begins_line(unsigned i) { return position_of(i) % pm::kLineSize == 0; }
constexpr bool ends_line(unsigned i) { return begins_line(i + 1); }

}  // namespace

Commit commit_of_insert(Node& node, unsigned at, Entry entry) {
  const unsigned count = meta_of(node).count;
  if (at == count) return {node.meta, meta_with(node, count + 1)};
  return {node.entries[at].key, entry.key};
}

void stage_insert(const pm::Persister& pm, Node& node, unsigned at, Entry entry) {
  const unsigned count = meta_of(node).count;
  assert(count < kCapacity && at <= count);
  // Behind the last entry: no reader looks there. Durable before `count` can include it.
  store_entry(pm, node, count, at == count ? entry : load_entry(node, count - 1));
  pm.flush(&node.entries[count], sizeof(Entry));
}

void commit_insert(const pm::Persister& pm, Node& node, unsigned at, Entry entry) {
  const unsigned count = meta_of(node).count;
  // If it goes behind the last, this is the commit. Else the last entry and its copy are equal, and
  // the copy counts; durable before the last one is overwritten, or a crash could lose it.
  pm.publish(node.meta, meta_with(node, count + 1));
  if (at == count) return;
  for (unsigned i = count - 1; i > at; --i) {
    // Entries i and i + 1 are equal, so i is free (S1). Then i - 1 and i are equal.
    store_entry(pm, node, i, load_entry(node, i - 1));
    // Entry i - 1 is overwritten next, in another line: its copy must be durable before. Inside a
    // line the order of stores is enough, and the flush of the commit or of the line's end makes
    // them durable.
    if (begins_line(i)) pm.persist(&node.entries[i], sizeof(Entry));
  }
  pm.store(node.entries[at].value, entry.value);  // not persisted: the same line as the commit
  pm.publish(node.entries[at].key, entry.key);    // the commit (S3)
}

pm::Changes insertion_changes(Node& node, unsigned at, Entry entry) {
  const unsigned count = meta_of(node).count;
  assert(count < kCapacity && at <= count);
  pm::Changes changes;
  // From the right to the left, each entry before the one that it is a copy of.
  for (unsigned i = count; i > at; --i) {
    set_entry(changes, node, i, load_entry(node, i - 1));
    if (i == count) changes.set(node.meta, meta_with(node, count + 1));
  }
  set_entry(changes, node, at, entry);
  if (at == count) changes.set(node.meta, meta_with(node, count + 1));
  return changes;
}

pm::Changes removal_changes(Node& node, unsigned at) {
  const unsigned last = meta_of(node).count - 1;
  assert(at <= last);
  pm::Changes changes;
  for (unsigned i = at; i < last; ++i) {
    // The key comes first: it takes entry `at` away (S2), or takes the next one away, whose copy is
    // on its left by now.
    const Entry next = load_entry(node, i + 1);
    changes.set(node.entries[i].key, next.key);
    changes.set(node.entries[i].value, next.value);
  }
  changes.set(node.meta, meta_with(node, last));
  return changes;
}

Commit commit_of_removal(Node& node, unsigned at) {
  const unsigned count = meta_of(node).count;
  assert(at < count);
  if (at + 1 == count) return {node.meta, meta_with(node, at)};
  return {node.entries[at].key, pm::load(node.entries[at + 1].key)};
}

bool is_copy(const Node& node, unsigned i) {
  return i + 1 < meta_of(node).count &&
         pm::load(node.entries[i].key) == pm::load(node.entries[i + 1].key);
}

bool remove_copies(const pm::Persister& pm, Node& node) {
  bool moved = false;
  for (unsigned i = 0; i < meta_of(node).count;) {
    if (!is_copy(node, i)) {
      ++i;
    } else {
      close_gap(pm, node, i);
      moved = true;
    }
  }
  return moved;
}

void close_gap(const pm::Persister& pm, Node& node, unsigned at) {
  // removal_changes() begins by making entry `at` a copy, which it is here, and then does the same.
  if (pm.commits_as_one()) return pm.commit(removal_changes(node, at).all());
  const unsigned last = meta_of(node).count - 1;
  assert(at < last);
  for (unsigned i = at;; ++i) {
    // Equal keys, so i is free (S1). Then i and i + 1 are equal in both words.
    pm.store(node.entries[i].value, pm::load(node.entries[i + 1].value));
    if (i + 1 == last) {
      // Durable before `count` leaves only this one of the two.
      pm.persist(&node.entries[i], sizeof(Entry));
      break;
    }
    // From the next store on i counts (S2 takes i + 1 away). If i + 1 lies in another line, what
    // counts must be durable before.
    if (ends_line(i)) pm.persist(&node.entries[i], sizeof(Entry));
    pm.store(node.entries[i + 1].key, pm::load(node.entries[i + 2].key));
  }
  pm.publish(node.meta, meta_with(node, last));  // the last entry's copy has taken its place
}

void insert_entry(const pm::Persister& pm, Node& node, unsigned at, Entry entry) {
  if (pm.commits_as_one()) return pm.commit(insertion_changes(node, at, entry).all());
  stage_insert(pm, node, at, entry);
  pm.fence();  // the staged entry is durable before it is counted
  commit_insert(pm, node, at, entry);
}

void remove_entry(const pm::Persister& pm, Node& node, unsigned at) {
  if (pm.commits_as_one()) return pm.commit(removal_changes(node, at).all());
  const bool last = at + 1 == meta_of(node).count;
  const Commit commit = commit_of_removal(node, at);
  if (last) {
    pm.publish(commit.word, commit.value);  // the commit
    return;
  }
  // The commit. Not persisted: close_gap() persists its line before it changes another one.
  pm.store(commit.word, commit.value);
  close_gap(pm, node, at);
}

}  // namespace perdix::detail::index::fastfair
