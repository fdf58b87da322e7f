"""Bugs that the storm must notice, since they live in a larger world than the explorer's: many
threads for long, other processes, pools that are full or in use."""

from bug import FAIR_STORE, FILE_LOCK, INDEX_TABLE, MAPPED_FILE, NB_LEDGER, NB_TREE, POOL
from bug import POOL_CORE, RECLAIMER, SPTREE_RESUME, STRIPE_H, WRITE_BUFFERS, Bug, drop, storm
from bug import unit

DESCRIPTOR = "src/pm/descriptor.cc"
FORKS = "src/pool/forks.cc"
HEALTH = "src/pool/health.cc"
HEAP_DISCOVERY = "src/alloc/heap_discovery.cc"
MAPPING = "src/pm/mapping.cc"
NB_TEST = "src/index/nbtree/nbtree_test"
SPTREE_SPACE_TEST = "src/index/sptree/sptree_space_test"
NB_TOP = "src/index/nbtree/top.h"
OPEN_OR_REMOVE = "src/index/common/open_or_remove.h"
AS_ERRORS = "src/pool/as_errors.cc"

# What each of these leaves out would only take time from what notices the bug.
FAULTS = "memory,map,space,sync,thread"
QUIET = f"--without {FAULTS},closed-pool,forks,orphan,copies,damage,millions,large,tight"
KILLS = QUIET + ",misuse,visitors,burn,stop,bounds,leftovers,prefix,groups"
REFUSED = QUIET + ",visitors,burn,stop,kill,kills-while-opening,bounds,leftovers,prefix,groups"

# Only what is asked for by --with, and kills.
ALONE = f"--without {FAULTS},bounds,leftovers"
ALONE_WITH_LEFTOVERS = f"--without {FAULTS},bounds"
POWER = f"--with page_cache,power {ALONE}"

BUGS = [
    drop(
        "an index that is in use is dropped",
        POOL_CORE,
        "indexes_->require_closed(slot)",
        (storm(REFUSED),),
        after="begin_drop(std::string_view name)",
    ),
    drop(
        "an index is opened twice",
        INDEX_TABLE,
        "require_closed(slot)",
        (storm(REFUSED),),
        after="IndexTable::require_may_open(",
    ),
    drop(
        "memory is used again while readers have it",
        RECLAIMER,
        "wait_for_readers();",
        (storm(KILLS, seconds=300),),
    ),
    Bug(
        "a second process owns the pool too",
        FILE_LOCK,
        "set_lock(file, F_WRLCK) != 0;",
        "!{planted} && set_lock(file, F_WRLCK) != 0;",
        (storm(REFUSED),),
    ),
    # What follows takes out what mends a fault that was found, one at a time.
    Bug(
        "sptree: a guess of where a cold range begins is trusted",
        SPTREE_RESUME,
        """  for (Node* node = parts_.top.locate_surely(key);;) {
    const Version version = node->lock.read_begin();
    if (Node::Lock::obsolete(version)) {
      node = parts_.top.locate_surely(key);
    } else if (node->covers(key)) {
      high = node->high.load(std::memory_order_acquire);
      if (node->lock.read_validate(version)) return LockedNode(nullptr);
    } else if (Node* next = parts_.nodes.next_of(*node); next != nullptr) {
      if (node->lock.read_validate(version)) node = next;
    } else if (node->lock.try_upgrade(version)) {
      pm::on_step("sptree: lock a cold range");
      LockedNode left(node);
""",
        """  for (Node* node = {planted} ? parts_.top.locate(Key())
                              : parts_.top.locate_surely(key);;) {
    const Version version = node->lock.read_begin();
    if (Node::Lock::obsolete(version)) {
      node = parts_.top.locate_surely(key);
    } else if (node->covers(key)) {
      high = node->high.load(std::memory_order_acquire);
      if (node->lock.read_validate(version)) return LockedNode(nullptr);
    } else if (Node* next = parts_.nodes.next_of(*node); next != nullptr) {
      if (node->lock.read_validate(version)) node = next;
    } else if (node->lock.try_upgrade(version)) {
      pm::on_step("sptree: lock a cold range");
      LockedNode left(node);
      if ({planted}) return left;
""",
        (storm(f"--engine sptree {ALONE}", seconds=120),),
    ),
    Bug(
        "a chain of the log is promised no room for its END",
        STRIPE_H,
        """\
  static std::uint64_t promise_of(const Chain& chain) noexcept { return 1u + chain.sure; }
""",
        """  static std::uint64_t promise_of(const Chain& chain) noexcept {
    return {planted} ? 0u : 1u + chain.sure;
  }
""",
        (storm(f"--engine sptree --with tight {ALONE}", seconds=120),),
    ),
    Bug(
        "nbtree: top nodes are freed immediately",
        NB_TOP,
        """void TopLayer<K>::retire(Node* node) {
  reclaimer_.retire(
""",
        """void TopLayer<K>::retire(Node* node) {
  if ({planted}) return discard(node);
  reclaimer_.retire(
""",
        (storm(f"--engine nbtree --kinds bytes_u64 --with large,fill,drain {ALONE}", seconds=300),),
    ),
    Bug(
        "children of a fork inherit the mapping",
        MAPPING,
        """  if (::madvise(base_ + begin, end - begin, MADV_DONTFORK) == 0) return;
""",
        """  if ({planted} || ::madvise(base_ + begin, end - begin, MADV_DONTFORK) == 0) return;
""",
        (storm(f"--with orphan {ALONE}", seconds=120),),
    ),
    drop(
        "children of a fork keep the descriptor",
        FORKS,
        "for (pm::Descriptor& descriptor : mine.descriptors)",
        (storm(f"--with orphan {ALONE}", seconds=120),),
    ),
    Bug(
        "a descriptor is used whatever it leads to",
        DESCRIPTOR,
        """  struct stat file {};
  return number_ >= 0 && ::fstat(number_, &file) == 0 && file.st_dev == device_ &&
""",
        """  struct stat file {};
  if ({planted}) return number_ >= 0;
  return number_ >= 0 && ::fstat(number_, &file) == 0 && file.st_dev == device_ &&
""",
        (storm(f"--with descriptors {ALONE}", seconds=120),),
    ),
    drop(
        "a child of a fork does not know that it is one",
        HEALTH,
        "if (::madvise(page, sizeof(Health), MADV_WIPEONFORK) != 0)",
        (storm(f"--with forks {ALONE}", seconds=120),),
    ),
    Bug(
        "an index that can't be dropped keeps its pool from being opened",
        POOL,
        """    return core.postpone_drop(std::move(handle), error.what());
""",
        """    if ({planted}) throw;
    return core.postpone_drop(std::move(handle), error.what());
""",
        (storm(f"--with damage,close --engine sptree {ALONE}", seconds=300),),
    ),
    drop(
        "an opening does not go on with a drop",
        POOL,
        "for (detail::pool::IndexHandle& handle : core->dropping())",
        (storm(f"--with recreate {ALONE}", seconds=120),),
    ),
    Bug(
        "a file is cut before it is known to be a sound pool",
        MAPPED_FILE,
        """  FoundSuperblock found = read_superblock(file_);
""",
        """  FoundSuperblock found = read_superblock(file_);
  if ({planted} && file_.size() > found.superblock.size) file_.truncate(found.superblock.size);
""",
        (storm(f"--with damage,close {ALONE}", seconds=300),),
    ),
    drop(
        "a pool is used on after a failed sync",
        MAPPED_FILE,
        "health_->set_sync_failed()",
        (storm("--with page_cache,sync --without memory,map,space,thread,bounds,leftovers"),),
    ),
    drop(
        "what was stored behind a failed sync reaches the file",
        MAPPED_FILE,
        "mapping_->make_private()",
        (storm("--with page_cache,sync --without memory,map,space,thread,bounds,leftovers"),),
    ),
    Bug(
        "fastfair: an update of a string is acknowledged before it is durable",
        FAIR_STORE,
        """      session.commit(pm::set_word(word, new_word));  // the new blob is durable before
""",
        """      session.commit_when(word, ~Word{0}, new_word);
      session.log();
      pm().store(word, new_word);
      session.finish();
""",
        (storm(f"--engine fastfair --kinds u64_bytes {POWER}", seconds=120),),
    ),
    Bug(
        "a copy of a pool in use is taken for the pool",
        POOL_CORE,
        """  const bool other_file = !file_.origin().same_file(before);
""",
        """  const bool other_file = !{planted} && !file_.origin().same_file(before);
""",
        (storm(f"--with copies {ALONE}", seconds=120),),
    ),
    Bug(
        "a pool that is closed is used",
        POOL_CORE,
        """void PoolCore::require_open() const {
  if (open_) return;
""",
        """void PoolCore::require_open() const {
  if (open_ || {planted}) return;
""",
        (storm(f"--with misuse {ALONE}", seconds=120),),
    ),
    Bug(
        "nbtree: the name of an anchor is followed wherever it leads",
        NB_LEDGER,
        "  if (place == nullptr) pool::throw_corrupt(pool_, kPage, offset);\n",
        """  if ({planted}) return *pool_.at<Anchor>(offset);
  if (place == nullptr) pool::throw_corrupt(pool_, kPage, offset);
""",
        # Three storms of five minutes did not: few damaged copies have such a name.
        (unit(NB_TEST, "NbTreeDamage.DoesNotFollowWildNames"),),
    ),
    drop(
        "a full pool does not get what interrupted operations have",
        NB_TREE,
        "any |= upkeep_->resumer",
        (unit(NB_TEST, "NbTreeResume.AFullPoolGetsBlocksOfInterruptedOperations"),),
    ),
    drop(
        "an index of one leaf keeps its log when it is opened without buffers",
        SPTREE_RESUME,
        "all_warm_()",
        (
            unit(
                SPTREE_SPACE_TEST,
                "LogSpaceTest.AnEmptiedIndexOfOneLeafKeepsNoLogWithoutBuffers",
            ),
        ),
        after="Resumer<K>::start(",
    ),
    Bug(
        "std::bad_alloc leaves the library",
        AS_ERRORS,
        """void throw_as_error() {
  try {
""",
        """void throw_as_error() {
  if ({planted}) throw;
  try {
""",
        (storm("--with memory --without page_cache,bounds,leftovers", seconds=120),),
    ),
    Bug(
        "a full pool asks no index for space",
        POOL_CORE,
        """  const bool given_back = open_indexes_.reclaim_space();
""",
        """  const bool given_back = !{planted} && open_indexes_.reclaim_space();
""",
        (storm(f"--engine nbtree --with tight,fill,drain {ALONE_WITH_LEFTOVERS}", seconds=120),),
    ),
    drop(
        "a full pool does not know the free spans that it was opened with",
        HEAP_DISCOVERY,
        "for (unsigned size_class = 0; size_class < kClasses; ++size_class)",
        (
            storm(
                "--engine fastfair --kinds u64_u64 --with tight,fill,drain,destroy "
                + ALONE_WITH_LEFTOVERS,
                seconds=120,
            ),
        ),
        after="Heap::discover_all_spans(",
    ),
    Bug(
        "max_size is forgotten",
        MAPPED_FILE,
        "checked_max_size(options, before.max_size,",
        "checked_max_size(options, {planted} ? kDefaultMaxSize : before.max_size,",
        (storm(f"--with tight,default-options,fill,close {ALONE}", seconds=120),),
    ),
    drop(
        "a constructor that throws leaves its index",
        OPEN_OR_REMOVE,
        "remove_new(std::move(mine), destroy)",
        (storm(f"--with tight,recreate {ALONE}", seconds=300),),
    ),
    Bug(
        "sptree: an index without a log can't be opened with a budget in a full pool",
        WRITE_BUFFERS,
        """    if (error.code() != Errc::out_of_space) throw;
    return false;
""",
        """    if ({planted} || error.code() != Errc::out_of_space) throw;
    return false;
""",
        (storm(f"--engine sptree --with tight {ALONE}", seconds=120),),
    ),
]
