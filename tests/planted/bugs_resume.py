"""Bugs of SpTree's resumption after a restart, and of the backup of its top layer."""

from bug import (
    BUFFERS,
    SPTREE,
    SPTREE_OWNED,
    SPTREE_RESUME,
    STALE,
    STRUCTURE,
    TREE,
    Bug,
    drop,
    drop_part,
)

BUGS = [
    drop(
        "a leaf loses its entry in the backup only after it was merged away, if there is no crash",
        STRUCTURE,
        "if (!unlink(*right_node))",
        TREE,
    ),
    drop_part(
        "a leaf that was merged away on its way to the backup gets its entry there all the same",
        SPTREE,
        "if (there) return",
        "if (there) ",
        TREE,
    ),
    Bug(
        "the backup leads to a leaf that no crash may know yet",
        STRUCTURE,
        "  const std::uint64_t link = staged_link(left, offset);\n",
        "  parts_.backup.add(division.separator, offset);\n"
        "  const std::uint64_t link = staged_link(left, offset);\n",
        TREE,
    ),
    drop_part(
        "a leaf is used before the stale chain of its left neighbour is closed",
        SPTREE_RESUME,
        "if (!survivor || !survivor->replay.stale)",
        "if (!survivor || !survivor->replay.stale) ",
        STALE,
    ),
    drop(
        "recovery takes erased slots for pairs",
        SPTREE_RESUME,
        "slots = slots - survivor",
        BUFFERS,
    ),
    drop(
        "what the log has of a leaf is not looked for (SPTree's release: acknowledged keys are "
        "lost)",
        SPTREE_RESUME,
        "if (has_log()) survivor",
        BUFFERS,
    ),
    drop(
        "a chain whose END was lost stays open",
        SPTREE_RESUME,
        "close_chain(leaf, *survivor)",
        BUFFERS,
    ),
    drop(
        "pairs that a split had not merged yet are lost when its chain is closed",
        SPTREE_RESUME,
        "publish_slots(pm(), leaf, placed.taken - chain.erased)",
        BUFFERS,
    ),
    Bug(
        "a stale chain ends before what it says is merged",
        SPTREE_RESUME,
        """  publish_slots(pm(), leaf, placed.taken - chain.erased);  // before the END
  log().adopt(closing, adoption);
  log().end(closing);
""",
        """  log().adopt(closing, adoption);
  log().end(closing);
  publish_slots(pm(), leaf, placed.taken - chain.erased);
""",
        BUFFERS,
    ),
    drop(
        "the node to the left of the cold range does not learn of its neighbour",
        SPTREE_RESUME,
        "parts_.nodes.set_next(left, node)",
        TREE,
    ),
    Bug(
        "a leaf that comes back ends where the next cold one does, not the next one",
        SPTREE_RESUME,
        "  Node* next = following == nullptr ? nullptr : parts_.top.find(low_of(*following));\n",
        "  Node* next = following == nullptr || {planted} ? nullptr\n"
        "                                                 : parts_.top.find(low_of(*following));\n",
        TREE,
    ),
    drop(
        "a drop leaves the backup behind",
        SPTREE_OWNED,
        "if (pm::load(root.backup) != pm::kNull)",
        TREE,
    ),
]
