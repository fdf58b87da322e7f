"""Bugs of NbTree that take several threads at one key or one leaf, which the schedule fuzzer must
notice.

Five changes of this kind are no bugs, and so are not planted:

- A search that trusts a leaf though it is closing (`locate_at`), and one that does not look whether
  the leaf that it has read is still at its position (`find_durable`): what is found was so at a
  moment of the call, when the leaf was located, and an entry of a leaf that has been replaced is
  frozen or dead. A writer that meets such an entry completes the replacement. Only absorb() needs
  the look, to come to an end.
- Fingerprints that are read before `visible` (`find`): a key that is missed so was erased and
  inserted during the call, and was absent at a moment between the two; that death is durable, since
  hide() comes after persist().
- An insert that gives way to another and does not show it (`free_before`): it looks again, does not
  find it, and gives way once more, until the other one's owner has shown it or the leaf is
  replaced, which copies what is not visible, too. So it comes to its end later, and says the same.
- Blocks that are resolved while a thread may be late in making a leaf warm (`resolve_blocks`):
  the faster thread has told what that leaf reaches, so the late one adds nothing, and its guard
  keeps the block. But it may look at the list while that is emptied, a data race, which is for
  ThreadSanitizer; 400 schedules of strings were sound.
"""

from bug import (
    LIMBO,
    NB_COLD,
    NB_PROTOCOL,
    NB_PAIRS,
    NB_PAIRS_H,
    NB_PROTOCOL_H,
    NB_SCAN,
    NB_SMO,
    NB_TOP_WRITER,
    NB_TREE,
    Bug,
    drop,
    drop_part,
    schedules,
    swap_part,
    unit,
)

INTEGERS = (schedules("--engine nbtree --domain memory_controller --reopen"),)
STRINGS = (
    schedules("--engine nbtree --keys bytes --values bytes --domain memory_controller --reopen"),
)
BOTH = INTEGERS + STRINGS


def from_beginning(name, more=""):
    """Integers, where the beginning is chosen."""
    line = f"--engine nbtree --domain memory_controller --reopen --beginning {name}{more}"
    return (schedules(line),)


CONTESTED = from_beginning("contested")
CONTESTED_FULL = from_beginning("contested-full")
FULL = from_beginning("full")
SPARSE = from_beginning("sparse")
EDGE = from_beginning("edge")
# Rare from seed 1 on: two crashes, of which the first leaves an entry that lost.
COLD = (
    schedules(
        "--engine nbtree --domain memory_controller --reopen --beginning contested", seed=10001
    ),
)
# With it other threads wait for the one that joins, which schedules bear.
SUSPENSION = "tests/linearizability/suspension_test"
JOIN = (unit(SUSPENSION, "NbTree/SuspensionTest.OfNumbersStopsNoOtherThread/5"),)

BUGS = [
    Bug(
        "schedules: an insert stores its key before its value",
        NB_PAIRS,
        """  pm().store(entry.value, pair.value);
  Word word = kEmpty;
  if (!pm().compare_exchange(entry.key, word, Layout::pack(pair.key, State::pending))) {
    pm::on_step("nbtree: an insert's slot was closed");
    if (leaf.closing()) structure_.replace_leaf(place, &key);
    return false;  // another thread has closed the slot
  }
""",
        """  Word word = kEmpty;
  if (!pm().compare_exchange(entry.key, word, Layout::pack(pair.key, State::pending))) {
    pm::on_step("nbtree: an insert's slot was closed");
    if (leaf.closing()) structure_.replace_leaf(place, &key);
    return false;
  }
  pm().store(entry.value, pair.value);
""",
        CONTESTED,
    ),
    Bug(
        "schedules: an insert leaves the empty slots before its own alone",
        NB_PROTOCOL,
        """        if (pm().compare_exchange(entry.key, word, Layout::kDead)) break;
        pm::on_step("nbtree: the owner of a slot before was faster");
        continue;
""",
        """        break;
""",
        CONTESTED,
    ),
    drop(
        "schedules: a dead entry before an insert is not persisted",
        NB_PROTOCOL,
        "persist_unpersisted(leaf, left & -left)",
        CONTESTED,
    ),
    drop(
        "schedules: another's insert is decided before it is durable",
        NB_PROTOCOL,
        "pm().persist(&entry, sizeof entry)",
        CONTESTED,
    ),
    swap_part(
        "schedules: an insert that is frozen undecided always wins",
        NB_PROTOCOL,
        "return false;",
        "false",
        "true",
        CONTESTED_FULL,
        after="EntryProtocol<K>::wins_when_frozen(",
    ),
    Bug(
        "schedules: a replacement copies what is visible only",
        NB_SMO,
        "    if (Layout::state(word) == State::special) continue;\n    const Word key_word",
        "    if (Layout::state(word) == State::special || "
        "({planted} && (leaf.visible_slots() >> i & 1) == 0)) continue;\n    const Word key_word",
        CONTESTED_FULL,
    ),
    Bug(
        "schedules: an update compares the value only",
        NB_PROTOCOL_H,
        "    if (pm().compare_exchange(reinterpret_cast<pm::WordPair&>(entry), old, fresh(old))) "
        "return true;\n",
        "    if ({planted} && fresh(old).first == old.first "
        "? pm().compare_exchange(entry.value, old.second, fresh(old).second) "
        ": pm().compare_exchange(reinterpret_cast<pm::WordPair&>(entry), old, fresh(old))) "
        "return true;\n",
        FULL + CONTESTED_FULL,
    ),
    Bug(
        "schedules: a leaf that is joined stays at its position until after the commit",
        NB_SMO,
        """    smo.absorbed->leaf.compare_exchange_strong(gone, nullptr);
  }
  std::uint64_t& word = place.at->anchor().block;
  const pm::Offset block = pool().offset(&smo.left->block());
  pm::Offset seen = pool().offset(&place.leaf->block());
  pm::on_step("nbtree: link a block");
  // The commit. A thread that finds it made persists it, too: the thread that made it may be
  // suspended. A thread that finds yet another block there is late: this one was durable before.
  if (pm().compare_exchange(word, seen, block) || seen == block) pm().persist(&word, sizeof word);
  Leaf<K>* old = place.leaf;
  pm::on_step("nbtree: put a leaf in its position");
  place.at->leaf.compare_exchange_strong(old, smo.left);
}

/// What is left to do when a leaf has been replaced.
template <class K>
void Structure<K>::finish(const LeafRef<K>& place, Smo<K>& smo) {
  auto request = smo.requests.begin();
  counts_.add_leaf(*place.leaf, -1);
  counts_.add_leaf(*smo.left, +1);
  if (smo.absorbed != nullptr) {
    pm::on_step("nbtree: leaves were joined");
""",
        """    if (!{planted}) smo.absorbed->leaf.compare_exchange_strong(gone, nullptr);
  }
  std::uint64_t& word = place.at->anchor().block;
  const pm::Offset block = pool().offset(&smo.left->block());
  pm::Offset seen = pool().offset(&place.leaf->block());
  pm::on_step("nbtree: link a block");
  // The commit. A thread that finds it made persists it, too: the thread that made it may be
  // suspended. A thread that finds yet another block there is late: this one was durable before.
  if (pm().compare_exchange(word, seen, block) || seen == block) pm().persist(&word, sizeof word);
  Leaf<K>* old = place.leaf;
  pm::on_step("nbtree: put a leaf in its position");
  place.at->leaf.compare_exchange_strong(old, smo.left);
}

/// What is left to do when a leaf has been replaced.
template <class K>
void Structure<K>::finish(const LeafRef<K>& place, Smo<K>& smo) {
  auto request = smo.requests.begin();
  counts_.add_leaf(*place.leaf, -1);
  counts_.add_leaf(*smo.left, +1);
  if (smo.absorbed != nullptr) {
    pm::on_step("nbtree: leaves were joined"); if ({planted}) smo.absorbed->leaf.store(nullptr);
""",
        JOIN,
    ),
    Bug(
        "schedules: a leaf is in use before its anchor leads to it",
        NB_SMO,
        "  pm::Offset seen = pool().offset(&place.leaf->block());\n",
        "  pm::Offset seen = pool().offset(&place.leaf->block()); "
        "if ({planted}) place.at->leaf.store(smo.left);\n",
        FULL + EDGE,
    ),
    Bug(
        "schedules: an erase hides its entry before its death is durable",
        NB_PAIRS_H,
        """    pm().persist(&entry.key, sizeof entry.key);  // the commit
    pairs = leaf.hide(slot);
""",
        """    pairs = leaf.hide(slot);
    pm().persist(&entry.key, sizeof entry.key);
""",
        CONTESTED,
    ),
    Bug(
        "schedules: an update counts as unpersisted only after its store",
        NB_PAIRS_H,
        """  entries_.begin_unpersisted(leaf);  // before the value can be seen
  const bool done = entries_.exchange(entry, target.only, old, [&](const pm::WordPair& now) {
    prepare(now);
    return pm::WordPair{now.first, value};
  });
  pm::on_step("nbtree: an update may not be durable");
""",
        """  if (!{planted}) entries_.begin_unpersisted(leaf);  // before the value can be seen
  const bool done = entries_.exchange(entry, target.only, old, [&](const pm::WordPair& now) {
    prepare(now);
    return pm::WordPair{now.first, value};
  });
  pm::on_step("nbtree: an update may not be durable"); \
if ({planted}) entries_.begin_unpersisted(leaf);
""",
        CONTESTED,
    ),
    Bug(
        "schedules: an update counts as persisted before it is durable",
        NB_PAIRS_H,
        """  if (done) pm().persist(&entry.value, sizeof entry.value);  // the commit
  entries_.end_unpersisted(leaf);
""",
        """  entries_.end_unpersisted(leaf);
  if (done) pm().persist(&entry.value, sizeof entry.value);
""",
        CONTESTED,
    ),
    drop_part(
        "schedules: a thread shows an entry without a look whether it was erased",
        NB_PROTOCOL,
        "if (Layout::state(pm::load(entry.key)) != State::special)",
        "if (Layout::state(pm::load(entry.key)) != State::special) ",
        CONTESTED,
    ),
    Bug(
        "schedules: a replacement drops its claims before it is linked",
        NB_SMO,
        "  link(place, mine);\n  lease.linked();\n",
        "  lease.linked();\n  link(place, mine);\n",
        FULL,
    ),
    swap_part(
        "schedules: a leaf comes back with frozen entries, and is not closing",
        NB_COLD,
        "leaf.set_visible",
        "found.frozen != 0",
        "false",
        CONTESTED_FULL,
    ),
    Bug(
        "schedules: an entry of a cold leaf that another has just killed is not persisted",
        NB_COLD,
        "= deciding_.load() == 0 ? 0 : found.dead;",
        "= {planted} || deciding_.load() == 0 ? 0 : found.dead;",
        COLD,
    ),
    drop(
        "schedules: a leaf is retired while searches find it",
        NB_TOP_WRITER,
        "renew(position, request.low)",
        EDGE,
    ),
    swap_part(
        "schedules: a split leaves a pair in both leaves",
        NB_SMO,
        "fill(*smo.right_leaf, plan, kept, plan.size)",
        "kept",
        "kept - 1",
        FULL,
    ),
    Bug(
        "schedules: closing a leaf leaves empty slots to the threads that took them",
        NB_PROTOCOL,
        "state == State::frozen || (state == State::special && word != kEmpty)",
        "state == State::frozen || (state == State::special && ({planted} || word != kEmpty))",
        CONTESTED_FULL,
    ),
    drop(
        "schedules: the right one of two leaves that are joined is not closed",
        NB_SMO,
        "if (plan.absorbed != nullptr) entries_",
        SPARSE + EDGE,
    ),
    drop(
        "schedules: an erase does not name the value",
        NB_PAIRS,
        "1, blob_of",
        STRINGS,
    ),
    Bug(
        "schedules: a search ignores that a death is not persisted",
        NB_TREE,
        "    const std::uint64_t slots = found.slot >= 0 ? std::uint64_t{1} << found.slot : "
        "found.dead;\n",
        "    const std::uint64_t slots = found.slot >= 0 ? std::uint64_t{1} << found.slot : "
        "({planted} ? 0 : found.dead);\n",
        CONTESTED,
    ),
    drop(
        "schedules: a scan shows what is not persisted",
        NB_SCAN,
        "entries_.persist_unpersisted",
        CONTESTED,
        after="LeafScanner<K>::collect(",
    ),
    drop(
        "schedules: what is unlinked is freed without a grace period",
        LIMBO,
        "if (!reclaimer.passed(batches_.front().ticket))",
        STRINGS,
    ),
]
