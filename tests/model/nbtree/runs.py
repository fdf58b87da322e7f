"""The runs of the model: what each explores, and the bugs that one of them must find."""

import collections

# defines: of nbtree.pml. stops: threads may stop for good, and none may run without end; otherwise
# there are crashes. quick: in the test suite. large: has too many states to remember them; only
# --large begins it, but its bugs are looked for in any case.
Run = collections.namedtuple(
    "Run", "name about defines stops quick large", defaults=(False, False, False)
)
# run: the name of the one that must find it.
Bug = collections.namedtuple("Bug", "name run about")

# A leaf that is full of dead entries is replaced by the first insert.
_FULL = "put(0, 1); bury(1)"
_TWO_LEAVES = {"POSITIONS": "2", "KEYS": "2", "SECOND_LOW": "2", "INITIAL": "put(0, 1); put(2, 2)"}
_OF_THREE = {"THREADS": "3", "AFTER": "NOTHING, NOTHING", "FEW_LEAVES": "1"}

RUNS = (
    Run(
        "insert-insert",
        "two inserts of one new key; one thread erases it",
        {"T0": "INSERT(1), ERASE(1)", "T1": "INSERT(1), NOTHING", "LEAVES": "6"},
        quick=True,
    ),
    Run(
        "insert-erase",
        "an erase, and inserts of the same key behind the dead entry",
        {
            "INITIAL": "put(0, 1)",
            "T0": "ERASE(1), NOTHING",
            "T1": "INSERT(1), GET(1)",
            "AFTER": "INSERT(1), ERASE(1)",
            "SLOTS": "3",
            "LEAVES": "6",
        },
        quick=True,
    ),
    Run(
        "read",
        "an update, then an erase, and a reader",
        {
            "INITIAL": "put(0, 1)",
            "T0": "UPDATE(1), ERASE(1)",
            "T1": "GET(1), GET(1)",
            "AFTER": "INSERT(1), NOTHING",
            "LEAVES": "4",
        },
        quick=True,
    ),
    Run(
        "replace",
        "a full leaf is replaced while its entry is updated",
        {
            "INITIAL": _FULL,
            "KEYS": "2",
            "T0": "UPDATE(1), GET(1)",
            "T1": "INSERT(2), UPDATE(1)",
            "LEAVES": "6",
        },
        quick=True,
    ),
    Run(
        "replace-erase",
        "a full leaf is replaced while its entry is erased",
        {
            "INITIAL": _FULL,
            "KEYS": "2",
            "T0": "ERASE(1), GET(1)",
            "T1": "INSERT(2), GET(1)",
            "LEAVES": "6",
        },
    ),
    Run(
        "replace-twice",
        "leaves of one entry: a late helper meets the next replacement",
        {
            "SLOTS": "1",
            "INITIAL": "bury(0)",
            "T0": "INSERT(1), NOTHING",
            "T1": "INSERT(1), ERASE(1)",
            "T2": "INSERT(1), NOTHING",
            "THREADS": "3",
            "AFTER": "NOTHING, NOTHING",
            "LEAVES": "4",
            "FEW_LEAVES": "1",
        },
        large=True,
    ),
    Run(
        "split",
        "two inserts of one new key, the second of which splits the leaf; an update",
        {
            "SLOTS": "3",
            "INITIAL": "put(0, 1); bury(1)",
            "KEYS": "2",
            "SPLIT_ABOVE": "1",
            "POSITIONS": "4",
            "LEAVES": "10",
            "T0": "INSERT(2), NOTHING",
            "T1": "INSERT(2), UPDATE(1)",
            "AFTER": "ERASE(2), NOTHING",
        },
    ),
    Run(
        "three",
        "three inserts of one new key, and an erase",
        {
            "THREADS": "3",
            "SLOTS": "3",
            "T0": "INSERT(1), ERASE(1)",
            "T1": "INSERT(1), NOTHING",
            "T2": "INSERT(1), NOTHING",
            "AFTER": "NOTHING, NOTHING",
            "LEAVES": "5",
        },
        large=True,
    ),
    Run(
        "persistent-cache",
        "the same where caches survive a crash",
        {
            "THREADS": "3",
            "SLOTS": "3",
            "T0": "INSERT(1), ERASE(1)",
            "T1": "INSERT(1), NOTHING",
            "T2": "INSERT(1), NOTHING",
            "AFTER": "NOTHING, NOTHING",
            "LEAVES": "5",
            "PERSISTENT_CACHE": "1",
        },
    ),
    Run(
        "frozen",
        "two undecided inserts of one key are frozen by a third",
        {
            "THREADS": "3",
            "KEYS": "2",
            "SLOTS": "3",
            "INITIAL": "bury(2)",
            "T0": "INSERT(1), NOTHING",
            "T1": "INSERT(1), NOTHING",
            "T2": "INSERT(2), NOTHING",
            "AFTER": "NOTHING, NOTHING",
            "LEAVES": "12",
        },
        large=True,
    ),
    Run(
        "three-read",
        "a full leaf is replaced while its entry is updated and read",
        dict(
            _OF_THREE,
            INITIAL=_FULL,
            KEYS="2",
            T0="UPDATE(1), NOTHING",
            T1="INSERT(2), NOTHING",
            T2="GET(1), NOTHING",
            LEAVES="5",
        ),
    ),
    Run(
        "three-replace",
        "a full leaf is replaced while its entry is updated, read, erased and inserted again",
        dict(
            _OF_THREE,
            INITIAL=_FULL,
            KEYS="2",
            T0="UPDATE(1), ERASE(1)",
            T1="INSERT(2), GET(1)",
            T2="GET(1), INSERT(1)",
            LEAVES="5",
        ),
        large=True,
    ),
    Run(
        "three-split",
        "two inserts of one new key, the second of which splits the leaf; an update",
        dict(
            _OF_THREE,
            SLOTS="3",
            INITIAL="put(0, 1); bury(1)",
            KEYS="2",
            SPLIT_ABOVE="1",
            POSITIONS="4",
            T0="INSERT(2), NOTHING",
            T1="INSERT(2), NOTHING",
            T2="UPDATE(1), NOTHING",
            LEAVES="7",
        ),
        large=True,
    ),
    Run(
        "three-join",
        "a leaf is emptied and joined, while its key is inserted again and read",
        dict(
            _OF_THREE,
            **_TWO_LEAVES,
            T0="ERASE(2), NOTHING",
            T1="INSERT(2), NOTHING",
            T2="GET(2), NOTHING",
            LEAVES="6",
        ),
    ),
    Run(
        "join",
        "a leaf is emptied and joined with its left neighbour, while its key is inserted again",
        dict(_TWO_LEAVES, T0="ERASE(2), NOTHING", T1="INSERT(2), GET(2)", LEAVES="7"),
    ),
    Run(
        "join-left",
        "the left one of two leaves is emptied and takes its neighbour along, which changes",
        dict(_TWO_LEAVES, T0="ERASE(1), NOTHING", T1="UPDATE(2), INSERT(1)", LEAVES="7"),
    ),
    Run(
        "stop",
        "a thread stops for good while a leaf is replaced",
        {
            "INITIAL": _FULL,
            "KEYS": "2",
            "T0": "UPDATE(1), NOTHING",
            "T1": "INSERT(2), NOTHING",
            "LEAVES": "6",
        },
        stops=True,
        quick=True,
    ),
    Run(
        "stop-split",
        "a thread stops for good while both insert, and split the leaf",
        {
            "KEYS": "2",
            "SPLIT_ABOVE": "1",
            "SLOTS": "3",
            "POSITIONS": "4",
            "INITIAL": "put(0, 1); bury(1)",
            "T0": "INSERT(2), NOTHING",
            "T1": "INSERT(2), ERASE(1)",
            "LEAVES": "10",
        },
        stops=True,
        large=True,
    ),
    Run(
        "stop-join",
        "a thread stops for good while two leaves are joined",
        dict(_TWO_LEAVES, T0="ERASE(2), NOTHING", T1="INSERT(2), ERASE(1)", LEAVES="8"),
        stops=True,
    ),
)

BUGS = (
    Bug("insert_not_persisted", "insert-insert", "an insert is decided before it is durable"),
    Bug("key_before_value", "insert-insert", "the key is stored before the value"),
    Bug("empty_slots_survive", "insert-insert", "empty slots before an insert are not killed"),
    Bug("dead_slot_not_settled", "insert-insert", "a dead entry before an insert is not persisted"),
    Bug("helped_insert_not_persisted", "insert-insert", "another's insert is decided unpersisted"),
    Bug("loser_not_persisted", "insert-insert", "the death of an insert that lost is not durable"),
    Bug("loser_not_marked", "three", "an insert that lost dies and is not marked as unpersisted"),
    Bug("frozen_insert_wins", "frozen", "the owner of a frozen insert takes it for the winner"),
    Bug("frozen_winner_ignores_marks", "three", "a frozen insert wins over an unpersisted death"),
    Bug("update_of_value_alone", "replace", "an update does not compare the key's word"),
    Bug("update_not_persisted", "read", "an update is not persisted"),
    Bug("update_not_marked", "read", "an update is visible and not marked as unpersisted"),
    Bug("erase_not_persisted", "read", "an erase is not persisted"),
    Bug("erase_not_marked", "read", "an erase is visible and not marked as unpersisted"),
    Bug("erase_hidden_first", "read", "an entry is hidden before its death is durable"),
    Bug("mark_ends_first", "read", "the mark of an update ends before that is durable"),
    Bug("reader_ignores_marks", "read", "a reader ignores that changes are unpersisted"),
    Bug("name_trusted", "stop", "a search does not ask whether the leaf that it finds is closing"),
    Bug("freeze_without_closing", "stop", "a leaf is replaced that is not closing"),
    Bug("empty_slots_not_frozen", "split", "freezing leaves empty slots to threads that took them"),
    Bug("copied_unfrozen", "replace", "a leaf is copied that is not frozen"),
    Bug("last_of_a_key_copied", "frozen", "of entries with one key the last is copied"),
    Bug("copy_not_persisted", "replace", "the new block is linked before it is durable"),
    Bug("position_before_anchor", "replace", "the new leaf is in use before its link is durable"),
    Bug("helper_trusts_anchor", "replace", "a helper does not persist a link that it finds made"),
    Bug("late_helper_overwrites", "replace-twice", "a late helper links again what is gone"),
    Bug("anchor_before_absorbed", "join", "a leaf stays in use after it has been joined"),
    Bug("absorbed_not_frozen", "join", "a leaf is joined that is not frozen"),
    Bug("losers_survive_recovery", "insert-insert", "recovery leaves inserts that lost"),
    Bug("helpers_wait", "stop", "a thread at a closed leaf waits until it is replaced"),
)
