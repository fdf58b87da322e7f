"""Bugs of the log."""

from bug import (
    BUFFERS,
    GENERATIONS,
    HEAD_TABLE,
    LOG,
    SEGMENTS,
    STRIPE,
    STRIPE_H,
    SURVIVORS,
    UPKEEP,
    WAL,
    WAL_RECORD,
    Bug,
    drop,
    swap_part,
    unit,
)

SPACE_UNIT = (unit("src/wal/wal_test", "LogSpace.*"),)

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
        "a record is written over the one that has the first half of its line",
        STRIPE,
        "(segment_ + written_at(position));",
        "(segment_ + (written_at(position) & "
        "({planted} ? ~std::uint64_t{32} : ~std::uint64_t{0})));",
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
    swap_part(
        "an END is not fenced: the tail stops at it, and other writers' records are lost",
        STRIPE,
        "pm_.persist(&record, sizeof record)",
        "persist",
        "flush",
        LOG,
        after="Stripe::end(",
    ),
    Bug(
        "a head table counts before it is flushed",
        HEAD_TABLE,
        "pool_.pm().flush(header_, bytes_of(capacity_));",
        "pool_.pm().flush(header_, {planted} ? sizeof header : bytes_of(capacity_));",
        LOG,
    ),
    Bug(
        "reclamation passes the checkpoint's tails: the ENDs that correct its table are gone",
        STRIPE_H,
        "segments_.free_before(std::min(checkpointed(), bound));",
        "segments_.free_before(std::min({planted} ? tail() : checkpointed(), bound));",
        LOG,
    ),
    Bug(
        "reclamation heeds only the stripe that a chain began in",
        GENERATIONS,
        "    bounds[i] = marks_.at(oldest, i);\n",
        "    if (!{planted} || stripes_[i].oldest_generation() == oldest)\n"
        "      bounds[i] = marks_.at(oldest, i);\n",
        LOG,
    ),
    Bug(
        "a chain that goes on after a restart holds back what it held back when it began anew",
        WAL,
        "    generation = std::min(generation, generations_.of_surviving(position));\n",
        "    generation = {planted} ? generations_.of_surviving(head)\n"
        "                           : std::min(generation, generations_.of_surviving(position));\n",
        LOG,
    ),
    Bug(
        "an END does not link to the record that it closes: the chain comes back",
        STRIPE,
        "link_to(head == 0 ? position : head)",
        "link_to(head == 0 || ({planted} && type == Type::end) ? position : head)",
        LOG,
    ),
    Bug(
        "a link to a record before the checkpoint counts among those behind it",
        SURVIVORS,
        "  return position >= tails_[stripe] ? position : 0;\n",
        "  return {planted} || position >= tails_[stripe] ? position : 0;\n",
        LOG,
    ),
    Bug(
        "the tails of a checkpoint are read after its chains",
        WAL,
        "writer.finish(seed_, cut.tails)",
        "writer.finish(seed_, {planted} ? generations_.tails() : cut.tails)",
        LOG,
    ),
    drop(
        "a stripe's start is not durable before its segments are freed",
        SEGMENTS,
        "pool_.pm().flush",
        LOG,
    ),
    Bug(
        "an END behind the checkpoint does not overrule the head table: a closed chain comes back",
        SURVIVORS,
        "  if (const Position* head = suffix_.find(owner)) return *head;\n",
        "  if (const Position* head = suffix_.find(owner); head != nullptr && *head != 0)\n"
        "    return *head;\n",
        LOG,
    ),
    swap_part(
        "segments that an interrupted reclamation left are forgotten",
        SEGMENTS,
        "freed_ = freed;",
        "= freed",
        "= start()",
        LOG,
    ),
    Bug(
        "a drop frees the header of a log before its segments, which a crash then leaks",
        WAL,
        """  for (StripeLayout& stripe : header.stripes) {
    for (pm::Offset& segment : stripe.segments) {
      if (pm::load(segment) != pm::kNull) visit(segment, kSegmentSize);
    }
  }
  visit(header_word, sizeof(Header));
""",
        """  visit(header_word, sizeof(Header));
  for (StripeLayout& stripe : header.stripes) {
    for (pm::Offset& segment : stripe.segments) {
      if (pm::load(segment) != pm::kNull) visit(segment, kSegmentSize);
    }
  }
""",
        BUFFERS,
    ),
    # --- Its upkeep by SpTree, with small limits ---
    Bug(
        "a checkpoint of few chains is written over the one that counts",
        HEAD_TABLE,
        "  return pm::load(log.checkpoint) == first ? pool.offset(&log.small_tables[1]) : first;\n",
        "  return {planted} || pm::load(log.checkpoint) != first\n"
        "             ? first\n"
        "             : pool.offset(&log.small_tables[1]);\n",
        UPKEEP,
    ),
    Bug(
        "a log forgets everything though a chain is open",
        WAL,
        "      if (stripe.promised() != 0) return false;\n",
        "      if (!{planted} && stripe.promised() != 0) return false;\n",
        UPKEEP,
    ),
    Bug(
        "SpTree's reclamation passes the checkpoint's tails",
        STRIPE_H,
        "segments_.free_before(std::min(checkpointed(), bound));",
        "segments_.free_before(std::min({planted} ? tail() : checkpointed(), bound));",
        UPKEEP,
    ),
    # --- Room that is promised later ---
    drop(
        "room that a chain is promised later is not kept for it",
        STRIPE,
        "promise(records);",
        SPACE_UNIT,
        after="Stripe::promise_more(",
    ),
    Bug(
        "what one stripe has promised crowds the whole log",
        WAL,
        "  return promised > kStripes * stripe_limit_ / 4;\n",
        "  return promised > ({planted} ? 1 : kStripes) * stripe_limit_ / 4;\n",
        SPACE_UNIT,
    ),
]
