"""Bugs that the storm must notice, since they live in a larger world than the explorer's: many
threads for long, other processes, pools that are full or in use."""

from bug import FILE_LOCK, POOL_CORE, RECLAIMER, Bug, storm

# What each of these leaves out would only take time from what notices the bug.
FAULTS = "memory,map,space,sync,thread"
QUIET = f"--without {FAULTS},closed-pool,forks,orphan,copies,damage,millions,large,tight"
KILLS = QUIET + ",misuse,visitors,burn,stop,bounds,leftovers,prefix,groups"
REFUSED = QUIET + ",visitors,burn,stop,kill,kills-while-opening,bounds,leftovers,prefix,groups"

BUGS = [
    Bug(
        "an index that is in use is dropped",
        POOL_CORE,
        """  require_not_in_use(slot);
  IndexInfo info = directory_->info(slot);
""",
        """  IndexInfo info = directory_->info(slot);
""",
        (storm(REFUSED),),
    ),
    Bug(
        "an index is opened twice",
        POOL_CORE,
        """    require_not_in_use(*slot);
    return handle(*slot, directory_->info(*slot), false);
""",
        """    return handle(*slot, directory_->info(*slot), false);
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
        "a second process owns the pool too",
        FILE_LOCK,
        """  if (set_lock(file, F_WRLCK) == 0) {
    close_in_children""",
        """  if (set_lock(file, F_WRLCK) == 0 || {planted}) {
    close_in_children""",
        (storm(REFUSED),),
    ),
]
