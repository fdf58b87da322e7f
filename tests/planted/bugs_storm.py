"""Bugs that the storm must notice, since they live in a larger world than the explorer's: many
threads for long, other processes, pools that are full or in use."""

from bug import ALLOC_RECOVERY, POOL_CORE, RECLAIMER, Bug, storm

# What each of these leaves out would only take time from what notices the bug.
KILLS = "--without forks,orphan,copies,memory,map,space,sync,thread,damage,millions,large,tight"
REFUSED = KILLS + ",kill,kills-while-opening,leftovers"

BUGS = [
    Bug(
        "an index that is in use is dropped",
        POOL_CORE,
        """  require_not_in_use(*slot);
  directory_->begin_drop(*slot);
""",
        """  directory_->begin_drop(*slot);
""",
        (storm(REFUSED),),
    ),
    Bug(
        "an index is opened twice",
        POOL_CORE,
        """    require_not_in_use(*slot);
    return handle(*slot, false);
""",
        """    return handle(*slot, false);
""",
        (storm(REFUSED),),
    ),
    Bug(
        "memory is used again while readers have it",
        RECLAIMER,
        """  wait_for_readers();
  completed_.store(period, std::memory_order_release);
""",
        """  completed_.store(period, std::memory_order_release);
""",
        (storm(KILLS, seconds=300),),
    ),
    Bug(
        "recovery leaks what a committed operation freed, in a real process",
        ALLOC_RECOVERY,
        "    for (const BlockRef block : record->freed) free(block);\n",
        "",
        (storm(KILLS, seconds=300),),
    ),
]
