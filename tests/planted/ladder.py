"""Which tests a campaign tries for each planted bug, in which order and sizes; and up to which size
the quick suite (`make test`) runs each.

A rung is one program in one size. {subject} and {size} in its command are filled in: a rung without
`concerns` is tried with those subjects of the bug that are of its kind, any other with what
`concerns` has for the longest beginning of the bug's path that it knows, unless that is empty.
"""

from collections import namedtuple

Rung = namedtuple("Rung", "kind command size concerns", defaults=({},))

# What each kind counts in.
UNITS = {
    "explorer": "images",
    "schedules": "schedules",
    "unit": "s",
    "conformance": "s",
    "kill": "s",
    "storm": "s",
}

# Up to how many of these the quick suite goes; it has no storm.
QUICK = {"explorer": 440, "schedules": 60, "unit": 60, "conformance": 60, "kill": 60}

_ENGINES = ("sptree", "fastfair", "cceh", "skiplist", "elimda", "nbtree", "tips")
# What all engines share shows in SpTree. The suites of maps do not run the engines without a name.
_ENGINE_OF = {"src/": "sptree"} | {f"src/index/{engine}/": engine for engine in _ENGINES}
_ENGINE_OF |= {f"src/index/{engine}/": "" for engine in ("elf", "elf_table", "tips_of")}
_KILLED = _ENGINE_OF | {"src/index/tips/": "tips:hash"}

_EXPLORE = "--engine {subject} --total {size}"
_SCHEDULES = "{subject} --runs {size}"
_CASES = "--gtest_brief=1 --gtest_filter={subject}"
_CONFORMANCE = "--gtest_brief=1 --gtest_filter=*{subject}*_u64_u64_memory_controller*"
_STORM = "{subject} --findings 1"

# Sizes of what counts seconds are when a run is given up.
LADDER = (
    Rung("explorer", _EXPLORE, 110),
    Rung("explorer", _EXPLORE, 440),
    Rung("unit", _CASES, 300),
    Rung("schedules", _SCHEDULES, 60),
    Rung("conformance", _CONFORMANCE, 300, _ENGINE_OF),
    Rung("explorer", _EXPLORE, 4000),
    Rung("kill", "--kinds u64_u64 --engine {subject}", 300, _KILLED),
    Rung("schedules", _SCHEDULES, 1000),
    Rung("explorer", _EXPLORE, 32000),
    Rung("schedules", _SCHEDULES, 10000),
    Rung("storm", _STORM, 420),
)
