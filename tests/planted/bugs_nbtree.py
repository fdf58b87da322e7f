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
        "  if (pm().compare_exchange(word, seen, block) || seen == block)\n"
        "    pm().persist(&word, sizeof word);\n",
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
]
