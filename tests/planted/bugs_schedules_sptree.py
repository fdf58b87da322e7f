"""Bugs of SpTree and its radix tree that take several threads at one leaf, which the schedule
fuzzer must notice.

Four changes of this kind are no bugs, and so are not planted:

- A merge that does not count again when it has locked the right neighbour (`merge_with_next`): it
  may have grown by a few pairs since, and half of a leaf is free.
- A cleaning that does not look whether the node still has the buffer (`clean`): it merges the one
  that the node has now.
- A split that stores the new bound of the left node before the node on the right (`link_right`):
  readers of the left node retry, since it is locked, and no others come to the right one.
- A node of the radix tree that is not obsolete when another has taken its place (`rebuild`): no
  thread asks, since a late search finds that its parent has changed (tree_search.h).

One is a bug and is not planted, since 3,600 schedules with small budgets had not shown it: a thread
that takes a cold buffer does not look again whether its node still has it (`take_cold`). Two
threads must have chosen the same one.
"""

from bug import (
    ART_MODIFY,
    SPTREE_RESUME,
    SPTREE_SEARCH,
    STRUCTURE,
    Bug,
    drop_part,
    schedules,
    swap_part,
)

COMMON = "--engine sptree --domain memory_controller --reopen"
FULL = (schedules(f"{COMMON} --beginning full"),)
LITTLE = (schedules(f"{COMMON} --beginning little"), schedules(f"{COMMON} --beginning sparse"))
MANY = (schedules(f"{COMMON} --beginning many"),)
EDGE = (schedules(f"{COMMON} --beginning edge"),)
MANY_BUFFERS = (schedules(f"{COMMON} --dram-budget 3K --beginning many"),)

BUGS = [
    drop_part(
        "schedules: a reader does not look whether the node has changed",
        SPTREE_SEARCH,
        "if (node->lock.read_validate(version)) [[likely]] return",
        "if (node->lock.read_validate(version)) [[likely]]",
        FULL,
    ),
    Bug(
        "schedules: a writer locks a node that has changed since it was found",
        SPTREE_SEARCH,
        "    if (node->lock.try_upgrade(version)) return LockedNode<K>(node);\n",
        "    node->lock.lock();\n    return LockedNode<K>(node);\n",
        FULL,
    ),
    Bug(
        "schedules: a writer takes a node that is gone",
        SPTREE_SEARCH,
        "    if (Node::Lock::obsolete(version)) {\n      pm::on_step(\"sptree: a writer meets",
        "    if (!{planted} && Node::Lock::obsolete(version)) {\n"
        "      pm::on_step(\"sptree: a writer meets",
        EDGE + LITTLE,
    ),
    swap_part(
        "schedules: a node that was merged away is not obsolete",
        STRUCTURE,
        "right_lock.release()",
        "unlock_obsolete",
        "unlock",
        EDGE + LITTLE,
    ),
    drop_part(
        "schedules: a cold range is locked without another look for a warm leaf in it",
        SPTREE_RESUME,
        "if (!(NodeBounds::view(left->low) < NodeBounds::view(node->low)))",
        "if (!(NodeBounds::view(left->low) < NodeBounds::view(node->low))) ",
        MANY,
        after="Resumer<K>::lock_before_cold_range(",
    ),
    Bug(
        "schedules: a leaf that comes back is in use before its pairs are known",
        SPTREE_RESUME,
        "  const LockedNode locked(node);\n  SlotSet slots",
        "  LockedNode locked(node); if ({planted}) const LockedNode early = std::move(locked);\n"
        "  SlotSet slots",
        FULL,
    ),
    Bug(
        "schedules: the log hears too early that all leaves are back",
        SPTREE_RESUME,
        "    if (NodeBounds::is_open(high)) return finish();\n",
        "    if ({planted} || NodeBounds::is_open(high)) return finish();\n",
        MANY_BUFFERS,
    ),
    Bug(
        "schedules: a change of the radix tree locks a node that has changed since",
        ART_MODIFY,
        "      : lock_(edge.lock->try_upgrade(edge.version) ? edge.lock : nullptr) {}\n",
        "      : lock_(({planted} ? edge.lock->lock(), true "
        ": edge.lock->try_upgrade(edge.version)) ? edge.lock : nullptr) {}\n",
        MANY + FULL,
    ),
    Bug(
        "schedules: a node that was merged away is freed without a grace period",
        STRUCTURE,
        "  right_lock.release()->lock.unlock_obsolete();\n  parts_.nodes.retire(right_node);\n",
        "  right_lock.release()->lock.unlock_obsolete();\n"
        "  parts_.nodes.release_with_bound(right_node);\n",
        EDGE + LITTLE,
    ),
    Bug(
        "schedules: a guess of the radix tree is trusted",
        "src/index/common/node_radix.h",
        "    if (key < key_of_(node)) [[unlikely]]\n",
        "    if (!{planted} && key < key_of_(node)) [[unlikely]]\n",
        MANY,
    ),
]
