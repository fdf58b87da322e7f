"""Bugs of the log."""

from bug import (
    BUFFERS,
    HEAD_TABLE,
    LOG,
    SEGMENTS,
    STRIPE,
    SURVIVORS,
    WAL,
    WAL_RECORD,
    Bug,
)

BUGS = [
    # --- The log ---
    Bug(
        "the check of a record does not cover its position: old records of a reused segment pass",
        WAL_RECORD,
        "words = {position, where, key, value};",
        "words = {{planted} ? 0 : position, where, key, value};",
        LOG,
    ),
    Bug(
        "the check of a record does not depend on the log: records of one that was dropped pass",
        WAL_RECORD,
        "util::checksum(words.data(), sizeof words, seed)",
        "util::checksum(words.data(), sizeof words, {planted} ? 0 : seed)",
        LOG,
    ),
    Bug(
        "a record is flushed before its check is stored",
        STRIPE,
        "        pm_.store(record.check, check);\n"
        "        // One line. Fenced under the lock, so that no later record becomes durable "
        "without it.\n"
        "        pm_.persist(&record, sizeof record);\n",
        "        pm_.persist(&record, sizeof record);\n        pm_.store(record.check, check);\n",
        LOG,
    ),
    Bug(
        "an END is not fenced: the tail stops at it, and other writers' records are lost",
        STRIPE,
        "        // Durable before the buffer is used for others: their records might be all that "
        "is found.\n"
        "        pm_.persist(&record, sizeof record);\n",
        "        pm_.flush(&record, sizeof record);\n",
        LOG,
    ),
    Bug(
        "a head table counts before it is flushed",
        HEAD_TABLE,
        "pool.pm().flush(to, bytes_of(capacity));",
        "pool.pm().flush(to, {planted} ? sizeof header : bytes_of(capacity));",
        LOG,
    ),
    Bug(
        "reclamation passes the checkpoint's tails: the ENDs that correct its table are gone",
        STRIPE,
        "  Position keep = checkpointed();\n",
        "  Position keep = {planted} ? tail() : checkpointed();\n",
        LOG,
    ),
    Bug(
        "the tails of a checkpoint are read after its chains",
        WAL,
        "write_table(session, pool_, seed_, tails, heads)",
        "write_table(session, pool_, seed_, {planted} ? read_tails() : tails, heads)",
        LOG,
    ),
    Bug(
        "a stripe's start is not durable before its segments are freed",
        SEGMENTS,
        "    pool_.pm().flush(&layout_.start, sizeof begin);\n",
        "",
        LOG,
    ),
    Bug(
        "an END behind the checkpoint does not overrule the head table: a closed chain comes back",
        SURVIVORS,
        "    for (unsigned i = 0; i < count; ++i) suffix_.set(heads[i].owner, heads[i].head);\n",
        "    for (unsigned i = 0; i < count; ++i)\n"
        "      if (heads[i].head != 0) suffix_.set(heads[i].owner, heads[i].head);\n",
        LOG,
    ),
    Bug(
        "segments that an interrupted reclamation left are forgotten",
        SEGMENTS,
        "  freed_ = freed;\n",
        "  freed_ = start();\n",
        LOG,
    ),
    Bug(
        "a drop frees the header of a log before its segments, which a crash then leaks",
        WAL,
        "  // The header last: until then the word leads to what is left.\n"
        "  free_from(pool, header.checkpoint);\n"
        "  for (StripeLayout& stripe : header.stripes) {\n"
        "    for (pm::Offset& segment : stripe.segments) free_from(pool, segment);\n"
        "  }\n"
        "  free_from(pool, header_word);\n",
        "  free_from(pool, header_word);\n"
        "  free_from(pool, header.checkpoint);\n"
        "  for (StripeLayout& stripe : header.stripes) {\n"
        "    for (pm::Offset& segment : stripe.segments) free_from(pool, segment);\n"
        "  }\n",
        BUFFERS,
    ),
]
