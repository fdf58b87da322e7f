"""The planted bugs: one small change each, of a kind that has been made in published indexes or
could be made here.

`before` must occur exactly once in the file; `after` replaces it. The lines that change must be
whole statements, and declare nothing that others use; or `after` contains {planted}, which is true
in a run with the bug. `subjects` of the explorer are tried in turn until one notices.
"""

from collections import namedtuple

Bug = namedtuple("Bug", "name path before after subjects")

TREE = ("sptree:u64:u64", "sptree")
FAIR = ("fastfair:u64:u64", "fastfair")
FAIR_STRINGS = ("fastfair:bytes:bytes", "fastfair")
STRINGS = ("sptree:bytes:bytes", "sptree")
ALLOCATOR = ("calloc:full", "calloc", "sptree")
POOL_ALONE = ("pool", "sptree")

SPTREE = "src/index/sptree/sptree.cc"
SMO = "src/index/sptree/smo.cc"
SPTREE_RECOVERY = "src/index/sptree/recovery.cc"
SCAN = "src/index/sptree/scan.cc"
SHIFT = "src/index/fastfair/shift.cc"
FASTFAIR = "src/index/fastfair/fastfair.cc"
FAIR_SMO = "src/index/fastfair/smo.cc"
FAIR_MERGE = "src/index/fastfair/merge.cc"
FAIR_RECOVERY = "src/index/fastfair/recovery.cc"
FAIR_TREE = "src/index/fastfair/fastfair.h"
BOUND = "src/index/sptree/bound.h"
WORD = "src/index/common/word.cc"
SESSION = "src/alloc/session.cc"
ALLOC_RECOVERY = "src/alloc/recovery.cc"
RECORD = "src/alloc/record.cc"
LANE = "src/alloc/lane.cc"
HEAP = "src/alloc/heap.cc"
CHUNKS = "src/alloc/chunks.cc"
DIRECTORY = "src/pool/directory.cc"
SUPERBLOCK = "src/pool/superblock.cc"
POOL = "src/index/pool.cc"
PERSIST = "src/pm/persist.h"

BUGS = [
    # --- SpTree: point operations ---
    Bug(
        "insert sets the bit before the pair is stored (Level hashing: the token before key "
        "and value)",
        SPTREE,
        """    store_pair(key, value);
    pm().fence();  // phase 1: the pair is durable before its bit can be
    pm().publish(leaf.bitmap, node.slots() | bit);  // phase 2: the commit
""",
        """    pm().publish(leaf.bitmap, node.slots() | bit);
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
    session.log();                                  // phase 1: pair, blobs and record are durable
    pm().publish(leaf.bitmap, node.slots() | bit);  // phase 2: the commit
""",
        """    session.commit_when(leaf.bitmap, bit, bit);
    pm().fence();
    pm().publish(leaf.bitmap, node.slots() | bit);
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
        "    Keys::free(session, pm::load(leaf.pairs[slot].key));\n",
        "",
        STRINGS,
    ),
    Bug(
        "erase leaks the value",
        SPTREE,
        "    Values::free(session, pm::load(leaf.pairs[slot].value));\n",
        "",
        STRINGS,
    ),
    Bug(
        "erase clears the bit in DRAM only: the pair comes back (FAST&FAIR, wrong line flushed)",
        SPTREE,
        "    pm().publish(leaf.bitmap, rest);  // the commit\n  } else {",
        "    pm().publish(leaf.bitmap, node.slots());\n  } else {",
        TREE,
    ),
    Bug(
        "insert does not look for the key: two slots hold it (NBTree, duplicate inserts)",
        SPTREE,
        "      if (mode == Mode::insert) return false;\n",
        "      if (mode == Mode::insert && !node->full()) {\n"
        "        add(*node, key, value, hash);\n        return true;\n      }\n",
        TREE,
    ),
    # --- SpTree: structure modifications ---
    Bug(
        "split leaves copies behind after a crash: no redo (SPTree, stale copies)",
        SMO,
        "  session.redo(left.bitmap, kept_slots);\n",
        "",
        TREE,
    ),
    Bug(
        "split clears the left leaf's bits before the new leaf is linked",
        SMO,
        """  pm().publish(left.next, offset);
  pm().store(left.bitmap, kept_slots);
""",
        """  pm().publish(left.bitmap, kept_slots);
  pm().publish(left.next, offset);
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
        "  pm().flush(&right, offsetof(Leaf, pairs) + moved * sizeof(Pair));\n",
        "  pm().flush(&right, offsetof(Leaf, pairs));\n",
        TREE,
    ),
    Bug(
        "split links the new leaf before its record is there: it leaks",
        SMO,
        """  session.log();
  // The commit: from here on the moved pairs belong to the new leaf.
  pm().publish(left.next, offset);
""",
        """  pm().fence();
  pm().publish(left.next, offset);
  session.log();
""",
        TREE,
    ),
    Bug(
        "split does not clear the moved pairs' bits at all",
        SMO,
        "  pm().store(left.bitmap, kept_slots);\n",
        "",
        TREE,
    ),
    Bug(
        "split keeps one pair in both leaves",
        SMO,
        "    for (unsigned i = 0; i < kept; ++i) slots |= bit_of(entries[i].slot);\n",
        "    for (unsigned i = 0; i < kept + 1 && i < kLeafPairs; ++i)"
        " slots |= bit_of(entries[i].slot);\n",
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
        """  pm().publish(left.bitmap, node.slots());  // its slots, durable since log()
  pm().publish(left.next, right.next);      // the commit
""",
        """  pm().publish(left.next, right.next);
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
        "    pm().flush(&left.pairs[target], sizeof(Pair));  // log() fences before their bits "
        "are set\n",
        "    if (from == right_node->slots()) pm().flush(&left.pairs[target], sizeof(Pair));\n",
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
        "  pm().flush(&leaf, offsetof(Leaf, pairs));  // log() fences before the leaf can be "
        "linked\n",
        "",
        TREE,
    ),
    Bug(
        "recovery forgets the filters: lookups deny keys that are there",
        SPTREE_RECOVERY,
        "  fill_filter(*node);\n  count_recovered(*node);\n",
        "  count_recovered(*node);\n",
        TREE,
    ),
    Bug(
        "recovery leaves ranges open",
        SPTREE_RECOVERY,
        "    last->high.store(NodeBounds::end_at(node->low), std::memory_order_relaxed);\n",
        "",
        TREE,
    ),
    Bug(
        "recovery loses the last leaf",
        SPTREE_RECOVERY,
        "  while (next != pm::kNull || !ahead.empty()) {",
        "  while (next != pm::kNull || ((!{planted} || last == nullptr) && !ahead.empty())) {",
        TREE,
    ),
    Bug(
        "dropping frees the strings after the leaf that leads to them",
        SPTREE_RECOVERY,
        "        pm.publish(leaf.bitmap, left & (left - 1));  // the commit\n        "
        "session.finish();\n",
        "        session.finish();\n        pm.publish(leaf.bitmap, left & (left - 1));\n",
        STRINGS,
    ),
    Bug(
        "dropping leaks the bounds of leaves",
        SPTREE_RECOVERY,
        "    Words<K>::free(session, pm::load(leaf.low));\n",
        "",
        STRINGS,
    ),
    Bug(
        "a scan skips a leaf's first key if it is where the leaf begins",
        SCAN,
        "    if (key < from) continue;\n",
        "    if (!(from < key) && into.size == 0 && left != node.slots()) continue;\n",
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
    # --- The allocator ---
    Bug(
        "the record is gone before the marks are durable",
        SESSION,
        """  mark();
  // The marks, and the caller's stores of an operation without commit word, must be durable when
  // the record is gone.
  calloc_->pm_.fence();
  clear_record(calloc_->pm_, lane_->layout().record);
""",
        """  clear_record(calloc_->pm_, lane_->layout().record);
  mark();
  calloc_->pm_.fence();
""",
        ALLOCATOR,
    ),
    Bug(
        "a cancelled operation is not undone",
        SESSION,
        "    pm.publish(word, undo.value);\n",
        "    (void)word;\n",
        ALLOCATOR,
    ),
    Bug(
        "a cancelled operation is undone after its record is gone",
        SESSION,
        "  if (const WordStore& undo = operation.record.undo; undo.word != pm::kNull) {\n",
        "  clear_record(pm, lane_->layout().record);\n"
        "  if (const WordStore& undo = operation.record.undo; undo.word != pm::kNull) {\n",
        ALLOCATOR,
    ),
    Bug("recovery does not redo", ALLOC_RECOVERY, "    apply(record->redo);\n", "", ALLOCATOR),
    Bug("recovery does not undo", ALLOC_RECOVERY, "    apply(record->undo);\n", "", ALLOCATOR),
    Bug(
        "recovery leaks what a committed operation freed",
        ALLOC_RECOVERY,
        "    for (const BlockRef block : record->freed) free(block);\n",
        "",
        ALLOCATOR,
    ),
    Bug(
        "recovery gives away what a committed operation took (double use)",
        ALLOC_RECOVERY,
        "    for (const BlockRef block : record->reserved) allocate(lane, block);\n",
        "",
        ALLOCATOR,
    ),
    Bug(
        "recovery frees the blocks of a committed operation that came from a ring",
        ALLOC_RECOVERY,
        "    if (pm::load(slot) == block.offset) marks_.write_slot(slot, 0);\n",
        "    (void)slot;\n",
        ALLOCATOR,
    ),
    Bug(
        "recovery asks for the whole commit word, not the bits of the operation",
        ALLOC_RECOVERY,
        "  return (pm::load(view_.at<std::uint64_t>(record.commit_word)) & record.mask) == "
        "record.expected;",
        "  return pm::load(view_.at<std::uint64_t>(record.commit_word)) == record.expected;",
        STRINGS,
    ),
    Bug(
        "recovery empties the rings before it clears the bits: a leak",
        ALLOC_RECOVERY,
        "  for (const std::uint64_t* slot : slots) free({pm::load(*slot), 0});\n",
        "  std::vector<Offset> blocks;\n"
        "  for (std::uint64_t* slot : slots) {\n"
        "    blocks.push_back(pm::load(*slot));\n"
        "    marks_.write_slot(*slot, 0);\n"
        "  }\n"
        "  pm_.fence();\n"
        "  for (const Offset block : blocks) free({block, 0});\n",
        ALLOCATOR,
    ),
    Bug(
        "a record counts without its checksum (SPTree: recycled log bytes pass)",
        RECORD,
        "  if (image[0] != checksum_of(image, words_of(shape))) return std::nullopt;\n",
        "",
        ALLOCATOR,
    ),
    Bug(
        "a record's checksum leaves out the last word",
        RECORD,
        "  words[0] = checksum_of(words, next);\n",
        "  words[0] = checksum_of(words, next - 1);\n",
        ALLOCATOR,
    ),
    Bug(
        "a full lane empties its ring before it clears the bits",
        LANE,
        "    marks_.free(span.offset, index_in(span, block_[slots[i]]));\n",
        "    marks_.write_slot(layout_.ring[slots[i]], 0);\n"
        "    pm_.fence();\n"
        "    marks_.free(span.offset, index_in(span, block_[slots[i]]));\n",
        ALLOCATOR,
    ),
    Bug(
        "a span is in the table before its bitmap is empty (PMDK: zeroing not durable before "
        "commit)",
        HEAP,
        "  pm_.zero(&layout.bitmap, span.geometry().words * sizeof(std::uint64_t));\n",
        "",
        ALLOCATOR,
    ),
    Bug(
        "a larger tile is cut before its rest has a header",
        CHUNKS,
        "    write(end, {ChunkKind::free, 0, static_cast<std::uint32_t>(tile_end - end)});\n",
        "    words_[end].store(ChunkWord{ChunkKind::free, 0,"
        " static_cast<std::uint32_t>(tile_end - end)}.pack());\n",
        ALLOCATOR,
    ),
    # --- The pool and the seam ---
    Bug(
        "an index counts before its entry is written (CCEH: published too early)",
        DIRECTORY,
        "  pm_.persist(&entry, kImmutableSize);   // all of this must be durable before the "
        "entry counts\n"
        "  pm_.publish(entry.state, kEntryLive);  // the commit: the index exists\n",
        "  pm_.publish(entry.state, kEntryLive);\n  pm_.persist(&entry, kImmutableSize);\n",
        POOL_ALONE,
    ),
    Bug(
        "a new index has the root of one that was dropped",
        DIRECTORY,
        "  pm_.store(entry.root, 0);\n",
        "  if (pm::load(entry.root) == 0) pm_.store(entry.root, 0);\n"
        "  else pm_.store(entry.root, pm::load(entry.root) + 8);\n",
        TREE,
    ),
    Bug(
        "an interrupted drop is not finished at the next opening: a leak",
        POOL,
        "  for (pool::IndexHandle& handle : core->dropping()) destroy(*core, std::move(handle));\n",
        "  core->dropping();\n",
        STRINGS,
    ),
    Bug(
        "a torn superblock passes",
        SUPERBLOCK,
        "bool valid(const Superblock& s) { return s.magic == kMagic && s.checksum == "
        "checksum_of(s); }",
        "bool valid(const Superblock& s) {\n"
        "  return s.magic == kMagic && ({planted} || s.checksum == checksum_of(s));\n}",
        POOL_ALONE,
    ),
    Bug(
        "both superblocks are written under one fence, so both can be torn",
        SUPERBLOCK,
        "  pm_.persist(to, sizeof(superblock));\n",
        "  pm_.flush(to, sizeof(superblock));\n  if (copy == newest_) pm_.fence();\n",
        POOL_ALONE,
    ),
    Bug(
        "publish persists, then stores (memcached-pmem: unpersisted data served)",
        PERSIST,
        "    store(word, value);\n    persist(&word, sizeof(T), site);\n",
        "    persist(&word, sizeof(T), site);\n    store(word, value);\n",
        ALLOCATOR,
    ),
    # --- FAST&FAIR ---
    Bug(
        "fastfair: an entry is counted before it is durable",
        SHIFT,
        "  pm.flush(&node.entries[count], sizeof(Entry));\n",
        "",
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
    Bug(
        "fastfair: a shift goes into the next line before the last one is durable",
        SHIFT,
        "    if (begins_line(i)) pm.persist(&node.entries[i], sizeof(Entry));\n",
        "",
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
        "fastfair: erase flushes the wrong line (FAST&FAIR)",
        SHIFT,
        "  pm.publish(commit.word, commit.value);  // the commit\n",
        "  pm.store(commit.word, commit.value);\n  pm.persist(&node.meta, sizeof node.meta);\n",
        FAIR,
    ),
    Bug(
        "fastfair: closing a gap goes into the next line before the last one is durable",
        SHIFT,
        "    if (ends_line(i)) pm.persist(&node.entries[i], sizeof(Entry));\n",
        "",
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
    Bug(
        "fastfair: the count leaves out the last entry before its copy is durable",
        SHIFT,
        "      pm.persist(&node.entries[i], sizeof(Entry));\n      break;\n",
        "      break;\n",
        FAIR,
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
    Bug(
        "fastfair: an insert names the count as its commit, wherever it is",
        SHIFT,
        "  if (at == count) return {node.meta, meta_with(node, count + 1)};\n",
        "  return {node.meta, meta_with(node, count + 1)};\n",
        FAIR_STRINGS,
    ),
    Bug(
        "fastfair: erase goes on in a node with an interrupted insert (FAST&FAIR: a half-shifted "
        "insert followed by an erase loses a pair)",
        FASTFAIR,
        "    if (mend(pm(), *leaf.node)) continue;\n",
        "",
        FAIR,
    ),
    Bug(
        "fastfair: the gap of an erased pair stays open",
        FASTFAIR,
        "    if (!last) close_gap(pm(), leaf, at);\n",
        "    if (last) pm().fence();\n",
        FAIR_STRINGS,
    ),
    Bug(
        "fastfair: erase leaks the key",
        FASTFAIR,
        "    Keys::free(session, entry.key);\n",
        "",
        FAIR_STRINGS,
    ),
    Bug(
        "fastfair: split leaves the moved entries behind after a crash: no redo",
        FAIR_SMO,
        "  session.redo(left.meta, meta);\n",
        "",
        FAIR,
    ),
    Bug(
        "fastfair: split links the new node before its record is there: it leaks",
        FAIR_SMO,
        "  session.log();\n"
        "  pm().publish(left.next, next);  // the commit; what it links is durable since log()\n",
        "  pm().fence();\n  pm().publish(left.next, next);\n  session.log();\n",
        FAIR,
    ),
    Bug(
        "fastfair: split does not flush the moved entries",
        FAIR_SMO,
        "  pm().flush(&right, offsetof(Node, entries) + moved * sizeof(Entry));\n",
        "  pm().flush(&right, offsetof(Node, entries));\n",
        FAIR,
    ),
    Bug(
        "fastfair: split drops the next pointer of the new node",
        FAIR_SMO,
        "  pm().store(right.next, pm::load(node.next));\n",
        "  pm().store(right.next, pm::kNull);\n",
        FAIR,
    ),
    Bug(
        "fastfair: the new root is used before it is durable (FAST&FAIR: root split)",
        FAIR_SMO,
        "  pm().flush(&top, offsetof(Node, entries) + sizeof(Entry));  // log() fences\n",
        "",
        FAIR,
    ),
    Bug(
        "fastfair: an entry above a node is given twice",
        FAIR_SMO,
        "    if (after > 0 && pm::load(node.entries[after - 1].key) == word) return true;\n",
        "",
        FAIR,
    ),
    Bug(
        "fastfair: a node without an entry above is not found (FAST&FAIR: a split sends an insert "
        "to the wrong node)",
        FAIR_TREE,
        "  if (next == pm::kNull || !target.reaches(low_of(node_at(next)))) return nullptr;\n"
        "  return after(node);\n",
        "  if (next != pm::kNull) return nullptr;\n  return after(node);\n",
        FAIR,
    ),
    Bug(
        "fastfair: merge frees a node to which its parent leads (FAST&FAIR: merge)",
        FAIR_MERGE,
        "  remove_entry(pm(), parent, at);  // durable before the node can be freed that it leads "
        "to\n",
        "",
        FAIR,
    ),
    Bug(
        "fastfair: merge does not flush the moved entries",
        FAIR_MERGE,
        "  pm().flush(left.entries.data() + count, (filled - count) * sizeof(Entry));\n",
        "",
        FAIR,
    ),
    Bug(
        "fastfair: merge leaks the emptied node",
        FAIR_MERGE,
        "  session.free(pool_.offset(&right));\n",
        "",
        FAIR,
    ),
    Bug(
        "fastfair: merge leaks the bound of the emptied leaf",
        FAIR_MERGE,
        "  if (meta_of(left).level == 0) Keys::free(session, pm::load(right.low));\n",
        "",
        FAIR_STRINGS,
    ),
    Bug(
        "fastfair: a new tree links its leaf before the leaf is durable (FAST&FAIR: the "
        "constructor's stores are never flushed)",
        FAIR_RECOVERY,
        "  pm().flush(&leaf, offsetof(Node, entries));  // log() fences before the leaf can be "
        "linked\n",
        "",
        FAIR,
    ),
    Bug(
        "fastfair: dropping leaks the bounds of leaves",
        FAIR_RECOVERY,
        "    Words<K>::free(session, pm::load(node.low));\n",
        "",
        FAIR_STRINGS,
    ),
]
