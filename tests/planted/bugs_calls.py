"""Bugs of what the calls of all indexes have in common."""

from bug import INDEX, OPEN_WORDS, RUNNING_CHANGE, RUNNING_CHANGE_H, drop, unit

NESTED = (unit("tests/conformance/perdix_conformance", "*can_not_change_its_key*"),)
OPTIONS = (unit("src/index/index_test", "Options.*"),)

BUGS = [
    drop(
        "the function that update_with() calls may change its key",
        RUNNING_CHANGE_H,
        "if (RunningChange::contains(",
        NESTED,
    ),
    drop(
        "the function that update_with() calls may call it for the same key, if nothing changes",
        RUNNING_CHANGE,
        "if (contains(outer_, index, key))",
        NESTED,
    ),
    drop(
        "a key stays refused when the function that update_with() calls has ended",
        RUNNING_CHANGE,
        "if (*at != nullptr)",
        NESTED,
    ),
    drop(
        "what a class is opened with is not looked at before the index is opened",
        OPEN_WORDS,
        "require_valid(kOptions, engine, options)",
        OPTIONS,
    ),
    drop(
        "options by name are not looked at before the index is opened",
        INDEX,
        "engine.require_options(info.engine, options)",
        OPTIONS,
    ),
]
