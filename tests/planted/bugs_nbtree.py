"""Bugs of NbTree."""

from bug import (
    NB,
    NB_ANCHORS,
    NB_CHECK,
    NB_PROTOCOL,
    NB_LEDGER,
    NB_UNRESOLVED,
    NB_RECOVERY,
    NB_COLD,
    NB_RESUME,
    NB_SMO,
    NB_STRINGS,
    NB_TREE,
    Bug,
)

BUGS = [
    # --- NbTree ---
    Bug(
        "nbtree: an insert returns before it is durable",
        NB_TREE,
        "  pm().persist(&entry, sizeof entry);  // before another thread can see the key\n",
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
        "    pm().fence();  // the name is durable before the blob can be unlinked\n",
        "",
        NB_STRINGS,
    ),
    Bug(
        "nbtree: key and value are erased before their names are durable, and leak",
        NB_TREE,
        "    pm().fence();  // the names are durable before the blobs can be unlinked\n",
        "",
        NB_STRINGS,
    ),
    Bug(
        "nbtree: a claim outlives its operation",
        NB_LEDGER,
        "  ledger_.pm().publish_for_next(lane_->stripe->claims[0], pm::kNull);\n"
        "  claims_ = {};\n",
        "  claims_ = {};\n",
        NB_STRINGS,
    ),
    Bug(
        "nbtree: opening leaves what the ledger names of structure modifications",
        NB_RECOVERY,
        "  });\n  upkeep_.ledger.resolve_all(Ledger::Purpose::modification);\n",
        "  });\n",
        NB,
    ),
    Bug(
        "nbtree: an anchor that the ledger names is believed",
        NB_ANCHORS,
        "      if (pm::load(before.next) != offset) continue;\n",
        "",
        NB,
    ),
    Bug(
        "nbtree: a place of an anchor is free before that is durable",
        NB_LEDGER,
        "  pm().publish(anchor.block, pm::kNull);\n",
        "  pm().store(anchor.block, pm::kNull);\n",
        NB,
    ),
    Bug(
        "nbtree: blobs that are reached are taken for lost",
        NB_COLD,
        "    if (!unresolved.empty()) unresolved.template reached_entry<K>(codec_, key, value);\n",
        "",
        NB_STRINGS,
    ),
    Bug(
        "nbtree: blobs that are lost are forgotten",
        NB_RESUME,
        "    ledger_.resolve_all(kPurpose);\n",
        "",
        NB_STRINGS,
    ),
    Bug(
        "nbtree: a claim of an interrupted operation is freed twice",
        NB_UNRESOLVED,
        "if (name.kind == Kind::unlinked && pm::load(",
        "if (({planted} || name.kind == Kind::unlinked) && pm::load(",
        NB_STRINGS,
    ),
    Bug(
        "nbtree: a lookup shows what is not persisted",
        NB_TREE,
        "    entries_.persist_unpersisted(*place.leaf, slots);\n",
        "",
        NB,
    ),
    Bug(
        "nbtree: a leaf that was joined with its neighbour leaks",
        NB_SMO,
        "    lease.name(1, pool().offset(&plan.absorbed_leaf->block()));\n",
        "",
        NB,
    ),
    Bug(
        "nbtree: an anchor is linked before its bound is written",
        NB_SMO,
        "    pm().flush(&anchor, sizeof anchor);        "
        "// fenced below, before it can be linked\n",
        "",
        NB,
    ),
    Bug(
        "nbtree: what is unlinked is freed while its name stays",
        NB_LEDGER,
        "  session.commit(pm::set_word(word, pm::kNull));\n}\n",
        "  session.log();\n  session.finish();\n}\n",
        NB_STRINGS,
    ),
    Bug(
        "nbtree: a check of the pool counts what closing the index frees",
        NB_CHECK,
        "  upkeep_.reserve.give_up();  // else a check would miss what is freed when the index is "
        "closed\n",
        "",
        NB,
    ),
]
