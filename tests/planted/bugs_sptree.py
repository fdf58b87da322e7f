"""Bugs of SpTree and its write buffers."""

from bug import (
    BOUND,
    BUFFERED,
    BUFFERED_STRINGS,
    BUFFERS,
    FAIR,
    REPLAY,
    SCAN,
    SMO,
    SPTREE,
    SPTREE_RECOVERY,
    SPTREE_RESUME,
    STRINGS,
    TREE,
    WORD,
    Bug,
)

BUGS = [
    # --- SpTree: point operations ---
    Bug(
        "insert sets the bit before the pair is stored (Level hashing: the token before key "
        "and value)",
        SPTREE,
        """    store_pair(key, value);
    pm().fence();                         // phase 1: the pair is durable before its bit can be
    pm().publish(leaf.bitmap, with_bit);  // phase 2: the commit
""",
        """    pm().publish(leaf.bitmap, with_bit);
    store_pair(key, value);
    pm().fence();
""",
        TREE,
    ),
    Bug(
        "insert flushes the key but not the value's line",
        SPTREE,
        "pm().flush(&pair, sizeof pair);  // fenced before the commit, below",
        "pm().flush(&pair - 4, sizeof pair);",
        TREE,
    ),
    Bug(
        "insert of a string does not log: blocks leak or are given out twice",
        SPTREE,
        """    session.commit_when(leaf.bitmap, bit, bit);
    session.log();                                 // phase 1: pair, blobs and record are durable
    pm().store(leaf.bitmap, with_bit);             // phase 2: the commit
""",
        """    session.commit_when(leaf.bitmap, bit, bit);
    pm().fence();
    pm().store(leaf.bitmap, with_bit);
    session.log();
""",
        STRINGS,
    ),
    Bug(
        "insert names the wrong slot's bit as its commit",
        SPTREE,
        "    session.commit_when(leaf.bitmap, bit, bit);\n    session.log();    ",
        "    session.commit_when(leaf.bitmap, bit << 1, bit << 1);\n    session.log();    ",
        TREE,
    ),
    Bug(
        "update of a string leaks the old value",
        SPTREE,
        "    Values::free(session, old_word);\n",
        "",
        STRINGS,
    ),
    Bug(
        "update of a string frees the new value's block when it did not happen, and not when "
        "it did",
        SPTREE,
        "    session.commit_when(word, ~Word{0}, new_word);\n",
        "    session.commit_when(word, Word{0}, 0);\n",
        STRINGS,
    ),
    Bug(
        "erase leaks the key",
        SPTREE,
        """    Keys::free(session, pm::load(pair.key));
    Values::free(session, pm::load(pair.value));
    session.commit_when(leaf.bitmap, bit, 0);
""",
        """    Values::free(session, pm::load(pair.value));
    session.commit_when(leaf.bitmap, bit, 0);
""",
        STRINGS,
    ),
    Bug(
        "erase leaks the value",
        SPTREE,
        """    Keys::free(session, pm::load(pair.key));
    Values::free(session, pm::load(pair.value));
    session.commit_when(leaf.bitmap, bit, 0);
""",
        """    Keys::free(session, pm::load(pair.key));
    session.commit_when(leaf.bitmap, bit, 0);
""",
        STRINGS,
    ),
    Bug(
        "erase clears the bit in DRAM only: the pair comes back (FAST&FAIR, wrong line flushed)",
        SPTREE,
        """    pm().publish(leaf.bitmap, without_bit);  // the commit
  } else {""",
        """    pm().publish(leaf.bitmap, taken_slots(node));
  } else {""",
        TREE,
    ),
    Bug(
        "insert does not look for the key: two slots hold it (NBTree, duplicate inserts)",
        SPTREE,
        "      if (mode == Mode::insert) return false;\n",
        "      if (mode == Mode::insert && add(*node, key, value, hash)) return true;\n",
        TREE,
    ),
    # --- SpTree: structure modifications ---
    Bug(
        "split leaves copies behind after a crash: no redo (SPTree, stale copies)",
        SMO,
        "  session.redo(left.bitmap, kept_bits);\n",
        "",
        TREE,
    ),
    Bug(
        "split clears the left leaf's bits before the new leaf is linked",
        SMO,
        """  pm().store(left.next, offset);
  pm().store(left.bitmap, kept_bits);
""",
        """  pm().store(left.bitmap, kept_bits);
  pm().store(left.next, offset);
""",
        TREE,
    ),
    Bug(
        "split drops the next pointer of the new leaf",
        SMO,
        "  pm().store(right.next, left.next);\n",
        "  pm().store(right.next, pm::kNull);\n",
        TREE,
    ),
    Bug(
        "split does not flush the moved pairs",
        SMO,
        "  pm().flush(&right, offsetof(Leaf, pairs) + "
        "std::bit_width(right_slots) * sizeof(Pair));\n",
        "  pm().flush(&right, offsetof(Leaf, pairs));\n",
        TREE,
    ),
    Bug(
        "split links the new leaf before its record is there: it leaks",
        SMO,
        """  session.log();
  // The commit: from here on the moved pairs belong to the new leaf. Both words lie in one line, so
  // the bits are never cleared in PM before.
  pm().store(left.next, offset);
""",
        """  pm().fence();
  pm().store(left.next, offset);
  session.log();
""",
        TREE,
    ),
    Bug(
        "split does not clear the moved pairs' bits at all",
        SMO,
        "  pm().store(left.bitmap, kept_bits);\n",
        "",
        TREE,
    ),
    Bug(
        "split keeps one pair in both leaves",
        SMO,
        "    if (!entry.buffered()) moved_slots |= bit_of(entry.place);\n",
        "    if (!entry.buffered() && i > 0) moved_slots |= bit_of(entry.place);\n",
        TREE,
    ),
    Bug(
        "merge leaves copies behind after a crash: no undo (SPTree, stale copies)",
        SMO,
        "  session.undo(left.bitmap, old_slots);\n",
        "",
        TREE,
    ),
    Bug(
        "merge unlinks the right leaf before the left one owns its pairs",
        SMO,
        """  pm().store(left.bitmap, node.slots());  // its slots, durable since log()
  pm().publish(left.next, right.next);    // the commit
""",
        """  pm().store(left.next, right.next);
  pm().publish(left.bitmap, node.slots());
""",
        TREE,
    ),
    Bug(
        "merge leaks the emptied leaf (WOART: emptied leaves leak)",
        SMO,
        "  session.free(pool().offset(&right));\n",
        "",
        STRINGS,
    ),
    Bug(
        "merge leaks the bound of the emptied leaf",
        SMO,
        "  Keys::free(session, right.low);\n",
        "",
        STRINGS,
    ),
    Bug(
        "merge flushes only the first of the moved pairs",
        SMO,
        "  flush_pairs(left, node.slots() & ~old_slots);  // log() fences before their bits are "
        "set\n",
        "  const std::uint64_t moved = node.slots() & ~old_slots;\n"
        "  flush_pairs(left, moved & -moved);\n",
        TREE,
    ),
    Bug(
        "pairs go back to their columns before their copies are durable",
        SMO,
        "  pm().fence();  // phase 1: the copies are durable before their bits can be\n",
        "",
        TREE,
    ),
    Bug(
        "pairs that go back to their columns also stay where they were",
        SMO,
        "  const std::uint64_t slots = (before | added) & ~left;\n",
        "  const std::uint64_t slots = (before | added) & ~({planted} ? 0 : left);\n",
        TREE,
    ),
    Bug(
        "merge does not widen the range in DRAM",
        SMO,
        "  node.high.store(right_node->high.load(std::memory_order_relaxed), "
        "std::memory_order_release);\n",
        "",
        TREE,
    ),
    # --- SpTree: opening, dropping, scanning ---
    Bug(
        "a new index links its leaf before the leaf is durable (P-HOT: publish before the fence)",
        SPTREE_RECOVERY,
        "  pm().flush(&leaf, offsetof(Leaf, pairs));  // as below: log() fences before the root "
        "can be linked\n",
        "",
        TREE,
    ),
    Bug(
        "recovery forgets the filters: lookups deny keys that are there",
        SPTREE_RESUME,
        """  fill_filter(*node);
  count_pairs(*node);
""",
        "  count_pairs(*node);\n",
        TREE,
    ),
    Bug(
        "recovery leaves ranges open",
        SPTREE_RESUME,
        "      high = NodeBounds::end_at(next != nullptr ? next->low\n",
        "      if (!{planted}) high = NodeBounds::end_at(next != nullptr ? next->low\n",
        TREE,
    ),
    Bug(
        "recovery loses the last leaf",
        SPTREE_RESUME,
        "  if (offset == pm::kNull) return nullptr;\n",
        "  if (offset == pm::kNull) return nullptr;\n"
        "  if ({planted} && pm::load(leaf_at(pool(), offset).next) == pm::kNull) return nullptr;\n",
        TREE,
    ),
    Bug(
        "dropping frees the strings after the leaf that leads to them",
        SPTREE_RECOVERY,
        """      pool_.pm().publish(leaf.bitmap, left & (left - 1));  // the commit
      session.finish();
""",
        """      session.finish();
      pool_.pm().publish(leaf.bitmap, left & (left - 1));
""",
        STRINGS,
    ),
    Bug(
        "dropping leaks the bounds of leaves",
        SPTREE_RECOVERY,
        "      Words<K>::free(session, pm::load(leaf.low));\n",
        "",
        STRINGS,
    ),
    Bug(
        "a scan skips a leaf's first key if it is where the leaf begins",
        SCAN,
        "    if (!(key < from)) into.entries[into.size++] = {key, value};\n",
        "    if (from < key || into.size > 0) into.entries[into.size++] = {key, value};\n",
        TREE,
    ),
    Bug(
        "a range ends one key late",
        BOUND,
        "  static High end_at(Low successor) { return successor - 1; }\n",
        "  static High end_at(Low successor) { return {planted} ? successor : successor - 1; }\n",
        TREE,
    ),
    Bug(
        "a string is flushed without its last line (P-CLHT: the wrong address flushed)",
        WORD,
        "  pool_->pm().flush(blob, sizeof length + value.size());\n",
        "  pool_->pm().flush(blob, sizeof length);\n",
        STRINGS,
    ),
    # --- SpTree: write buffers ---
    Bug(
        "a buffer's chain ends before the leaf says the same",
        BUFFERED,
        "  pm().publish(leaf.bitmap, slots);  // phase 2: durable before the chain that says the "
        "same ends\n"
        "  log_->end(*buffer);\n",
        "  log_->end(*buffer);\n  pm().publish(leaf.bitmap, slots);\n",
        BUFFERS,
    ),
    Bug(
        "a buffer's pairs are not durable before their bits",
        BUFFERED,
        "  if (count > 0) pm().fence();  // the pairs are durable before their bits can be\n",
        "",
        BUFFERS,
    ),
    Bug(
        "merging a buffer forgets its tombstones",
        BUFFERED,
        "  const std::uint64_t slots = placed.taken & ~buffer->erased_slots();\n",
        "  const std::uint64_t slots =\n"
        "      {planted} ? placed.taken : placed.taken & ~buffer->erased_slots();\n",
        BUFFERS,
    ),
    Bug(
        "a tombstone stays in DRAM",
        BUFFERED,
        "    log_->append(buffer, wal::Type::erase_slot, slot, 0);\n",
        "",
        BUFFERS,
    ),
    Bug(
        "a slot is used again while its tombstone is in the log",
        BUFFERED,
        "place_pairs(leaf, taken_slots(node), count, ",
        "place_pairs(leaf, {planted} ? node.slots() : taken_slots(node), count, ",
        BUFFERS,
    ),
    Bug(
        "a buffered pair is erased in DRAM only",
        BUFFERED,
        "    log_->append(buffer, wal::Type::erase_key, buffer.key(i), 0);\n",
        "",
        BUFFERS,
    ),
    Bug(
        "a buffered value is replaced in DRAM only",
        BUFFERED,
        "    log_->append(buffer, wal::Type::put, buffer.key(i), value);\n",
        "",
        BUFFERS,
    ),
    Bug(
        "a buffered string that is replaced leaks",
        BUFFERED,
        "    Values::free(session, old_word);\n"
        "    log_->append(buffer, wal::Type::put, buffer.key(i), new_word, session);\n",
        "    log_->append(buffer, wal::Type::put, buffer.key(i), new_word, session);\n",
        BUFFERED_STRINGS,
    ),
    Bug(
        "a split leaves the chain open: what moved away stays in it",
        SMO,
        "    [[maybe_unused]] const bool merged = merge_buffer(node);\n    assert(merged);\n",
        "",
        BUFFERED_STRINGS,
    ),
    Bug(
        "leaves merge with open chains (SPTree, stale copies)",
        SMO,
        "  if (!merge_buffer(node) || !merge_buffer(*right_node)) return;\n",
        "",
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
