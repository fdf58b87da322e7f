"""Bugs of the indexes of examples/converted."""

from bug import drop, swap_part, unit

KHASH = "examples/converted/khash.h"
TEST = "tests/converted/converted_test"

CHANGES = (unit(TEST, "*AnnouncesAllChanges"),)
FULL = (unit(TEST, "ConvertedKhash.FillsItsSlotsWhereThereIsNoMemory"),)
REHASH = (unit(TEST, "ConvertedKhash.LosesNoBlocksToAFailedRehash"),)

def unannounced(what, kind):
    """The bug that khash.patch does not announce what is of that type."""
    return swap_part(
        f"converted: khash does not announce {what}",
        KHASH,
        "Memory::add(place, bytes)",
        "bytes",
        f"bytes == sizeof({kind}) ? 0 : bytes",
        CHANGES,
    )


BUGS = [
    drop(
        "converted: a field changes without a word",
        "examples/converted/announced.h",
        "Memory::add(&value_",
        CHANGES,
    ),
    unannounced("its head", "khash_t(words)"),
    unannounced("the flags of a slot", "khint32_t"),
    unannounced("the key of a slot", "Word"),
    drop(
        "converted: khash does not announce a value",
        KHASH,
        "Memory::add(&place",
        CHANGES,
    ),
    drop(
        "converted: khash does not announce the bound that it moves",
        KHASH,
        "Memory::add(&table",
        FULL,
    ),
    drop(
        "converted: khash keeps the bound that it has moved",
        KHASH,
        "table.upper_bound = bound",
        FULL,
    ),
    swap_part(
        "converted: a rehash loses the blocks that it has got",
        KHASH,
        "if (block != nullptr) Memory::free(block)",
        "block != nullptr",
        "false",
        REHASH,
    ),
    swap_part(
        "converted: the copy of an array is empty",
        KHASH,
        "if (made != nullptr && block != nullptr)",
        "block != nullptr",
        "block == nullptr && bytes == 0",
        CHANGES,
    ),
    drop(
        "converted: a tree counts what it has erased",
        "examples/converted/red_black_tree.h",
        "size_ = size_ - 1",
        CHANGES,
    ),
]
