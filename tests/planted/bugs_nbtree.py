"""Bugs of NbTree."""

from bug import (
    NB,
    NB_COLD,
    NB_LEDGER,
    NB_PAIRS,
    NB_PAIRS_H,
    NB_RECOVERY,
    NB_RESUME,
    NB_SMO,
    NB_STRINGS,
    NB_TREE,
    NB_UNRESOLVED,
    Bug,
    drop,
    store_for_publish,
)

BUGS = [
    # --- NbTree ---
    drop(
        "nbtree: an insert returns before it is durable",
        NB_PAIRS,
        "pm().persist(&entry, sizeof entry)",
        NB,
    ),
    drop(
        "nbtree: an update returns before it is durable",
        NB_PAIRS_H,
        "if (done) pm()",
        NB,
    ),
    drop(
        "nbtree: an erase returns before it is durable",
        NB_PAIRS_H,
        "pm().persist(&entry.key, sizeof entry.key)",
        NB,
    ),
    drop(
        "nbtree: a block is linked before it is durable",
        NB_SMO,
        "pm().fence()",
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
    drop(
        "nbtree: a value is replaced before its name is durable, and leaks",
        NB_PAIRS,
        "pm().fence()",
        NB_STRINGS,
        after="const auto name_old_value = [&](const pm::WordPair& now) {",
    ),
    drop(
        "nbtree: key and value are erased before their names are durable, and leak",
        NB_PAIRS,
        "pm().fence()",
        NB_STRINGS,
        after="const auto name_pair = [&](const pm::WordPair& now) {",
    ),
    drop(
        "nbtree: a claim outlives its operation",
        NB_LEDGER,
        "ledger_.pm().publish_for_next",
        NB_STRINGS,
    ),
    drop(
        "nbtree: opening leaves what the ledger names of structure modifications",
        NB_RECOVERY,
        "upkeep.ledger.resolve_all",
        NB,
    ),
    drop(
        "nbtree: an anchor that the ledger names is believed",
        NB_RECOVERY,
        "if (pm::load(before.next) != offset)",
        NB,
    ),
    store_for_publish(
        "nbtree: a place of an anchor is free before that is durable",
        NB_LEDGER,
        "pm().publish(anchor.block, pm::kNull)",
        NB,
    ),
    drop(
        "nbtree: blobs that are reached are taken for lost",
        NB_COLD,
        "if (!unresolved.empty())",
        NB_STRINGS,
    ),
    drop(
        "nbtree: blobs that are lost are forgotten",
        NB_RESUME,
        "ledger_.resolve_all",
        NB_STRINGS,
    ),
    Bug(
        "nbtree: a claim of an interrupted operation is freed twice",
        NB_UNRESOLVED,
        "if (name.kind == Kind::unlinked && pm::load(",
        "if (({planted} || name.kind == Kind::unlinked) && pm::load(",
        NB_STRINGS,
    ),
    drop(
        "nbtree: a lookup shows what is not persisted",
        NB_TREE,
        "entries_.persist_unpersisted",
        NB,
    ),
    drop(
        "nbtree: a leaf that was joined with its neighbour leaks",
        NB_SMO,
        "lease.name(1, pool().offset(&plan.absorbed_leaf->block()))",
        NB,
    ),
    drop(
        "nbtree: an anchor is linked before its bound is written",
        NB_SMO,
        "pm().flush(&anchor, sizeof anchor)",
        NB,
    ),
    Bug(
        "nbtree: what is unlinked is freed while its name stays",
        NB_LEDGER,
        "  session.commit(pm::set_word(word, pm::kNull));\n}\n",
        "  session.log();\n  session.finish();\n}\n",
        NB_STRINGS,
    ),
    drop(
        "nbtree: a check of the pool counts what closing the index frees",
        NB_TREE,
        "upkeep_->reserve.give_up",
        NB,
    ),
]
