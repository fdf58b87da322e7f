"""Bugs of the write buffers of CCEH."""

from bug import (
    BUFFER_EXCHANGE,
    BUFFERED,
    CCEH_B,
    CCEH_BO,
    CCEH_BUFFERS,
    CCEH_BUILDER,
    CCEH_B_STRINGS,
    CCEH_OWNED,
    CCEH_DIRECTORY,
    CCEH_SEARCH,
    CCEH_UNIT,
    HOME_BUFFERS,
    OWNER_NUMBERS,
    Bug,
    drop,
    schedules,
    store_for_publish,
)

BUFFERED_SCHEDULES = (schedules("--engine cceh --dram-budget 30000 --technique bo --reopen"),)
CACHED_SCHEDULES = (schedules("--engine cceh --dram-budget 30000 --technique boc --reopen"),)

BUGS = [
    # --- Changes ---
    Bug(
        "cceh buffers: a lookup does not look into the buffer",
        CCEH_SEARCH,
        "find_buffered(seen, key, hash)) {  // first",
        "find_buffered(seen, key, hash); found && !{planted}) {  // first",
        CCEH_UNIT,
    ),
    drop(
        "cceh buffers: pairs are shown without those of buffers",
        CCEH_SEARCH,
        "add({buffer->key(i), buffer->value(i)})",
        CCEH_UNIT,
    ),
    # --- Merging ---
    drop(
        "cceh buffers: a merge ends the chain before its pairs are durable",
        CCEH_BUFFERS,
        "if (!pm().commits_as_one())",
        CCEH_B,
    ),
    drop(
        "cceh buffers: the pairs of a merge are not flushed",
        CCEH_BUFFERS,
        "pm().flush(&slots[at].key, sizeof slots[at].key)",
        CCEH_B,
    ),
    Bug(
        "cceh buffers: a merge comes with the key before its value",
        CCEH_BUFFERS,
        "      pm().store(slots[at].value, filled.slots[at].value);  // not flushed: "
        "the same line as the key\n"
        "      pm().store(slots[at].key, filled.slots[at].key);\n",
        "      pm().store(slots[at].key, filled.slots[at].key);\n"
        "      pm().store(slots[at].value, filled.slots[at].value);\n",
        CCEH_B,
    ),
    Bug(
        "cceh buffers: the right half of a split lacks what the buffer has for it",
        CCEH_BUFFERS,
        "make_part(session, segment, part, &buffer)",
        "make_part(session, segment, part, {planted} && part == range.half(1) ? nullptr : &buffer)",
        CCEH_UNIT,
    ),
    Bug(
        "cceh buffers: a segment that is written anew keeps its number",
        CCEH_BUILDER,
        "    SegmentHead head{SegmentHead::kMagic, 0, 0, {}};\n",
        "    SegmentHead head{SegmentHead::kMagic, 0, "
        "{planted} ? pm::load(segments_.head_of(locked.entry).number) : 0, {}};\n",
        CCEH_BO,
    ),
    Bug(
        "cceh buffers: the overflow of a segment that is written anew is lost",
        CCEH_BUFFERS,
        "builder_.free(session, segment.entry);",
        "session.free(segment.entry.offset());",
        CCEH_BO,
    ),
    Bug(
        "cceh buffers: a buffer that another segment gets keeps its pairs",
        BUFFER_EXCHANGE,
        "      if (!home || !merge(home, buffer)) return 0;\n",
        "      if (!home) return 0;\n      buffer.clear();\n",
        CCEH_UNIT,
    ),
    Bug(
        "cceh buffers: a segment is joined though its buffer has pairs",
        CCEH_SEARCH,
        "    if (buffer != nullptr && !buffer->empty_chain()) return true;\n",
        "    if (buffer != nullptr && !buffer->empty_chain() && !{planted}) return true;\n",
        CCEH_UNIT,
    ),
    # --- After a restart ---
    drop(
        "cceh buffers: a segment is used before its chain is adopted",
        CCEH_SEARCH,
        "if (buffers_ == nullptr || buffers_->ready(seen))",
        CCEH_UNIT,
        after="SeenSegment locate(",
    ),
    Bug(
        "cceh buffers: an interrupted merge is not completed",
        BUFFERED,
        "    interrupted = true;\n",
        "    interrupted = !{planted};\n",
        CCEH_B,
    ),
    Bug(
        "cceh buffers: pairs that a merge has moved are buffered again",
        BUFFERED,
        "    if (!homes_.has_word(home, buffer.key(i))) continue;\n",
        "    if ({planted} || !homes_.has_word(home, buffer.key(i))) continue;\n",
        CCEH_B,
    ),
    drop(
        "cceh buffers: numbers come back after a restart",
        OWNER_NUMBERS,
        "pm_.publish(word_, drawn_ahead_)",
        CCEH_BO,
    ),
    store_for_publish(
        "cceh buffers: a record names a number that the segment may lose",
        HOME_BUFFERS,
        "if (drawn != 0)",
        CCEH_B,
    ),
    drop(
        "cceh buffers: a drop forgets the strings in the log",
        CCEH_OWNED,
        "take_from_log(segments, log",
        CCEH_B_STRINGS,
    ),
    # --- The copy of the directory ---
    drop(
        "cceh copy: a split changes the directory only",
        CCEH_DIRECTORY,
        "set_in_copy(begin, first)",
        CACHED_SCHEDULES,
    ),
    drop(
        "cceh copy: the right half keeps the entry of the whole",
        CCEH_DIRECTORY,
        "if (first.depth() > range.depth) set_in_copy",
        CACHED_SCHEDULES,
    ),
    drop(
        "cceh copy: a directory that doubles keeps its copy",
        CCEH_DIRECTORY,
        "if (copy_) copy_",
        CACHED_SCHEDULES,
    ),
    drop(
        "cceh copy: a segment is replaced in the directory only",
        CCEH_DIRECTORY,
        "set_in_copy(begin, entry)",
        CACHED_SCHEDULES,
        after="Directory::commit_replacement(",
    ),
]
