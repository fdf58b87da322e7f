"""Bugs of FAST&FAIR."""

from bug import (
    FAIR,
    FAIR_OWNED,
    FAIR_HEAD,
    FAIR_MERGE,
    FAIR_NODES,
    FAIR_SMO,
    FAIR_STORE,
    FAIR_STRINGS,
    FASTFAIR,
    SHIFT,
    Bug,
    drop,
    drop_part,
    swap_part,
    unit,
)

BUGS = [
    # --- FAST&FAIR ---
    drop(
        "fastfair: an entry is counted before it is durable",
        SHIFT,
        "pm.flush(&node.entries[count], sizeof(Entry))",
        FAIR,
    ),
    Bug(
        "fastfair: the last entry is overwritten before its copy is counted, durably",
        SHIFT,
        "  pm.publish(node.meta, meta_with(node, count + 1));\n",
        "  pm.store(node.meta, meta_with(node, count + 1));\n"
        "  if (at == count) pm.persist(&node.meta, sizeof node.meta);\n",
        FAIR,
    ),
    drop(
        "fastfair: a shift goes into the next line before the last one is durable",
        SHIFT,
        "if (begins_line(i))",
        FAIR,
    ),
    Bug(
        "fastfair: the new key comes before its value",
        SHIFT,
        "  pm.store(node.entries[at].value, entry.value);  // not persisted: the same line as the "
        "commit\n"
        "  pm.publish(node.entries[at].key, entry.key);    // the commit (S3)\n",
        "  pm.publish(node.entries[at].key, entry.key);\n"
        "  pm.store(node.entries[at].value, entry.value);\n"
        "  pm.persist(&node.entries[at], sizeof(Entry));\n",
        FAIR,
    ),
    Bug(
        "fastfair: erase of the last pair flushes the wrong line (FAST&FAIR)",
        SHIFT,
        "    pm.publish(commit.word, commit.value);  // the commit\n    return;\n",
        "    pm.store(commit.word, commit.value);\n"
        "    pm.persist(&node.entries[at], sizeof(Entry));\n"
        "    return;\n",
        FAIR,
    ),
    Bug(
        "fastfair: erase flushes the wrong line, and frees what the pair had (FAST&FAIR)",
        FAIR_STORE,
        "    session.commit(pm::set_word(commit.word, commit.value));\n",
        "    session.commit_when(commit.word, ~Word{0}, commit.value);\n"
        "    session.log();\n"
        "    pm().store(commit.word, commit.value);\n"
        "    pm().persist(&leaf.meta, sizeof leaf.meta);\n"
        "    session.finish();\n",
        FAIR_STRINGS,
    ),
    drop(
        "fastfair: closing a gap goes into the next line before the last one is durable",
        SHIFT,
        "if (ends_line(i))",
        FAIR,
    ),
    Bug(
        "fastfair: closing a gap takes the key along before the value",
        SHIFT,
        "    pm.store(node.entries[i].value, pm::load(node.entries[i + 1].value));\n"
        "    if (i + 1 == last) {\n",
        "    if (i + 1 < last)"
        " pm.store(node.entries[i + 1].key, pm::load(node.entries[i + 2].key));\n"
        "    pm.store(node.entries[i].value, pm::load(node.entries[i + 1].value));\n"
        "    if (i + 1 == last) {\n",
        FAIR,
    ),
    drop(
        "fastfair: the count leaves out the last entry before its copy is durable",
        SHIFT,
        "pm.persist(&node.entries[i], sizeof(Entry))",
        FAIR,
        after="close_gap(const pm::Persister& pm, Node& node, unsigned at)",
    ),
    Bug(
        "fastfair: equal values, not equal keys, mark an interrupted shift (FAST&FAIR: equal "
        "neighbours confuse the shift detection)",
        SHIFT,
        "         pm::load(node.entries[i].key) == pm::load(node.entries[i + 1].key);\n",
        "         ({planted} ? pm::load(node.entries[i].value) =="
        " pm::load(node.entries[i + 1].value)\n"
        "                    : pm::load(node.entries[i].key) =="
        " pm::load(node.entries[i + 1].key));\n",
        FAIR_STRINGS,
    ),
    drop_part(
        "fastfair: an insert names the count as its commit, wherever it is",
        SHIFT,
        "if (at == count)",
        "if (at == count) ",
        FAIR_STRINGS,
        after="commit_of_insert(Node& node, unsigned at, Entry entry)",
    ),
    drop(
        "fastfair: erase goes on in a node with an interrupted insert (FAST&FAIR: a half-shifted "
        "insert followed by an erase loses a pair)",
        FASTFAIR,
        "if (remove_copies(pm(), *leaf.node))",
        FAIR,
    ),
    drop(
        "fastfair: erase leaks the key",
        FAIR_STORE,
        "Keys::free(session, entry.key)",
        FAIR_STRINGS,
    ),
    drop(
        "fastfair: split leaves the moved entries behind after a crash: no redo",
        FAIR_SMO,
        "session.redo(*second.word, second.value)",
        FAIR,
    ),
    Bug(
        "fastfair: split links the new node before its record is there: it leaks",
        FAIR_SMO,
        "  session.log();\n"
        "  pm.publish(*first.word, first.value);  // the commit; what it links is durable since "
        "log()\n",
        "  pm.fence();\n  pm.publish(*first.word, first.value);\n  session.log();\n",
        FAIR,
    ),
    drop_part(
        "fastfair: split does not flush the moved entries",
        FAIR_SMO,
        "pm().flush(&right, offsetof(Node, entries) + moved * sizeof(Entry))",
        " + moved * sizeof(Entry)",
        FAIR,
        after="Node* split(",
    ),
    swap_part(
        "fastfair: split drops the next pointer of the new node",
        FAIR_SMO,
        "pm().store(right.next, pm::load(node.next))",
        "load(node.next)",
        "kNull",
        FAIR,
    ),
    drop(
        "fastfair: the new root is used before it is durable (FAST&FAIR: root split)",
        FAIR_SMO,
        "pm().flush(&top, offsetof(Node, entries) + sizeof(Entry))",
        FAIR,
    ),
    Bug(
        "fastfair: a node without an entry above is not found (FAST&FAIR: a split sends an insert "
        "to the wrong node)",
        FAIR_NODES,
        "    if (next == pm::kNull || !target.reaches(low_of(at(next)))) return nullptr;\n"
        "    return after(node);\n",
        "    if (next != pm::kNull) return nullptr;\n    return after(node);\n",
        FAIR,
    ),
    drop(
        "fastfair: merge frees a node to which its parent leads (FAST&FAIR: merge)",
        FAIR_MERGE,
        "remove_entry(pm(), parent, at)",
        FAIR,
    ),
    drop(
        "fastfair: merge does not flush the moved entries",
        FAIR_MERGE,
        "pm().flush(left.entries.data() + count, (filled - count) * sizeof(Entry))",
        FAIR,
        after="bool merge_pair(",
    ),
    drop(
        "fastfair: merge leaks the emptied node",
        FAIR_MERGE,
        "session.free(nodes_.offset(right))",
        FAIR,
    ),
    drop(
        "fastfair: merge leaks the bound of the emptied leaf",
        FAIR_MERGE,
        "if (meta_of(left).level == 0)",
        FAIR_STRINGS,
    ),
    drop(
        "fastfair: a new tree links its leaf before the leaf is durable (FAST&FAIR: the "
        "constructor's stores are never flushed)",
        FAIR_HEAD,
        "pm.flush(&leaf, offsetof(Node, entries))",
        FAIR,
    ),
    drop_part(
        "fastfair: dropping leaks the bounds of leaves",
        FAIR_OWNED,
        ".add_key<K>(pm::load(leaf.low))",
        ".add_key<K>(pm::load(leaf.low))",
        FAIR_STRINGS,
    ),
    drop(
        "fastfair: dropping frees what a copy refers to, which the pair beside it has, too",
        FAIR_OWNED,
        "remove_copies(pool.pm(), leaf)",
        FAIR_STRINGS,
    ),
    Bug(
        "fastfair: a node that became a first child gets an entry, too",
        FAIR_SMO,
        "      if (pm::load(after > 0 ? node.entries[after - 1].key : node.low) == word) "
        "return true;\n",
        "      if ((!{planted} || after > 0) &&\n"
        "          pm::load(after > 0 ? node.entries[after - 1].key : node.low) == word)\n"
        "        return true;\n",
        (unit("src/index/fastfair/fastfair_install_test", "*"),),
    ),
]
