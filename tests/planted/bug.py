"""What a planted bug is: one small change, of a kind that has been made in published indexes or
could be made here.

A bug that drops or changes a part of one statement says so by an operator: drop(), drop_part(),
swap_part() or store_for_publish(). Its anchor is a short piece of the statement, which need not be
the whole and is looked for without regard to white space and comments. It must occur once; or
`after` is such a piece of what stands before it, and the first anchor behind that counts. So a bug
needs no edit when statements around it change, or are indented or wrapped otherwise.

Other bugs are a Bug: `before` must occur exactly once in the file; `after` replaces it. The lines
that change must be whole statements, and declare nothing that others use; or `after` contains
{planted}, which is true in a run with the bug.

`subjects` of the explorer are tried in turn until one notices. A subject that begins with "storm "
is a command line of perdix_storm in place of one of the explorer; storm() makes it; one that begins
with "schedules " is a command line of schedule_fuzzer, which schedules() makes; and one that begins
with "unit " names a test program and some of its cases, as unit() has it.
"""

import functools
from collections import namedtuple
from pathlib import Path

from statement import Misfit, code_of, place_of, statement_around

ROOT = Path(__file__).resolve().parents[2]

# `misfit` says why an operator did not find its statement.
Bug = namedtuple("Bug", "name path before after subjects misfit", defaults=("",))


def drop(name, path, anchor, subjects, after=""):
    """The bug that a statement is missing, with the `if` or loop that has no braces around it."""
    return _edited(name, path, anchor, subjects, after, lambda statement: "")


def drop_part(name, path, anchor, part, subjects, after=""):
    """The bug that a part of a statement is missing."""
    return swap_part(name, path, anchor, part, "", subjects, after)


def swap_part(name, path, anchor, part, other, subjects, after=""):
    """The bug that a part of a statement is another one."""

    def swapped(statement):
        if statement.count(part) != 1:
            raise Misfit(f"{part!r} is in the statement {statement.count(part)} times")
        return statement.replace(part, other)

    return _edited(name, path, anchor, subjects, after, swapped)


def store_for_publish(name, path, anchor, subjects, after=""):
    """The bug that a word is stored where it must also be durable."""
    return swap_part(name, path, anchor, ".publish(", ".store(", subjects, after)


def _edited(name, path, anchor, subjects, after, edit):
    try:
        before, wrong = edited(_text_of(path), anchor, after, edit)
    except Misfit as misfit:
        return Bug(name, path, "", "", subjects, str(misfit))
    return Bug(name, path, before, wrong, subjects)


def edited(text, anchor, after, edit):
    """A piece of the text that is there once, and the same with the statement of the anchor as
    edit() makes it. Raises Misfit."""
    code = code_of(text)
    begin, end = statement_around(code, place_of(code, anchor, after))
    wrong = edit(text[begin:end])
    first = begin
    while text.count(text[first:end]) > 1:
        first = text.rfind("\n", 0, first - 1) + 1
    return text[first:end], text[first:begin] + wrong


@functools.lru_cache(maxsize=None)
def _text_of(path):
    return (ROOT / path).read_text()


def storm(options, seed=1, seconds=60):
    """A storm of at most `seconds` that notices the bug."""
    return f"storm --seed {seed} --seconds {seconds} {options}"


def schedules(options, seed=1, runs=4000):
    """At most `runs` schedules, of which one notices the bug."""
    return f"schedules --seed {seed} --runs {runs} {options}"


def unit(program, cases):
    """Cases of a test program, of which one fails; the program by its place in a build."""
    return f"unit {program} {cases}"


TREE = ("sptree:u64:u64", "sptree")
FAIR = ("fastfair:u64:u64", "fastfair")
FAIR_STRINGS = ("fastfair:bytes:bytes", "fastfair")
FAIR_B = ("fastfair+b:u64:u64", "fastfair+b")
FAIR_BO = ("fastfair+bo:u64:u64", "fastfair+bo")
FAIR_B_STRINGS = ("fastfair+b:bytes:bytes", "fastfair+b")
_ANY_OPTIONS = "_process.random_operations_with_other_options_at_each_opening"
FAIR_PATH_UNIT = (
    unit("tests/conformance/perdix_conformance", f"fastfair_buffers_*{_ANY_OPTIONS}"),
)
FAIR_UNIT = (unit("src/index/fastfair/fastfair_test", "FastFairBuffer*"),)
ELF = ("elf:points",)
ELF_UNIT = (unit("src/index/elf/elf_test", "*"),)
ELF_TABLE = ("elf_table",)
HELD_UNIT = (unit("tests/memory/allocation_test", "*Held*"),)
CCEH = ("cceh:u64:u64", "cceh")
CCEH_STRINGS = ("cceh:bytes:bytes", "cceh")
CCEH_B = ("cceh+b:u64:u64", "cceh+b")
CCEH_BO = ("cceh+bo:u64:u64", "cceh+bo")
CCEH_B_STRINGS = ("cceh+b:bytes:bytes", "cceh+b")
CCEH_UNIT = (unit("src/index/cceh/cceh_test", "Cceh*"),)
CCEH_STRESS = (unit("src/index/cceh/cceh_stress_test", "CcehStress*"),)
SKIP = ("skiplist:u64:u64", "skiplist")
SKIP_STRINGS = ("skiplist:bytes:bytes", "skiplist")
SKIP_UNIT = (unit("src/index/skiplist/skiplist_test", "*SkipList*"),)
SKIP_B = ("skiplist+b:u64:u64", "skiplist+b")
SKIP_B_STRINGS = ("skiplist+b:bytes:bytes", "skiplist+b")
SKIP_B_UNIT = (unit("src/index/skiplist/skiplist_test", "SkipListB*:SkipListO*"),)
ELIM = ("elimda:u64:u64", "elimda")
ELIM_STRINGS = ("elimda:bytes:bytes", "elimda")
ELIM_STRAIGHT = ("elimda+straight:u64:u64", "elimda+straight")
ELIM_STRAIGHT_STRINGS = ("elimda+straight:bytes:bytes", "elimda+straight")
ELIM_DRAINED = ("elimda+drained:u64:u64", "elimda+drained")
ELIM_STRAIGHT_UNIT = (
    unit("src/index/elimda/elimda_straight_test", "*ElimDaStraight*:ElimDaFullPool*"),
)
ELIM_GROWING = ("elimda+growing:bytes:bytes", "elimda+growing")
NB_RESUME_UNIT = (unit("src/index/nbtree/nbtree_test", "NbTreeResume*:NbTreeSignposts*"),)
ELIM_MORE_UNIT = (unit("src/index/elimda/elimda_more_logs_test", "*"),)
ELIM_PARTS_UNIT = (unit("src/index/elimda/elimda_parts_test", "ElimDa*"),)
ELIM_OPENING_UNIT = (unit("src/index/elimda/elimda_opening_test", "*ElimDa*"),)
ELIM_STRESS = (unit("src/index/elimda/elimda_stress_test", "ElimDaStress*"),)
ELIM_READS_UNIT = (unit("tests/linearizability/elimda_lookups_test", "ElimDaReads*"),)
ELIM_SETS_UNIT = (unit("tests/linearizability/elimda_lookups_test", "ElimDaSets*"),)
ELIM_UNIT = (unit("src/index/elimda/elimda_test", "*ElimDa*"),)
NB = ("nbtree:u64:u64", "nbtree")
NB_STRINGS = ("nbtree:bytes:bytes", "nbtree")
STRINGS = ("sptree:bytes:bytes", "sptree")
BUFFERS = ("sptree+buffers:u64:u64", "sptree+buffers")
BUFFERED_STRINGS = ("sptree+buffers:bytes:bytes", "sptree+buffers")
STALE = ("sptree+stale",)
UPKEEP = ("sptree+log:u64:u64", "sptree+log")
ALLOCATOR = ("calloc:full", "calloc:any", "sptree")
LANES = ("calloc:any", "sptree")  # by several threads
POOL_ALONE = ("pool", "sptree")
LOG = ("wal",)

ART_MODIFY = "src/art/tree_modify.h"
SPTREE = "src/index/sptree/sptree.cc"
SPTREE_SEARCH = "src/index/sptree/search.h"
LEAF_STORE = "src/index/sptree/leaf_store.h"
MIDDLE_NODES = "src/index/sptree/middle_nodes.h"
TOP_LAYER = "src/index/sptree/top_layer.h"
STRUCTURE = "src/index/sptree/smo.cc"
SPTREE_RECOVERY = "src/index/sptree/recovery.h"
SPTREE_OWNED = "src/index/sptree/owned.h"
SPTREE_RESUME = "src/index/sptree/resumer.cc"
LEAF_ORDERS = "src/index/sptree/leaf_orders.cc"
SCAN_ORDERS = "src/index/common/scan_orders.h"
READ_BEYOND = "src/index/common/read_beyond.h"
NODE_BUFFERS = "src/index/sptree/buffers.cc"
REPLAY = "src/index/sptree/replay.h"
SHIFT = "src/index/fastfair/shift.cc"
FASTFAIR = "src/index/fastfair/fastfair.cc"
FAIR_SMO = "src/index/fastfair/smo.h"
FAIR_MERGE = "src/index/fastfair/node_merge.h"
FAIR_HEAD = "src/index/fastfair/recovery.cc"
FAIR_NODES = "src/index/fastfair/nodes.h"
FAIR_STORE = "src/index/fastfair/leaf_store.h"
FAIR_ANEW = "src/index/fastfair/anew.h"
FAIR_BUFFERS = "src/index/fastfair/buffers.h"
FAIR_OWNED = "src/index/fastfair/owned.h"
FAIR_SCAN = "src/index/fastfair/scan.h"
CCEH_TABLE = "src/index/cceh/cceh.cc"
CCEH_SEGMENTS = "src/index/cceh/segments.h"
CCEH_PAIRS = "src/index/cceh/pair_writer.h"
CCEH_ROUTER = "src/index/cceh/router.h"
CCEH_BUILDER = "src/index/cceh/builder.h"
CCEH_DIRECTORY = "src/index/cceh/directory.cc"
CCEH_DIRECTORY_H = "src/index/cceh/directory.h"
CCEH_SEARCH = "src/index/cceh/search.h"
CCEH_SMO = "src/index/cceh/smo.h"
CCEH_BUFFERS = "src/index/cceh/buffers.h"
OWNED = "src/index/common/owned.h"
OWNER_NUMBERS = "src/index/common/owner_numbers.h"
BUFFERED = "src/index/common/buffered.h"
OPEN_WORDS = "src/index/common/open_words.h"
INDEX = "src/index/index.cc"
BUFFER_EXCHANGE = "src/index/common/buffer_exchange.h"
HOME_BUFFERS = "src/index/common/home_buffers.h"
WRITE_BUFFERS = "src/index/common/write_buffers.h"
RUNNING_CHANGE = "src/index/common/running_change.cc"
RUNNING_CHANGE_H = "src/index/common/running_change.h"
PAIR_RECORDS = "src/index/common/pair_records.h"
CCEH_OWNED = "src/index/cceh/owned.h"
CCEH_RECOVERY = "src/index/cceh/recovery.cc"
SKIP_NODES = "src/index/skiplist/nodes.h"
SKIP_WAYS = "src/index/skiplist/ways.h"
SKIP_LOOKUPS = "src/index/skiplist/lookups.h"
SKIP_TOWERS = "src/index/skiplist/towers.h"
SKIP_WRITER = "src/index/skiplist/node_writer.h"
SKIP_RUNS = "src/index/skiplist/runs.h"
SKIP_BUFFERS = "src/index/skiplist/buffers.h"
SKIP_RANGE_LOOKUPS = "src/index/skiplist/range_lookups.h"
SKIP_RANGE_WRITER = "src/index/skiplist/range_writer.h"
SKIP_OWNED = "src/index/skiplist/owned.h"
SKIP_RECOVERY = "src/index/skiplist/recovery.h"
ELF_BUILD = "src/index/elf/build.cc"
ELF_COUNTER = "src/index/elf/counter.h"
ELF_DEAD_ROWS = "src/index/elf/dead_rows.h"
ELF_DYNAMIC_CACHE = "src/index/elf/caches/dynamic_cache.cc"
ELF_ENGINE = "src/index/elf/elf.cc"
ELF_ERASED_POINTS = "src/index/elf/erased_points.h"
ELF_IMAGE = "src/index/elf/caches/image.cc"
ELF_LISTS = "src/index/elf/lists.h"
ELF_OUTLINE = "src/index/elf/caches/outline.h"
ELF_OWNED = "src/index/elf/owned.cc"
ELF_RECOVERY = "src/index/elf/recovery.cc"
ELF_REPLACEMENT = "src/index/elf/replacement.cc"
ELF_SEARCH = "src/index/elf/search.h"
ELF_SEGMENT = "src/index/elf/segment.cc"
ELF_SORTER = "src/index/elf/row_sorter.h"
ELF_STREAM = "src/index/elf/stream.cc"
ELF_WALK = "src/index/elf/walk.h"
ELF_TABLE_BLOCKS = "src/index/elf_table/blocks.cc"
ELF_TABLE_BUILD = "src/index/elf_table/build.cc"
ELF_TABLE_OWNED = "src/index/elf_table/owned.cc"
ELF_TABLE_RECOVERY = "src/index/elf_table/recovery.cc"
ELF_TABLE_CALLS = "src/index/elf_table/elf_table.cc"
ELF_TABLE_SOURCE = "src/index/elf_table/row_source.cc"
ELF_TABLE_VERSION = "src/index/elf_table/version.cc"
ELIM_PUT = "src/index/elimda/elimda.cc"
ELIM_BITS = "src/index/elimda/bits.h"
ELIM_STORE = "src/index/elimda/store.h"
ELIM_WORDS = "src/index/elimda/words.h"
ELIM_CHANGES = "src/index/elimda/changes.h"
ELIM_FOR_EACH = "src/index/elimda/for_each.h"
ELIM_FLUSH = "src/index/elimda/flush.h"
ELIM_RELOCATE = "src/index/elimda/relocate.h"
ELIM_RECOVERY = "src/index/elimda/recovery.h"
ELIM_COUNT = "src/index/elimda/key_count.h"
ELIM_MORE = "src/index/elimda/more_logs.h"
ELIM_SHAPE = "src/index/elimda/shape.h"
ELIM_SMO = "src/index/elimda/smo.h"
ELIM_ROOT = "src/index/elimda/shape.cc"
ELIM_OWNED = "src/index/elimda/owned.h"
ELIM_COLD = "src/index/elimda/cold.h"
ELIM_LOGS = "src/index/elimda/collecting_log.cc"
ELIM_BACKUP = "src/index/elimda/backup_log.cc"
ELIM_BACKUP_HEAD = "src/index/elimda/backup_log.h"
ELIM_DRAM = "src/index/elimda/dram_table.cc"
ELIM_DIRECT = "src/index/elimda/direct_units.h"
ELIM_LISTS_HEAD = "src/index/elimda/chunk_lists.h"
ELIM_LISTS = "src/index/elimda/chunk_lists.cc"
ELIM_TABLE = "src/index/elimda/pm_table.cc"
NB_PROTOCOL = "src/index/nbtree/entry_protocol.cc"
NB_PROTOCOL_H = "src/index/nbtree/entry_protocol.h"
NB_MEMORY = "src/index/nbtree/leaf_memory.h"
NB_LEDGER = "src/index/nbtree/ledger.cc"
NB_PAIRS = "src/index/nbtree/pair_writer.cc"
NB_PAIRS_H = "src/index/nbtree/pair_writer.h"
NB_UNRESOLVED = "src/index/nbtree/unresolved_blocks.h"
NB_OWNED = "src/index/nbtree/owned.h"
NB_COLD = "src/index/nbtree/cold_leaves.cc"
NB_RESUME = "src/index/nbtree/resumer.cc"
NB_SCAN = "src/index/nbtree/leaf_scanner.cc"
NB_SMO = "src/index/nbtree/smo.cc"
NB_TOP_WRITER = "src/index/nbtree/top_writer.h"
NB_TREE = "src/index/nbtree/nbtree.cc"
BOUND = "src/index/sptree/bound.h"
WORD = "src/index/common/codec.cc"
VALUE_CODEC = "src/index/common/value_codec.h"
SESSION = "src/alloc/session.cc"
ALLOC_RECOVERY = "src/alloc/recovery.cc"
RECORD = "src/alloc/record.cc"
CALLOC = "src/alloc/calloc.cc"
LIMBO = "src/alloc/limbo.h"
LANE = "src/alloc/lane.cc"
HEAP = "src/alloc/heap.cc"
CHUNKS = "src/alloc/chunks.cc"
DIRECTORY = "src/pool/directory.cc"
SUPERBLOCK = "src/pool/superblock.cc"
FILE_LOCK = "src/pool/file_lock.cc"
POOL_CORE = "src/pool/pool_core.cc"
MAPPED_FILE = "src/pool/mapped_file.cc"
INDEX_TABLE = "src/pool/index_table.cc"
RECLAIMER = "src/epoch/reclaimer.cc"
POOL = "src/index/pool.cc"
PERSIST = "src/pm/persist.h"
WAL_RECORD = "src/wal/record.h"
STRIPE = "src/wal/stripe.cc"
STRIPE_H = "src/wal/stripe.h"
SEGMENTS = "src/wal/segments.cc"
HEAD_TABLE = "src/wal/head_table.cc"
SURVIVORS = "src/wal/survivors.cc"
WAL = "src/wal/log.cc"
GENERATIONS = "src/wal/generations.cc"
