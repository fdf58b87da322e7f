"""Bugs of what the calls of all indexes have in common."""

from bug import RUNNING_CHANGE, RUNNING_CHANGE_H, drop, unit

NESTED = (unit("tests/conformance/perdix_conformance", "*can_not_change_its_key*"),)

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
]
