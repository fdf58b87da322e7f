"""Bugs of the write buffers of FAST&FAIR."""

from bug import (
    BUFFER_EXCHANGE,
    BUFFERED,
    FAIR_ANEW,
    FAIR_B,
    FAIR_BO,
    FAIR_BUFFERS,
    FAIR_B_STRINGS,
    FAIR_OWNED,
    FAIR_MERGE,
    FAIR_PATH_UNIT,
    FAIR_SCAN,
    FAIR_SMO,
    FAIR_UNIT,
    FASTFAIR,
    HELD_UNIT,
    HOME_BUFFERS,
    Bug,
    drop,
    schedules,
    swap_part,
)

CACHED_SCHEDULES = tuple(
    schedules(f"--engine fastfair --technique boc --dram-budget 1500 --reopen {more}")
    for more in ("--domain memory_controller", "--domain cpu_cache --beginning sparse")
)
# Where a rewritten leaf gets its place, by two stores that are one commit.
LINK_ANEW = "commit_both(pm(), session, pm::set_word(*before, made), pm::set_word(*entry, made));\n"

BUGS = [
    # --- Lookups ---
    Bug(
        "fastfair buffers: a lookup does not look into the buffer",
        FASTFAIR,
        "      const bool counts = look_into_buffer(leaf, key, value);\n",
        "      const bool counts = {planted} || look_into_buffer(leaf, key, value);\n",
        FAIR_UNIT,
    ),
    Bug(
        "fastfair buffers: scans do not show what buffers hold",
        FAIR_SCAN,
        "if (buffers_.get() != nullptr) [[unlikely]]",
        "if (buffers_.get() != nullptr && !{planted}) [[unlikely]]",
        FAIR_UNIT,
    ),
    Bug(
        "fastfair buffers: a pair of the buffer is shown behind the next one of the leaf",
        FAIR_SCAN,
        "      add_below(&key);\n",
        "      if (!{planted}) add_below(&key);\n",
        FAIR_UNIT,
    ),
    Bug(
        "fastfair buffers: the floor of a key is looked for in the leaf only",
        FAIR_SCAN,
        "    while (buffered.size > 0 && !target.reaches(",
        "    if ({planted}) buffered.size = 0;\n"
        "    while (buffered.size > 0 && !target.reaches(",
        FAIR_UNIT,
    ),
    # --- Changes ---
    Bug(
        "fastfair buffers: an erase does not look into the buffer",
        FASTFAIR,
        "    if (const auto found = buffers_.find(*leaf.node, key, hash)) {\n",
        "    if (const auto found = buffers_.find(*leaf.node, key, hash); found && !{planted}) {\n",
        FAIR_UNIT,
    ),
    Bug(
        "fastfair buffers: a leaf is split though its buffer has pairs",
        FASTFAIR,
        "!kept->empty_chain() && meta_of(node).count >= nodes().fanout()) {\n",
        "!kept->empty_chain() && meta_of(node).count >= nodes().fanout() &&\n"
        "        !{planted}) {\n",
        FAIR_UNIT,
    ),
    Bug(
        "fastfair buffers: a buffer that another leaf gets keeps its pairs",
        BUFFER_EXCHANGE,
        "      if (!home || !merge(home, buffer)) return 0;\n",
        "      if (!home) return 0;\n      buffer.clear();\n",
        FAIR_UNIT,
    ),
    # --- Merging ---
    Bug(
        "fastfair buffers: a merge in place leaves a pair out",
        FAIR_BUFFERS,
        "    for (unsigned i = 0; i < buffer.size(); ++i) {\n"
        "      const unsigned at = nodes.rank_from_right",
        "    for (unsigned i = {planted} ? 1 : 0; i < buffer.size(); ++i) {\n"
        "      const unsigned at = nodes.rank_from_right",
        FAIR_UNIT,
    ),
    Bug(
        "fastfair buffers: a merge ends the chain before its pairs are in the leaf",
        FAIR_BUFFERS,
        "  if (pm.commits_as_one()) {\n    pm.commit(changes_to",
        "  if ({planted}) end();\n"
        "  if (pm.commits_as_one()) {\n    pm.commit(changes_to",
        FAIR_B,
    ),
    Bug(
        "fastfair buffers: the right one of two new leaves lacks its first pair",
        FAIR_ANEW,
        "all.subspan(kept), next);\n",
        "all.subspan(kept + ({planted} ? 1 : 0)), next);\n",
        FAIR_UNIT,
    ),
    swap_part(
        "fastfair buffers: a new leaf is not durable before it is linked",
        FAIR_ANEW,
        "pm().stream(pool_.template at<Node>(offset), &made, sizeof made)",
        "stream",
        "copy",
        FAIR_BO,
        after="pm::Offset make_leaf(",
    ),
    Bug(
        "fastfair buffers: the entry above a new leaf may still lead to the old one",
        FAIR_ANEW,
        LINK_ANEW,
        "session.commit(pm::set_word(*before, made));\n"
        "      pm().store(*entry, made);\n"
        "      pm().persist(entry, sizeof *entry);\n",
        FAIR_BO,
    ),
    Bug(
        "fastfair buffers: the entry above a new leaf is not flushed",
        FAIR_ANEW,
        LINK_ANEW,
        "session.commit(pm::set_word(*before, made));\n      pm().store(*entry, made);\n",
        FAIR_BO,
    ),
    drop(
        "fastfair buffers: a leaf that was written anew is lost",
        FAIR_ANEW,
        "session.free(nodes_.offset(leaf))",
        FAIR_BO,
    ),
    Bug(
        "fastfair buffers: new leaves share a number",
        FAIR_ANEW,
        "    number_of(made) = buffers_.draw_number();\n",
        "    number_of(made) = {planted} ? 1 : buffers_.draw_number();\n",
        FAIR_BO,
    ),
    Bug(
        "fastfair buffers: a leaf is merged away with what its buffer holds",
        FAIR_MERGE,
        "      if (buffer != nullptr && !buffers_->merge_in_place(nodes_.held(*node), *buffer)) "
        "return false;\n",
        "      if (buffer != nullptr) buffer->clear();\n",
        FAIR_UNIT,
    ),
    # --- After a restart ---
    drop(
        "fastfair buffers: a leaf is written to before its chain is adopted",
        FASTFAIR,
        "if (!buffers_.ready(seen))",
        FAIR_UNIT,
    ),
    Bug(
        "fastfair buffers: an interrupted merge is not completed",
        BUFFERED,
        "    interrupted = true;\n",
        "    interrupted = !{planted};\n",
        FAIR_B,
    ),
    Bug(
        "fastfair buffers: pairs that a merge has moved are buffered again",
        BUFFERED,
        "    if (!homes_.has_word(home, buffer.key(i))) continue;\n",
        "    if ({planted} || !homes_.has_word(home, buffer.key(i))) continue;\n",
        FAIR_B,
    ),
    drop(
        "fastfair buffers: a drop forgets the strings in the log",
        FAIR_OWNED,
        "take_from_log<K>",
        FAIR_B_STRINGS,
    ),
    # --- The cached path ---
    drop(
        "fastfair path: a leaf that is merged away stays in it",
        FAIR_MERGE,
        "if (in_path) descent_.path()",
        (*CACHED_SCHEDULES, *FAIR_PATH_UNIT),
    ),
    drop(
        "fastfair path: a search does not see that its leaf is merged away",
        FAIR_MERGE,
        "if (in_path) mark_as_gone",
        (*CACHED_SCHEDULES, *FAIR_PATH_UNIT),
    ),
    drop(
        "fastfair path: a leaf that is written anew stays in it",
        FAIR_ANEW,
        "if (path != nullptr) path->remove",
        (*CACHED_SCHEDULES, *FAIR_PATH_UNIT),
    ),
    drop(
        "fastfair path: a search does not see that its leaf is written anew",
        FAIR_ANEW,
        "if (linked) mark_as_gone",
        (*CACHED_SCHEDULES, *FAIR_PATH_UNIT),
    ),
    drop(
        "fastfair path: the leaf of a split is missing in a path that is complete",
        FAIR_SMO,
        "if (level == 0 && descent_.path() != nullptr)",
        FAIR_PATH_UNIT,
    ),
    drop(
        "fastfair buffers: what only resumption needs is kept when it has ended",
        HOME_BUFFERS,
        "forget_resumed();",
        HELD_UNIT,
    ),
]
