"""Bugs of the write buffers of the skip list."""

from bug import (
    BUFFER_EXCHANGE,
    BUFFERED,
    SKIP_B,
    SKIP_BUFFERS,
    SKIP_B_STRINGS,
    SKIP_B_UNIT,
    SKIP_OWNED,
    SKIP_RANGE_LOOKUPS,
    SKIP_RANGE_WRITER,
    SKIP_RUNS,
    Bug,
    store_for_publish,
)

BUGS = [
    # --- Lookups ---
    Bug(
        "skiplist buffers: a lookup does not look into the buffer",
        SKIP_RANGE_LOOKUPS,
        "buffers.find(*owner.node, key)) {\n    value",
        "buffers.find(*owner.node, key); found && !{planted}) {\n    value",
        SKIP_B_UNIT,
    ),
    Bug(
        "skiplist buffers: scans do not show what buffers hold",
        SKIP_RANGE_LOOKUPS,
        "        i < buffered.size && ",
        "        !{planted} && i < buffered.size && ",
        SKIP_B_UNIT,
    ),
    Bug(
        "skiplist buffers: scans show a hollow node",
        SKIP_RANGE_LOOKUPS,
        "    const bool hollow = in_list && is_hollow(*node);\n",
        "    const bool hollow = in_list && !{planted} && is_hollow(*node);\n",
        SKIP_B_UNIT,
    ),
    Bug(
        "skiplist buffers: a hollow node has its value still",
        SKIP_RANGE_LOOKUPS,
        "node == nullptr || is_hollow(*node) ? ",
        "node == nullptr || (is_hollow(*node) && !{planted}) ? ",
        SKIP_B_UNIT,
    ),
    Bug(
        "skiplist buffers: the floor of a key is looked for in the list only",
        SKIP_RANGE_LOOKUPS,
        "    if (!bound.reaches(key) || (last",
        "    if ({planted} || !bound.reaches(key) || (last",
        SKIP_B_UNIT,
    ),
    Bug(
        "skiplist buffers: a floor is not looked for before a range whose owner is hollow",
        SKIP_RANGE_LOOKUPS,
        "    if (!last && owner.node != &nodes.head())\n",
        "    if (!last && owner.node != &nodes.head() && !{planted})\n",
        SKIP_B_UNIT,
    ),
    # --- Changes ---
    Bug(
        "skiplist buffers: an erase does not look into the buffer",
        SKIP_RANGE_WRITER,
        "ranges_.find(*range.node, key))\n      return erase_buffered(",
        "ranges_.find(*range.node, key); found && !{planted})\n      return erase_buffered(",
        SKIP_B_UNIT,
    ),
    store_for_publish(
        "skiplist buffers: the erase of an owner is not durable",
        SKIP_RANGE_WRITER,
        "ranges_.nodes().pm().publish(owner.meta, meta.pack())",
        SKIP_B,
    ),
    Bug(
        "skiplist buffers: a hollow node stays though nothing keeps it",
        SKIP_RANGE_WRITER,
        "    if (found.buffer->size() == 0 && is_hollow(*range.node)) {\n",
        "    if (found.buffer->size() == 0 && is_hollow(*range.node) && !{planted}) {\n",
        SKIP_B_UNIT,
    ),
    Bug(
        "skiplist buffers: a buffer that another range gets keeps its pairs",
        BUFFER_EXCHANGE,
        "      if (!home || !merge(home, buffer)) return 0;\n",
        "      if (!home) return 0;\n      buffer.clear();\n",
        SKIP_B_UNIT,
    ),
    # --- Merges ---
    Bug(
        "skiplist buffers: a merge leaves the last pair out",
        SKIP_BUFFERS,
        "      while (moved < run.size) moved",
        "      while (moved + {planted} < run.size) moved",
        SKIP_B_UNIT,
    ),
    Bug(
        "skiplist buffers: a node of a run leads to what is behind the run",
        SKIP_RUNS,
        "      next[0] = nodes_.pool().offset(&node);\n",
        "      if (!{planted}) next[0] = nodes_.pool().offset(&node);\n",
        SKIP_B_UNIT,
    ),
    Bug(
        "skiplist buffers: a merge ends the chain before its pairs are in the list",
        SKIP_BUFFERS,
        "      LowNodes low;\n      all.move_to_list(*owner.node, buffer, low);\n",
        "      LowNodes low;\n      if ({planted}) all.buffers_.log().end(buffer);\n"
        "      all.move_to_list(*owner.node, buffer, low);\n",
        SKIP_B,
    ),
    Bug(
        "skiplist buffers: a merge without space leaves pairs in list and buffer",
        SKIP_BUFFERS,
        "      for (unsigned i = 0; i < moved; ++i) remove_from_chain(",
        "      for (unsigned i = 0; i < moved && !{planted}; ++i) remove_from_chain(",
        SKIP_B_UNIT,
    ),
    Bug(
        "skiplist buffers: tall nodes of a merge stay low",
        SKIP_BUFFERS,
        "      end();\n      all.runs_.raise_all(low);\n",
        "      end();\n      if (!{planted}) all.runs_.raise_all(low);\n",
        SKIP_B_UNIT,
    ),
    # --- Restarts, drops ---
    Bug(
        "skiplist buffers: a range is used before its chain is adopted",
        SKIP_BUFFERS,
        "      if (seen.node != nullptr && buffers_.ready(seen)) return seen;\n",
        "      if (seen.node != nullptr && ({planted} || buffers_.ready(seen))) return seen;\n",
        SKIP_B_UNIT,
    ),
    Bug(
        "skiplist buffers: pairs that a merge has moved are buffered again",
        BUFFERED,
        "    if (!homes_.has_word(home, buffer.key(i))) continue;\n",
        "    if ({planted} || !homes_.has_word(home, buffer.key(i))) continue;\n",
        SKIP_B,
    ),
    Bug(
        "skiplist buffers: a drop forgets the strings in the log",
        SKIP_OWNED,
        "    free_logged_pairs<K>(pool, head, values);\n",
        "    if (!{planted}) free_logged_pairs<K>(pool, head, values);\n",
        SKIP_B_UNIT,
    ),
    Bug(
        "skiplist buffers: a drop frees pairs of the log that a merge has put into the list",
        SKIP_OWNED,
        "      if (is_in_list<K>(pool, node, key)) continue;\n",
        "      if (!{planted} && is_in_list<K>(pool, node, key)) continue;\n",
        (*SKIP_B_STRINGS, *SKIP_B_UNIT),
    ),
]
