"""Bugs of NbTree."""

from bug import NB, NB_INSERT, NB_LEDGER, NB_RECOVERY, NB_SMO, NB_STRINGS, NB_TREE, Bug

BUGS = [
    # --- NbTree ---
    Bug(
        "nbtree: an insert returns before it is durable",
        NB_INSERT,
        "  pm().persist(&entry, sizeof entry);  // before anybody can see the key\n",
        "",
        NB,
    ),
    Bug(
        "nbtree: an update returns before it is durable",
        NB_TREE,
        "  if (done) pm().persist(&entry.value, sizeof entry.value);  // the commit\n",
        "",
        NB,
    ),
    Bug(
        "nbtree: an erase returns before it is durable",
        NB_TREE,
        "    pm().persist(&entry.key, sizeof entry.key);  // the commit\n",
        "",
        NB,
    ),
    Bug(
        "nbtree: a block is linked before it is durable",
        NB_SMO,
        "  pm().fence();  // all that is new is durable before it can be linked\n",
        "",
        NB,
    ),
    Bug(
        "nbtree: a leaf is used before it is linked durably",
        NB_SMO,
        "  if (pm().compare_exchange(word, seen, block) || seen == block) "
        "pm().persist(&word, sizeof word);\n",
        "  pm().compare_exchange(word, seen, block);\n",
        NB,
    ),
    Bug(
        "nbtree: a value is replaced before its name is durable, and leaks",
        NB_TREE,
        "      pm().fence();  // the name is durable before the blob can be unlinked\n",
        "",
        NB_STRINGS,
    ),
    Bug(
        "nbtree: key and value are erased before their names are durable, and leak",
        NB_TREE,
        "      pm().fence();  // the names are durable before the blobs can be unlinked\n",
        "",
        NB_STRINGS,
    ),
    Bug(
        "nbtree: a claim outlives its operation",
        NB_LEDGER,
        "  ledger_.pm().publish(lane_->stripe->claims[0], pm::kNull);\n  claims_ = {};\n",
        "  claims_ = {};\n",
        NB_STRINGS,
    ),
    Bug(
        "nbtree: recovery leaves what the ledger names",
        NB_RECOVERY,
        "  ledger_->settle(census.reached());\n",
        "",
        NB_STRINGS,
    ),
    Bug(
        "nbtree: recovery takes what the ledger names for lost",
        NB_RECOVERY,
        "  ledger_->settle(census.reached());\n",
        "  ledger_->settle({});\n",
        NB_STRINGS,
    ),
    Bug(
        "nbtree: an insert that lost returns before its death is durable",
        NB_INSERT,
        "      if (done) pm().persist(&entry.key, sizeof entry.key);  // else it might come back\n",
        "",
        NB,
    ),
    Bug(
        "nbtree: an insert does not look for its key in the slots before it",
        NB_INSERT,
        "  const bool wins = free_before(leaf, slot, key, hash);\n",
        "  const bool wins = {planted} || free_before(leaf, slot, key, hash);\n",
        NB,
    ),
    Bug(
        "nbtree: an update changes an entry that is frozen",
        NB_TREE,
        "    if (Code::state(old.first) != State::live) break;\n"
        "    if constexpr (!Values::kInline) {\n",
        "    if (!{planted} && Code::state(old.first) != State::live) break;\n"
        "    if constexpr (!Values::kInline) {\n",
        NB,
    ),
    Bug(
        "nbtree: a lookup shows what is in doubt",
        NB_TREE,
        "    settle_doubts(*place.leaf, found.slot >= 0 ? "
        "std::uint64_t{1} << found.slot : found.dead);\n",
        "",
        NB,
    ),
    Bug(
        "nbtree: a leaf that was joined with its neighbour leaks",
        NB_SMO,
        "    hold.name(1, pool().offset(draft.absorbed_leaf->block));\n",
        "",
        NB,
    ),
    Bug(
        "nbtree: an anchor is linked before its bound is written",
        NB_SMO,
        "    pm().flush(&anchor, sizeof anchor);  // fenced below, before it can be linked\n",
        "",
        NB,
    ),
    Bug(
        "nbtree: a leaf is copied without being frozen",
        NB_SMO,
        "  freeze(*place.leaf);\n  if (draft.absorbed",
        "  if (!{planted}) freeze(*place.leaf);\n  if (draft.absorbed",
        NB,
    ),
    Bug(
        "nbtree: what is unlinked is freed while its name stays",
        NB_LEDGER,
        "  session.commit_when(word, kWholeWord, pm::kNull);\n"
        "  session.log();\n"
        "  pm().publish(word, pm::kNull);  // the commit\n"
        "  session.finish();\n"
        "}\n",
        "  session.log();\n  session.finish();\n}\n",
        NB_STRINGS,
    ),
    Bug(
        "nbtree: recovery leaves entries that lost",
        NB_RECOVERY,
        "      pool.pm().publish(word, Code::kDead);"
        "  // or it would come back when the first one is erased\n",
        "",
        NB,
    ),
]
