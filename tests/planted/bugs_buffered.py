"""Bugs of what the write buffers of FAST&FAIR, CCEH and the skip list share."""

from bug import BUFFERED, Bug, drop, drop_part, swap_part, unit

BUFFERED_UNIT = (unit("src/index/common/index_common_test", "Buffered*"),)

BUGS = [
    drop(
        "buffers: a home is looked for by what led to it when it got its buffer",
        BUFFERED,
        "note.store(note, std::memory_order_relaxed)",
        BUFFERED_UNIT,
        after="Buffered<Homes>::begin_chain(",
    ),
    drop_part(
        "buffers: updates make a chain longer than its buffer allows",
        BUFFERED,
        "if (buffer.records >= max_records()",
        "buffer.records >= max_records() || ",
        BUFFERED_UNIT,
    ),
    swap_part(
        "buffers: a pair that its home has by a merge stays in the chain",
        BUFFERED,
        "Homes::kMergeTakesSpace ? forget(buffer, i)",
        "forget(buffer, i)",
        "buffer.remove(i)",
        BUFFERED_UNIT,
    ),
    Bug(
        "buffers: beyond the budget a home is written anew that has room",
        BUFFERED,
        "(!may_split || is_beyond) && merge_without_space",
        "(!may_split || (is_beyond && !{planted})) && merge_without_space",
        BUFFERED_UNIT,
    ),
]
