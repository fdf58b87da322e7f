"""Bugs of TipsOf."""

from bug import Bug, drop, swap_part, unit

MAP = ("tips_of:map", "tips_of")
FLAT = ("tips_of:flat_map", "tips_of")
ROBIN = ("tips_of:robin_map", "tips_of")

PAGES = "src/index/tips_of/pages.cc"
BLOCKS = "src/index/tips_of/blocks.cc"
RECOVERY = "src/index/tips_of/recovery.cc"
TABLE = "src/index/tips_of/tips_of.cc"
TRIAL = "src/index/tips_of/trial.cc"
FOREIGN = "src/index/tips_of/foreign.cc"
TEST = "src/index/tips_of/tips_of_test"

FLUSH = (
    "    pm().flush(dirty.range(*this).page(dirty.page), kPage);  // with the fence of the "
    "commit\n"
)

BUGS = [
    drop(
        "tips_of: a new container begins as what was dropped where it lies",
        PAGES,
        "pm().zero(arena, sizeof *arena)",
        (unit(TEST, "BlocksTest.ANewContainerIsEmptyWhereADroppedOneWas"),),
    ),
    drop(
        "tips_of: a new container begins as what was dropped where it lies, after a crash",
        PAGES,
        "pm().flush(arena, sizeof *arena)",
        MAP,
    ),
    drop(
        "tips_of: a page is stored to before its copy is durable",
        PAGES,
        "pm().fence()",
        MAP,
        after="Pages::open(",
    ),
    drop(
        "tips_of: whole extents are stored to before their copies are durable",
        PAGES,
        "pm().fence()",
        MAP,
        after="Pages::open_all(",
    ),
    drop(
        "tips_of: a copy is not flushed",
        PAGES,
        "pm().flush(range.copy(page), kPage)",
        MAP,
    ),
    drop(
        "tips_of: a record is not flushed",
        PAGES,
        "pm().flush(&range.record(page), sizeof record)",
        MAP,
    ),
    Bug(
        "tips_of: a page has no copy in its second epoch",
        PAGES,
        "  copy_page(range, page);\n  pm().fence();",
        "  if (!{planted} || range.record(page).epoch == 0) copy_page(range, page);\n"
        "  pm().fence();",
        MAP,
    ),
    drop(
        "tips_of: pages stay writable after a commit",
        PAGES,
        "if (!protect(first.range(*this).page(first.page), count * kPage))",
        MAP,
        after="std::sort(",
    ),
    drop(
        "tips_of: new pages are not protected",
        PAGES,
        "protect_range(ranges_.back())",
        MAP,
    ),
    drop(
        "tips_of: dirty pages are not flushed",
        PAGES,
        "pm().flush(dirty.range(*this).page(dirty.page), kPage)",
        MAP,
    ),
    Bug(
        "tips_of: lines that are as before are not flushed",
        PAGES,
        FLUSH,
        "    for (std::uint64_t at = 0; at < kPage; at += pm::kLineSize)\n"
        "      if (std::memcmp(dirty.range(*this).page(dirty.page) + at,\n"
        "                      dirty.range(*this).copy(dirty.page) + at, pm::kLineSize) != 0)\n"
        "        pm().flush(dirty.range(*this).page(dirty.page) + at, pm::kLineSize);\n",
        ("tips_of:map_of_strings", "tips_of"),
    ),
    Bug(
        "tips_of: only the first dirty page is flushed",
        PAGES,
        FLUSH,
        "    if (&dirty == dirty_.data())\n"
        "      pm().flush(dirty.range(*this).page(dirty.page), kPage);\n",
        MAP,
    ),
    swap_part(
        "tips_of: the epoch ends before what changed is durable",
        PAGES,
        "pm().commit(header_.epoch, epoch() + 1)",
        "commit",
        "publish",
        MAP,
    ),
    Bug(
        "tips_of: copies of an earlier epoch count",
        PAGES,
        "      if (record.epoch != epoch() || record.check",
        "      if ({planted} ? record.epoch == 0 : record.epoch != epoch() || record.check",
        MAP,
    ),
    drop(
        "tips_of: recovery puts nothing back",
        PAGES,
        "put_back(range, page)",
        MAP,
    ),
    drop(
        "tips_of: what is put back is not flushed",
        PAGES,
        "pm().flush(to, kPage)",
        MAP,
    ),
    drop(
        "tips_of: an exception takes nothing back",
        PAGES,
        "for (const Dirty& dirty : dirty_) put_back",
        MAP,
    ),
    drop(
        "tips_of: a new extent is not flushed",
        PAGES,
        "pm().flush(extent, sizeof header + pages * sizeof(PageRecord))",
        FLAT,
        after="retry_when_full(pool_, [&] {",
    ),
    Bug(
        "tips_of: a container counts as there before it is made",
        RECOVERY,
        "  type_.construct(container());\n"
        "  arena().constructed = 1;  // durable with the container\n",
        "  arena().constructed = 1;\n  if ({planted}) pages_->commit();\n"
        "  type_.construct(container());\n",
        MAP,
    ),
    drop(
        "tips_of: an empty container leads to the program",
        FOREIGN,
        "return type_.settle(container())",
        (unit(TEST, "RefusalTest.NoRobinMapThatWasMovedFrom"),),
    ),
    drop(
        "tips_of: a write leaves addresses of the process",
        FOREIGN,
        "words.push_back({word})",
        (unit(TEST, "EmptyElement*.IsRefusedAtEachDepth"),),
    ),
    drop(
        "tips_of: numbers are taken for addresses",
        FOREIGN,
        "word.explained = true",
        (unit(TEST, "AddressTest.NumbersThatLookLikeOnesAreKept"),),
        after="void Suspects::number(",
    ),
    drop(
        "tips_of: a word that is dead is found again",
        FOREIGN,
        "*word.at = 0",
        (unit(TEST, "EmptyElement*.IsRefusedWhereOneWasBefore"),),
    ),
    drop(
        "tips_of: what was destroyed keeps its addresses",
        FOREIGN,
        "if (filter_->may_be_address(word))",
        (unit(TEST, "EmptyElement*.MayBeThereUntilTheWriteEnds"),),
    ),
    drop(
        "tips_of: free blocks are taken for the container's",
        BLOCKS,
        "suspects.dead(block, size_of_class(number))",
        (unit(TEST, "EmptyElement*"),),
    ),
    drop(
        "tips_of: a container that is open for export is written to",
        TABLE,
        "require_not_exported()",
        (unit(TEST, "HashTest.*"),),
        after="Table::begin_write(",
    ),
    drop(
        "tips_of: a freed block goes to two owners",
        BLOCKS,
        "arena().free[number] = pages_",
        (unit(TEST, "BlocksTest.*"), "tips_of:map"),
    ),
    drop(
        "tips_of: the rest of an extent is forgotten",
        BLOCKS,
        "push(number, begin + arena().cut)",
        FLAT,
    ),
    drop(
        "tips_of: the trial looks at no address",
        TRIAL,
        "if (const auto found = table_.foreign_address(all))",
        (unit(TEST, "RefusalTest.*"),),
    ),
    drop(
        "tips_of: a write that a failed sync has lost is acknowledged",
        TABLE,
        "pool().require_usable()",
        (unit("tests/health/failed_sync_test", "*KeepsAcknowledgedWrites/tips_of*"),),
        after="void Table::commit() {",
    ),
]
