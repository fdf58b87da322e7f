"""Bugs of the skip list.

Two changes are no bugs, and so are not planted: a lookup that does not find its key may come from a
node that was erased, since that was in the list after the search had begun, and its link leads to
what was behind it then; and it need not validate the version of that node.
"""

from bug import (
    SKIP,
    SKIP_OWNED,
    SKIP_LOOKUPS,
    SKIP_NODES,
    SKIP_RECOVERY,
    SKIP_STRINGS,
    SKIP_TOWERS,
    SKIP_UNIT,
    SKIP_WAYS,
    SKIP_WRITER,
    Bug,
    drop,
    drop_part,
    schedules,
    store_for_publish,
    swap_part,
    unit,
)

SCHEDULES = (
    schedules("--engine skiplist --domain memory_controller --reopen"),
    schedules("--engine skiplist --domain memory_controller --reopen --beginning contested"),
)
CACHED_SCHEDULES = tuple(
    schedules(
        f"--engine skiplist --domain memory_controller --technique boc --dram-budget 1G {more}"
    )
    for more in ("--reopen", "--reopen --beginning contested")
)

# Where lists without upper levels take no time, and none of what is wrong makes a call hang.
TOWERS = (unit("src/index/skiplist/skiplist_test", "SkipListTowers.*"),)

BUGS = [
    # --- A node comes ---
    drop(
        "skiplist: a node is linked before it is durable",
        SKIP_TOWERS,
        "pm().flush(&node, used * sizeof words[0])",
        SKIP,
    ),
    Bug(
        "skiplist: the links of a node's upper levels lead to its neighbour in level 0",
        SKIP_TOWERS,
        "return nodes_.offset_of(path.at[level].next); });\n",
        "return nodes_.offset_of(path.at[{planted} ? 0 : level].next); });\n",
        SKIP_UNIT,
    ),
    Bug(
        "skiplist: a node comes into its upper levels before it is in level 0",
        SKIP_TOWERS,
        "      session.commit_then(pm::set_word(path.link_before(0), link),\n"
        "                          [&] { link_tower(path, height, link); });\n",
        "      link_tower(path, height, link);\n"
        "      session.commit(pm::set_word(path.link_before(0), link));\n",
        SKIP,
    ),
    swap_part(
        "skiplist: the latches of a node are released before it is durably in level 1",
        SKIP_TOWERS,
        "session.commit_then",
        "commit_then",
        "commit",
        (
            schedules(
                "--engine skiplist --domain memory_controller --reopen --beginning many",
                runs=10000,
            ),
        ),
    ),
    drop(
        "skiplist: a node may be in level 2 and not in level 1",
        SKIP_TOWERS,
        "if (level > 1)",
        SKIP,
        after="void link_tower(",
    ),
    Bug(
        "skiplist: a node comes into its upper levels from above",
        SKIP_TOWERS,
        "    for (unsigned level = 1; level < height; ++level) {\n",
        "    for (unsigned i = 1, level = 1; i < height && "
        "(level = {planted} ? height - i : i) != 0; ++i) {\n",
        SKIP,
    ),
    drop(
        "skiplist: the link of an upper level is not flushed",
        SKIP_TOWERS,
        "pm().flush(&link, sizeof link)",
        SKIP,
        after="void link_tower(",
    ),
    drop(
        "skiplist: a node is higher than all levels, and they are not searched",
        SKIP_NODES,
        "if (height > levels())",
        TOWERS,
    ),
    # --- A node goes ---
    drop(
        "skiplist: an erased node stays in its upper levels",
        SKIP_TOWERS,
        "unlink_tower(path, linked)",
        TOWERS,
    ),
    drop(
        "skiplist: an erased node leaves its upper levels, but not durably",
        SKIP_TOWERS,
        "pm().flush(&link, sizeof link)",
        SKIP,
        after="void unlink_tower(",
    ),
    drop(
        "skiplist: an erased node leaves level 1 before level 2",
        SKIP_TOWERS,
        "if (level > 1)",
        SKIP,
        after="void unlink_tower(",
    ),
    Bug(
        "skiplist: a node leaves its upper levels when it has left level 0",
        SKIP_TOWERS,
        "      unlink_tower(path, linked);\n"
        "      session.commit(pm::set_word(path.link_before(0), behind.pack()), mark);\n",
        "      session.commit(pm::set_word(path.link_before(0), behind.pack()), mark);\n"
        "      unlink_tower(path, linked);\n",
        SKIP,
    ),
    Bug(
        "skiplist: a node is marked as erased before it is",
        SKIP_TOWERS,
        "      unlink_tower(path, linked);\n",
        "      mark();\n      unlink_tower(path, linked);\n",
        SKIP,
    ),
    Bug(
        "skiplist: an erased node is not marked",
        SKIP_TOWERS,
        "    const auto mark = [&] { pm().store(node.first, Link{behind.node, true}.pack()); };\n",
        "    const auto mark = [&] { pm().store(node.first, "
        "Link{behind.node, !{planted}}.pack()); };\n",
        SCHEDULES,
    ),
    drop(
        "skiplist: a node that is erased leaks",
        SKIP_TOWERS,
        "session.free(nodes_.pool().offset(&node))",
        SKIP,
    ),
    drop(
        "skiplist: the key of a node that is erased leaks",
        SKIP_TOWERS,
        "Keys::free(session, pm::load(node.key))",
        SKIP_STRINGS,
    ),
    drop(
        "skiplist: the value of a node that is erased leaks",
        SKIP_TOWERS,
        "values_.free(session, pm::load(node.value))",
        SKIP_STRINGS,
    ),
    Bug(
        "skiplist: a node is taken out of levels that a crash has kept it from",
        SKIP_TOWERS,
        "    while (linked < std::min(height, path.levels) && "
        "path.at[linked].next == path.at[0].next)\n",
        "    while (linked < std::min(height, path.levels) && "
        "({planted} || path.at[linked].next == path.at[0].next))\n",
        SKIP_UNIT,
    ),
    # --- Threads ---
    drop(
        "skiplist: a node is put behind one that was erased",
        SKIP_TOWERS,
        "if (nodes_.is_gone(*at.before, erased))",
        SCHEDULES,
    ),
    Bug(
        "skiplist: a writer does not look again what is in level 0",
        SKIP_TOWERS,
        "      if (load_link(*at.before, level).node != nodes_.offset_of(at.next)) return false;\n",
        "      if (level > 0 && load_link(*at.before, level).node != nodes_.offset_of(at.next)) "
        "return false;\n",
        SCHEDULES,
    ),
    Bug(
        "skiplist: a writer does not look again what is in upper levels",
        SKIP_TOWERS,
        "      if (load_link(*at.before, level).node != nodes_.offset_of(at.next)) return false;\n",
        "      if (level == 0 && load_link(*at.before, level).node != nodes_.offset_of(at.next)) "
        "return false;\n",
        SCHEDULES,
    ),
    Bug(
        "skiplist: another thread may go on from a node that is not durable",
        SKIP_TOWERS,
        "    all[count++] = &own;\n",
        "    (void)own;\n",
        SCHEDULES,
    ),
    drop_part(
        "skiplist: only the node before in level 0 is locked",
        SKIP_TOWERS,
        "if (level > 0 && path.at[level].before == path.at[level - 1].before)",
        " && path.at[level].before == path.at[level - 1].before",
        SCHEDULES,
        after="bool lock(",
    ),
    drop_part(
        "skiplist: a lookup does not wait until a node is durable",
        SKIP_LOOKUPS,
        "if (seen.valid())",
        "if (seen.valid()) ",
        SCHEDULES,
    ),
    Bug(
        "skiplist: a lookup shows the value of an erased node",
        SKIP_LOOKUPS,
        "    if (!valid) return std::nullopt;\n",
        "    valid = true;\n",
        SCHEDULES,
    ),
    drop(
        "skiplist: a lookup that finds nothing does not wait until that is durable",
        SKIP_NODES,
        "latch_of(*neighbours.before)",
        SCHEDULES,
    ),
    Bug(
        "skiplist: a scan does not validate what it shows",
        SKIP_LOOKUPS,
        "    if (!at.valid()) {  // it may be gone, and a node that came between it and the "
        "next was not seen\n",
        "    if (!{planted} && !at.valid()) {\n",
        SCHEDULES,
    ),
    drop_part(
        "skiplist: a scan goes on at a node that was erased between two batches",
        SKIP_LOOKUPS,
        "if (at.node == nullptr || !at.valid())",
        " || !at.valid()",
        SKIP_UNIT,
    ),
    # --- Values ---
    store_for_publish(
        "skiplist: an update is not flushed",
        SKIP_WRITER,
        "nodes_.pm().publish(node.value, value.word())",
        SKIP,
    ),
    drop(
        "skiplist: the value that is replaced leaks",
        SKIP_WRITER,
        "values_.free(session, old_word)",
        SKIP_STRINGS,
    ),
    drop(
        "skiplist: a value is written to a node that was erased",
        SKIP_WRITER,
        "if (nodes_.is_gone(node, erased))",
        SCHEDULES,
    ),
    # --- Creation, opening and drop ---
    drop(
        "skiplist: the head is not durable when the index is there",
        SKIP_RECOVERY,
        "pool.pm().flush",
        SKIP,
    ),
    Bug(
        "skiplist: an opening forgets the upper levels",
        SKIP_NODES,
        "        levels_(levels_in_use(head)) {}\n",
        "        levels_({planted} ? 0 : levels_in_use(head)) {}\n",
        TOWERS,
    ),
    drop_part(
        "skiplist: a drop forgets the keys",
        SKIP_OWNED,
        ".add_key<K>(pm::load(node.key))",
        ".add_key<K>(pm::load(node.key))",
        SKIP_STRINGS,
    ),
    swap_part(
        "skiplist: a drop loses what comes behind the first node",
        SKIP_OWNED,
        "return ListStep",
        "load_link(node, 0).node",
        "pm::kNull",
        SKIP,
    ),
    # --- The cached path ---
    drop(
        "skiplist: an erased node stays in the cached path",
        SKIP_WAYS,
        "path_->remove(node)",
        CACHED_SCHEDULES,
    ),
    drop_part(
        "skiplist: an erased node comes into the cached path",
        SKIP_WAYS,
        "return !is_erased",
        " !is_erased(node) &&",
        CACHED_SCHEDULES,
    ),
    drop(
        "skiplist: a new tall node is missing in a path that is complete",
        SKIP_TOWERS,
        "if (height >= kTall)",
        SKIP_UNIT,
    ),
    Bug(
        "skiplist: a tall node is erased on the levels of a short way only",
        SKIP_WRITER,
        "    if (height >= kTall && ways_.are_cached()) {\n",
        "    if (!{planted} && height >= kTall && ways_.are_cached()) {\n",
        SKIP_UNIT,
    ),
]
