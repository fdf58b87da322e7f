"""Bugs of SpTree and its write buffers."""

from bug import (
    BOUND,
    BUFFERED_STRINGS,
    BUFFERS,
    FAIR,
    LEAF_ORDERS,
    LEAF_STORE,
    NODE_BUFFERS,
    OWNED,
    PAIR_RECORDS,
    REPLAY,
    SPTREE,
    SPTREE_OWNED,
    SPTREE_RECOVERY,
    SPTREE_RESUME,
    STRINGS,
    STRUCTURE,
    TREE,
    WORD,
    Bug,
    drop,
    drop_part,
    swap_part,
)

BUGS = [
    # --- SpTree: point operations ---
    Bug(
        "insert sets the bit before the pair is stored (Level hashing: the token before key "
        "and value)",
        LEAF_STORE,
        """  store_pair(pair_at(leaf, slot), inline_word(key), value.word());
  // Phase 1: the pair is durable before its bit can be. Phase 2: the bit is the commit.
  pm().commit(bitmap, with_bit);
""",
        """  pm().publish(bitmap, with_bit);
  store_pair(pair_at(leaf, slot), inline_word(key), value.word());
  pm().fence();
""",
        TREE,
    ),
    swap_part(
        "insert flushes the key but not the value's line",
        LEAF_STORE,
        "pm().flush(&pair, sizeof pair)",
        "&pair",
        "&pair - 4",
        TREE,
    ),
    Bug(
        "insert of a string does not log: blocks leak or are given out twice",
        LEAF_STORE,
        "  session.commit({&bitmap, bit, bit});\n",
        """  session.commit_when(bitmap, bit, bit);
  pm().fence();
  pm().store(bitmap, pm::load(bitmap) | bit);
  session.log();
  pm().flush(&bitmap, sizeof bitmap);
  session.finish();
""",
        STRINGS,
    ),
    Bug(
        "insert names the wrong slot's bit as its commit",
        LEAF_STORE,
        "  session.commit({&bitmap, bit, bit});\n",
        """  session.commit_when(bitmap, bit << 1, bit << 1);
  session.log();
  pm().store(bitmap, pm::load(bitmap) | bit);
  pm().flush(&bitmap, sizeof bitmap);
  session.finish();
""",
        TREE,
    ),
    drop(
        "update of a string leaks the old value",
        LEAF_STORE,
        "values_.free(session, old_word)",
        STRINGS,
    ),
    Bug(
        "update of a string frees the new value's block when it did not happen, and not when "
        "it did",
        LEAF_STORE,
        "  session.commit(pm::set_word(word, new_word));  // the new blob is durable before\n",
        """  session.commit_when(word, Word{0}, 0);
  session.log();
  pm().publish(word, new_word);
  session.finish();
""",
        STRINGS,
    ),
    drop(
        "erase leaks the key",
        LEAF_STORE,
        "Keys::free(session, pm::load(pair.key))",
        STRINGS,
    ),
    drop(
        "erase leaks the value",
        LEAF_STORE,
        "values_.free(session, pm::load(pair.value))",
        STRINGS,
    ),
    swap_part(
        "erase clears the bit in DRAM only: the pair comes back (FAST&FAIR, wrong line flushed)",
        LEAF_STORE,
        "pm().publish(bitmap, without_bit)",
        "without_bit",
        "pm::load(bitmap)",
        TREE,
    ),
    Bug(
        "insert does not look for the key: two slots hold it (NBTree, duplicate inserts)",
        SPTREE,
        "      if (mode == Mode::insert || !value_is(found, expected)) return leave(*node);\n",
        "      if (mode == Mode::insert && add(*node, key, value, hash)) return true;\n",
        TREE,
    ),
    # --- SpTree: structure modifications ---
    Bug(
        "split links the new leaf before the left one lets go of its pairs (SPTree, stale copies)",
        STRUCTURE,
        "  session.commit(pm::set_word(left.link, link));  // from here on the new leaf owns what "
        "moved\n",
        """  session.commit_when(left.link, ~std::uint64_t{0}, link);
  session.log();
  pm().store(left.link, link ^ kSelector);
  pm().store(left.link, link);
  pm().flush(&left, offsetof(Leaf, pairs));
  session.finish();
""",
        TREE,
    ),
    Bug(
        "split clears the left leaf's bits before the new leaf is linked",
        STRUCTURE,
        """  stage_slots(pm(), left, taken - moved_slots);
""",
        """  publish_slots(pm(), left, taken - moved_slots);
  stage_slots(pm(), left, taken - moved_slots);
""",
        TREE,
    ),
    swap_part(
        "split drops the next pointer of the new leaf",
        STRUCTURE,
        "pm().store(right.link, successor_of(*node.leaf()))",
        "successor_of(*node.leaf())",
        "pm::kNull",
        TREE,
    ),
    drop(
        "split does not flush the moved pairs",
        STRUCTURE,
        "flush_pairs(pm(), right, right_slots)",
        TREE,
    ),
    Bug(
        "split links the new leaf before its record is there: it leaks",
        STRUCTURE,
        "  session.commit(pm::set_word(left.link, link));  // from here on the new leaf owns what "
        "moved\n",
        """  session.commit_when(left.link, ~std::uint64_t{0}, link);
  pm().fence();
  pm().store(left.link, link);
  session.log();
  pm().flush(&left, offsetof(Leaf, pairs));
  session.finish();
""",
        TREE,
    ),
    drop_part(
        "split does not clear the moved pairs' bits at all",
        STRUCTURE,
        "stage_slots(pm(), left, taken - moved_slots)",
        " - moved_slots",
        TREE,
    ),
    Bug(
        "split keeps one pair in both leaves",
        STRUCTURE,
        "    if (!entry.buffered()) moved_slots.add(entry.place);\n",
        "    if (!entry.buffered() && &entry != &moving.front()) moved_slots.add(entry.place);\n",
        TREE,
    ),
    Bug(
        "merge gives the left leaf its pairs before the right one is unlinked (SPTree, stale "
        "copies)",
        STRUCTURE,
        "  stage_slots(pm(), left, node.slots());\n",
        "  publish_slots(pm(), left, node.slots());\n"
        "  stage_slots(pm(), left, node.slots());\n",
        TREE,
    ),
    Bug(
        "merge unlinks the right leaf before the left one owns its pairs",
        STRUCTURE,
        """  pm().publish(left.link, link);  // the commit
""",
        """  pm().publish(left.link, link ^ kSelector);
  pm().publish(left.link, link);
""",
        TREE,
    ),
    drop(
        "merge leaks the emptied leaf (WOART: emptied leaves leak)",
        STRUCTURE,
        "session.free(parts_.pool.offset(&right))",
        STRINGS,
    ),
    drop(
        "merge leaks the bound of the emptied leaf",
        STRUCTURE,
        "Keys::free(session, right.low)",
        STRINGS,
    ),
    Bug(
        "merge flushes only the first of the moved pairs",
        STRUCTURE,
        "  flush_pairs(pm(), leaf, to.slots() - old_slots);  // fenced by the caller's log()\n",
        "  const SlotSet moved = to.slots() - old_slots;\n"
        "  flush_pairs(pm(), leaf, SlotSet::of(moved.first() % kLeafPairs));\n",
        TREE,
    ),
    drop(
        "pairs go back to their columns before their copies are durable",
        STRUCTURE,
        "pm().fence()",
        TREE,
    ),
    Bug(
        "pairs that go back to their columns also stay where they were",
        STRUCTURE,
        "  const SlotSet slots = (taken | added) - left - erased;\n",
        "  const SlotSet slots = (taken | added) - ({planted} ? SlotSet() : left) - erased;\n",
        TREE,
    ),
    drop(
        "merge does not widen the range in DRAM",
        STRUCTURE,
        "right_node->high",
        TREE,
    ),
    # --- SpTree: opening, dropping, scanning ---
    drop(
        "a new index links its leaf before the leaf is durable (P-HOT: publish before the fence)",
        SPTREE_RECOVERY,
        "pm.flush(&leaf, offsetof(Leaf, pairs))",
        TREE,
    ),
    Bug(
        "recovery forgets the filters: lookups deny keys that are there",
        SPTREE_RESUME,
        """  parts_.nodes.fill_filter(*node, slots);
  count_pairs(*node);
""",
        "  for (const unsigned slot : slots) node->fingerprints[slot] = 1;\n"
        "  count_pairs(*node);\n",
        TREE,
    ),
    Bug(
        "recovery leaves ranges open",
        SPTREE_RESUME,
        "    high = NodeBounds::end_at(next != nullptr ? next->low\n",
        "    if (!{planted}) high = NodeBounds::end_at(next != nullptr ? next->low\n",
        TREE,
    ),
    Bug(
        "recovery loses the last leaf",
        SPTREE_RESUME,
        "  if (offset == pm::kNull) return nullptr;\n",
        "  if (offset == pm::kNull) return nullptr;\n"
        "  if ({planted} && successor_of(leaf_at(parts_.pool, offset)) == pm::kNull) "
        "return nullptr;\n",
        TREE,
    ),
    Bug(
        "dropping frees the strings after the leaf that leads to them",
        OWNED,
        "    session.commit(change);\n",
        "    session.log();\n    session.finish();\n    allocator_.session().commit(change);\n",
        STRINGS,
    ),
    drop_part(
        "dropping leaks the bounds of leaves",
        SPTREE_OWNED,
        ".add_key<K>(pm::load(leaf.low))",
        ".add_key<K>(pm::load(leaf.low))",
        STRINGS,
    ),
    Bug(
        "a scan skips a leaf's first key if it is where the leaf begins",
        LEAF_ORDERS,
        "  const auto below = [&](unsigned i) { return leaves_.keys().view(pairs.key(places[i])) < "
        "from; };\n",
        "  const auto below = [&](unsigned i) {\n"
        "    const Key key = leaves_.keys().view(pairs.key(places[i]));\n"
        "    return key < from || ({planted} && key == from);\n"
        "  };\n",
        TREE,
    ),
    Bug(
        "a range ends one key late",
        BOUND,
        "  static High end_at(Low successor) { return successor - 1; }\n",
        "  static High end_at(Low successor) { return {planted} ? successor : successor - 1; }\n",
        TREE,
    ),
    swap_part(
        "a string is flushed without its last line (P-CLHT: the wrong address flushed)",
        WORD,
        "flush(blob, size)",
        ", size",
        ", sizeof(Length)",
        STRINGS,
    ),
    # --- SpTree: write buffers ---
    swap_part(
        "a drop forgets what the chain of a leaf adds",
        SPTREE_OWNED,
        "publish_slots(pool.pm(), leaf, slots - chain.erased)",
        ", slots",
        ", before",
        BUFFERED_STRINGS,
    ),
    Bug(
        "a buffer's chain ends before the leaf says the same",
        NODE_BUFFERS,
        "  publish_slots(pm(), leaf, slots);  // phase 2: durable before the chain that says the "
        "same ends\n",
        "  log()->end(*buffer);\n  publish_slots(pm(), leaf, slots);\n",
        BUFFERS,
    ),
    drop(
        "a buffer's pairs are not durable before their bits",
        LEAF_STORE,
        "if (count > 0)",
        BUFFERS,
    ),
    Bug(
        "merging a buffer forgets its tombstones",
        NODE_BUFFERS,
        "  const SlotSet slots = placed.taken - buffer->erased_slots();\n",
        "  const SlotSet slots =\n"
        "      {planted} ? placed.taken : placed.taken - buffer->erased_slots();\n",
        BUFFERS,
    ),
    drop(
        "a tombstone stays in DRAM",
        NODE_BUFFERS,
        "log()->append(buffer, wal::Type::erase_slot, slot, 0)",
        BUFFERS,
    ),
    Bug(
        "a slot is used again while its tombstone is in the log",
        NODE_BUFFERS,
        "leaves_.place(leaf, taken_slots(node), count, ",
        "leaves_.place(leaf, {planted} ? node.slots() : taken_slots(node), count, ",
        BUFFERS,
    ),
    drop(
        "a buffered pair is erased in DRAM only",
        PAIR_RECORDS,
        "log.append_surely",
        BUFFERS,
        after="PairRecords<K>::remove(",
    ),
    drop(
        "a buffered value is replaced in DRAM only",
        PAIR_RECORDS,
        "log.append(buffer, wal::Type::put, buffer.key(i), value.word())",
        BUFFERS,
        after="PairRecords<K>::replace(",
    ),
    drop(
        "a buffered string that is replaced leaks",
        PAIR_RECORDS,
        "values_.free(session, old_word)",
        BUFFERED_STRINGS,
    ),
    Bug(
        "a split leaves the chain open: what moved away stays in it",
        STRUCTURE,
        "PairRecords<K>::end(*parts_.buffers.log(), *buffer);",
        "buffer->clear();",
        BUFFERED_STRINGS,
    ),
    Bug(
        "a split ends the chain before what stays has reached the leaf",
        STRUCTURE,
        "  if (slots != taken) publish_slots(pm(), leaf, slots);  // phase 2: the commit\n",
        "  if (buffer != nullptr) parts_.buffers.log()->end(*buffer);\n"
        "  if (slots != taken) publish_slots(pm(), leaf, slots);\n",
        BUFFERS,
    ),
    swap_part(
        "what a split merges goes to slots that the chain erases",
        STRUCTURE,
        "if (entry.buffered())",
        "taken",
        "node.slots()",
        BUFFERED_STRINGS,
    ),
    Bug(
        "a split keeps what the buffer has erased",
        STRUCTURE,
        "  const SlotSet erased = buffer == nullptr ? SlotSet() : buffer->erased_slots();\n",
        "  const SlotSet erased =\n"
        "      {planted} || buffer == nullptr ? SlotSet() : buffer->erased_slots();\n",
        BUFFERS,
    ),
    drop(
        "leaves merge with open chains (SPTree, stale copies)",
        STRUCTURE,
        "if (!parts_.buffers.merge(node) || !parts_.buffers.merge(*right_node))",
        BUFFERS,
    ),
    Bug(
        "the oldest record of a key counts, not the newest",
        REPLAY,
        "    if (std::find(seen.begin(), seen.end(), key) != seen.end()) return;\n",
        "    std::erase_if(live, [&](const auto& pair) { return pair.first == key; });\n",
        BUFFERS,
    ),
]
