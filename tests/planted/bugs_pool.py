"""Bugs of the allocator, the pool and the seam."""

from bug import (
    ALLOCATOR,
    ALLOC_RECOVERY,
    CALLOC,
    CHUNKS,
    DIRECTORY,
    HEAP,
    LANE,
    LANES,
    MAPPED_FILE,
    PERSIST,
    POOL,
    POOL_ALONE,
    POOL_CORE,
    RECORD,
    SESSION,
    STRINGS,
    SUPERBLOCK,
    Bug,
    drop,
    drop_part,
    swap_part,
    unit,
)

ORIGIN = "src/pool/origin.cc"
PAGE_SYNC = "src/pm/page_sync.cc"
JOURNAL = "src/pm/journal.cc"
DRAINER = "src/pm/drainer.cc"
DURABILITY_UNIT = (unit("src/pool/pool_test", "DurabilityTest.*"),)
GROUP_UNIT = (unit("src/pm/pm_test", "GroupCommit.*"),)
JOURNAL_UNIT = (unit("src/pm/pm_test", "Journal*"),)
POOL_JOURNAL_UNIT = (unit("src/pool/pool_test", "PoolJournal.*"),)
CLAIM_UNIT = (unit("src/alloc/alloc_test", "ClaimTest.*"),)
CANCELLATION_UNIT = (unit("src/pm/pm_test", "Cancellation.*"),)

BUGS = [
    # --- The allocator ---
    Bug(
        "the record is gone before the marks are durable",
        SESSION,
        """  mark();
  // The marks, and the caller's stores of an operation without commit word, must be durable when
  // the record is gone.
  calloc_->pm_.fence();
""",
        """  drop_record();
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
    drop(
        "recovery does not redo",
        ALLOC_RECOVERY,
        "apply(record->redo)",
        ALLOCATOR,
    ),
    drop(
        "recovery does not undo",
        ALLOC_RECOVERY,
        "apply(record->undo)",
        ALLOCATOR,
    ),
    drop(
        "recovery leaks what a committed operation freed",
        ALLOC_RECOVERY,
        "for (const BlockRef block : record->freed)",
        ALLOCATOR,
    ),
    drop(
        "recovery gives away what a committed operation took (double use)",
        ALLOC_RECOVERY,
        "allocate(lane, block)",
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
    drop(
        "a record counts without its checksum (SPTree: recycled log bytes pass)",
        RECORD,
        "if (image[0] != checksum_of(image, words_of(shape)))",
        ALLOCATOR,
    ),
    swap_part(
        "a record's checksum leaves out the last word",
        RECORD,
        "words[0] = checksum_of",
        "next",
        "next - 1",
        ALLOCATOR,
    ),
    Bug(
        "all operations share one lane: their records overwrite each other (PACTree: log "
        "entries overlap)",
        CALLOC,
        "    if (lanes_[lane]->lock().try_lock()) return Session(*this, *lanes_[lane]);\n",
        "    if ({planted}) return Session(*this, *lanes_[0]);\n"
        "    if (lanes_[lane]->lock().try_lock()) return Session(*this, *lanes_[lane]);\n",
        LANES,
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
    drop(
        "a span is in the table before its bitmap is empty (PMDK: zeroing not durable before "
        "commit)",
        HEAP,
        "pm_.zero(&layout.bitmap, span.geometry().words * sizeof(std::uint64_t))",
        ALLOCATOR,
        after="Heap::form_span(",
    ),
    Bug(
        "a larger tile is cut before its rest has a header",
        CHUNKS,
        "    write(end, {ChunkKind::free, 0, static_cast<std::uint32_t>(tile_end - end)});\n",
        "    words_[end].store(ChunkWord{ChunkKind::free, 0,"
        " static_cast<std::uint32_t>(tile_end - end)}.pack());\n",
        ALLOCATOR,
    ),
    # --- Claims ---
    Bug(
        "others take spans that are claimed",
        HEAP,
        "free_spans() >= kept + spans ? home",
        "free_spans() >= ({planted} ? 0 : kept) + spans ? home",
        CLAIM_UNIT,
    ),
    drop(
        "a large object takes a chunk that is claimed",
        HEAP,
        "if (free_spans() < claimed_ + kMaxRun)",
        CLAIM_UNIT,
    ),
    Bug(
        "others get the rest of a span that a claim has begun",
        "src/alloc/claim.cc",
        "  return {block.offset, 0};\n",
        "  if ({planted}) cursor.surrender(heap);\n  return {block.offset, 0};\n",
        CLAIM_UNIT,
    ),
    drop(
        "a claim takes spans of another one",
        "src/alloc/claim.cc",
        "if (this->spans() < spans)",
        CLAIM_UNIT,
    ),
    drop(
        "a pool opens without what is claimed for its indexes",
        POOL_CORE,
        "allocator_->restore_claims",
        (unit("src/index/tips/tips_full_pool_test", "FullPool*.ReplaysAcceptedWrites"),),
    ),
    drop(
        "a new index has the claim of one that was dropped",
        DIRECTORY,
        "pm_.store(entry.claim, 0)",
        (unit("src/pool/pool_test", "IndexTableTest.*"),),
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
        POOL_ALONE,
    ),
    Bug(
        "an interrupted drop is not finished at the next opening: a leak",
        POOL,
        "  for (detail::pool::IndexHandle& handle : core->dropping()) destroy(*core, "
        "std::move(handle));\n",
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
        "  pm_.persist_in_place(to, sizeof(superblock));  // openings read it before the journal\n",
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
    drop_part(
        "a file of any file system is the one of before, under another device number",
        ORIGIN,
        "superblock.file_system == file_system_",
        "superblock.file_system == file_system_ &&",
        DURABILITY_UNIT,
    ),
    drop(
        "the times of a pool's file on tmpfs stay as they were",
        MAPPED_FILE,
        "file_.set_times()",
        DURABILITY_UNIT,
    ),
    drop(
        "a cancelled thread ends in a sync that others wait for",
        PAGE_SYNC,
        "const util::NotCancelled not_cancelled",
        CANCELLATION_UNIT,
        after="void PageSync::alone(",
    ),
    # --- Syncs of an ordinary file ---
    drop(
        "disk: a sync begins while another one runs",
        PAGE_SYNC,
        "leading_ = true",
        GROUP_UNIT,
        after="free_to_sync_.wait",
    ),
    drop(
        "disk: the stores of a commit are not made in memory",
        PAGE_SYNC,
        "make_all(request->changes)",
        GROUP_UNIT,
    ),
    swap_part(
        "disk: threads go on syncing when a sync has failed",
        PAGE_SYNC,
        "if (!failed())",
        "!failed()",
        "true",
        GROUP_UNIT,
        after="void PageSync::lead(",
    ),
    # --- The two halves of the journal ---
    drop(
        "journal: a half is filled again before it is drained",
        JOURNAL,
        "make_free(halves_[1 - active_])",
        JOURNAL_UNIT,
        after="int Journal::turn_over(",
    ),
    drop(
        "journal: a half is free before what it holds is in its place",
        JOURNAL,
        "sync_homes(half, device); error",
        JOURNAL_UNIT,
        after="int Journal::drain(",
    ),
    swap_part(
        "journal: a half is free though a sync of its pages has failed",
        JOURNAL,
        "sync_homes(half, device); error",
        "error != 0",
        "error < 0",
        JOURNAL_UNIT,
        after="int Journal::drain(",
    ),
    Bug(
        "journal: a half is filled again before its new epoch is durable",
        JOURNAL,
        "  const int error = device.sync(&epoch_of(half), kSyncPage);\n",
        "  const int error = {planted} ? 0 : device.sync(&epoch_of(half), kSyncPage);\n",
        JOURNAL_UNIT,
    ),
    drop(
        "journal: writers go on when the background has failed",
        JOURNAL,
        "drainer_.error(); error",
        JOURNAL_UNIT,
        after="int Journal::append(",
    ),
    swap_part(
        "journal: a writer that waits for a half is not told of an error",
        DRAINER,
        "return error();",
        "error()",
        "0",
        JOURNAL_UNIT,
        after="int Drainer::wait(",
    ),
    Bug(
        "journal: the background drains the half that is being filled",
        JOURNAL,
        "        const int error = drain(halves_[1 - active_], beside);\n",
        "        const int error = drain(halves_[{planted} ? active_ : 1 - active_], beside);\n",
        JOURNAL_UNIT,
    ),
    Bug(
        "journal: the last page of each sync of a drain is left out",
        JOURNAL,
        "    const std::size_t bytes = last + kSyncPage - pages[i];\n",
        "    const std::size_t bytes = last + ({planted} ? 0 : kSyncPage) - pages[i];\n",
        JOURNAL_UNIT,
    ),
    Bug(
        "journal: a replay takes the newer half for the older one",
        JOURNAL,
        "{ return a.first() < b.first(); }",
        "{ return a.first() < b.first() != {planted}; }",
        JOURNAL_UNIT,
    ),
    drop(
        "journal: a replay goes on behind a gap",
        JOURNAL,
        "if (!empty() && batch.header().sequence != next) return;",
        JOURNAL_UNIT,
    ),
    drop(
        "journal: a replay forgets what a later batch revokes",
        JOURNAL,
        "lines_.erase(lines_.lower_bound(",
        JOURNAL_UNIT,
    ),
    Bug(
        "journal: a new area is named before it is empty",
        JOURNAL,
        "  sequence_ = 0;\n  for (Half& half : halves_) {\n",
        "  sequence_ = 0;\n  if ({planted}) name_area();\n  for (Half& half : halves_) {\n",
        JOURNAL_UNIT,
    ),
    Bug(
        "journal: it moves before what it holds is in its place",
        JOURNAL,
        "  if (const int error = checkpoint(); error != 0) return error;\n  place_ = place;\n",
        "  place_ = place;\n",
        JOURNAL_UNIT,
    ),
    drop(
        "journal: ranges that are too long for a batch are not synced",
        JOURNAL,
        "device_.sync(place_.base + begin, bytes)",
        JOURNAL_UNIT,
        after="int Journal::sync_long_ranges(",
    ),
    drop(
        "journal: the block of a journal that is replaced is not freed",
        POOL_CORE,
        "if (!fits && old != pm::kNull) session.free(old)",
        POOL_JOURNAL_UNIT,
    ),
    swap_part(
        "journal: a verification writes halves to a pool of an earlier release",
        POOL_CORE,
        "if (!needs_check_ || has_halves(before))",
        "has_halves",
        "has_journal",
        POOL_JOURNAL_UNIT,
    ),
]
