"""Bugs of what the write buffers of FAST&FAIR, CCEH and the skip list share, and of the walk that
says which blocks an index owns."""

from bug import BUFFER_EXCHANGE, BUFFERED, OWNED, Bug, drop, drop_part, swap_part, unit

BUFFERED_UNIT = (unit("src/index/common/index_common_test", "Buffered*"),)
EXCHANGE_UNIT = (unit("src/index/common/index_common_test", "BufferExchange*"),)
OWNED_UNIT = (unit("src/index/common/index_common_test", "Owned*"),)

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
    swap_part(
        "buffers: a buffer beyond the budget is handed on",
        BUFFER_EXCHANGE,
        "return shed(buffer) ? 0",
        "shed(buffer) ? 0 : ",
        "",
        BUFFERED_UNIT,
    ),
    drop_part(
        "buffers: a home counts as that of a buffer which it has lost before it was locked",
        BUFFER_EXCHANGE,
        "if (!lock || this->of(place) != &buffer)",
        " || this->of(place) != &buffer",
        EXCHANGE_UNIT,
    ),
    drop(
        "buffers: a merged buffer beyond the budget stays with its home",
        BUFFERED,
        "buffers_.shed(buffer)",
        BUFFERED_UNIT,
        after="Buffered<Homes>::merge(Locked& home",
    ),
    drop(
        "buffers: a home that can have no number takes the buffer of another",
        BUFFERED,
        "if (!Homes::kMoves && owner_of(home) == 0)",
        BUFFERED_UNIT,
    ),
    Bug(
        "owned: a check does not ask whether a block is allocated",
        OWNED,
        "expect(allocator_.validate_block(at, bytes),",
        "expect({planted} || allocator_.validate_block(at, bytes),",
        OWNED_UNIT,
    ),
    drop(
        "owned: a drop frees only what its first release names",
        OWNED,
        "at = step.next",
        OWNED_UNIT,
    ),
]
