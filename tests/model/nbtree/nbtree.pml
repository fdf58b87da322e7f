/*
 * NbTree's protocol, for the model checker Spin: how entries come, change and go, how leaves are
 * replaced, split and joined, and what of that survives a crash at any step. It follows
 * src/index/nbtree/{entry.h,leaf.h,nbtree.cc,pair_writer.cc,entry_protocol.cc,smo.cc,recovery.h} and has
 * the names from there; docs/durability/nbtree.md says what is left out.
 *
 * - A step of a thread is an atomic block, with one access to memory that others change. Where the
 *   code loads a word and swaps it if it is still the same, and else loads it again, the two are
 *   one step: a swap that fails has no effect. What only one thread can see, and what changes no
 *   more, is accessed within the step of another access.
 * - Persistent memory is there twice: as threads see it, and (d...) as a crash finds it. A line may
 *   reach memory on its own at any moment: each store chooses whether it does before the next store
 *   to that line. Each entry has a separate line, which allows more crash states than four entries
 *   in one. A flush is a step; the fence after it is none, since before the fence its thread does
 *   nothing that others can see.
 * - Nature crashes at any step, recovers, has a thread do AFTER, crashes again (perhaps while it
 *   recovers), recovers, and reads all keys. With -DSTOP it stops a thread for good instead.
 * - history.h decides whether there is an order of the operations, consistent with their results
 *   and with the crashes, in which a map would have behaved like that.
 *
 * check_model.py has the configurations, and the bugs that -DBUG=... plants.
 */

#ifndef THREADS
#define THREADS 2
#endif
#ifndef SLOTS
#define SLOTS 2 /* entries of a leaf */
#endif
#ifndef LEAVES
#define LEAVES 2 /* in one run, with those that were replaced; more are an error, or, with */
#endif           /* FEW_LEAVES, a thread that needs another one stops */
#ifndef POSITIONS
#define POSITIONS 1
#endif
#ifndef KEYS
#define KEYS 1
#endif
#ifndef SPLIT_ABOVE
#define SPLIT_ABOVE SLOTS /* pairs of a leaf that is replaced */
#endif
#ifndef JOIN_UP_TO
#define JOIN_UP_TO 1 /* pairs of two leaves */
#endif

/* Operations: kind and key. */
#define NOTHING 0
#define GET(k) (8 + (k))
#define INSERT(k) (16 + (k))
#define UPDATE(k) (24 + (k))
#define ERASE(k) (32 + (k))
#define KEY_OF(x) ((x) & 7)
#define IS(x, KIND) ((x) / 8 == KIND(0) / 8)

/* What each thread does, and one of them after the first crash: two operations, or fewer. */
#ifndef T0
#define T0 INSERT(1), NOTHING
#endif
#ifndef T1
#define T1 INSERT(1), NOTHING
#endif
#ifndef T2
#define T2 NOTHING, NOTHING
#endif
#ifndef AFTER
#define AFTER ERASE(1), NOTHING
#endif

/* What is there in the beginning: put(entry, key), bury(entry). */
#ifndef INITIAL
#define INITIAL skip
#endif
#ifndef SECOND_LOW
#define SECOND_LOW 0 /* if not 0, there are two leaves: the low bound of the second */
#endif

#define INITIAL_VALUE 1
#define VALUE_OF(thread) (2 + (thread))

/* The word of a key, with the state of its entry (entry.h). */
#define EMPTY 0
#define DEAD 1
#define LIVE(k) (8 + (k))
#define PENDING(k) (16 + (k))
#define FROZEN(k) (24 + (k))
#define SPECIAL(word) ((word) < LIVE(0))
#define FINAL(word) ((word) == DEAD || IS(word, FROZEN))

#define FINGERPRINT(k) 1 /* the same for all keys, which is the worst case */
#define NONE 255
#define FOR_NOW 0 /* a thread is halted until it gets something to do */
#define FOR_EVER 1
#define TO_BE_ABSORBED 254 /* in `smo`: the left neighbour takes the entries along */
#define ENTRIES (LEAVES * SLOTS)
#define ALL_LEAVES_USED ((used_leaves | 1) == BIT(LEAVES) - 1)
#define E(leaf, slot) ((leaf) * SLOTS + (slot))
#define BIT(i) (1 << (i))
#define COVERS(leaf, k) (next[leaf] == NONE || (k) < low[next[leaf]])

/* -DBUG=one of these plants it; check_model.py tells what each is about. */
#ifndef BUG
#define BUG 0
#endif
#define insert_not_persisted 1
#define key_before_value 2
#define empty_slots_survive 3
#define dead_slot_not_settled 4
#define helped_insert_not_persisted 5
#define loser_not_persisted 6
#define loser_not_marked 7
#define frozen_insert_wins 8
#define update_of_value_alone 9
#define update_not_persisted 10
#define update_not_marked 11
#define erase_not_persisted 12
#define erase_not_marked 13
#define erase_hidden_first 14
#define mark_ends_first 15
#define reader_ignores_marks 16
#define empty_slots_not_frozen 17
#define copied_unfrozen 18
#define last_of_a_key_copied 19
#define copy_not_persisted 20
#define position_before_anchor 21
#define helper_trusts_anchor 22
#define late_helper_overwrites 23
#define anchor_before_absorbed 24
#define absorbed_not_frozen 25
#define losers_survive_recovery 26
#define helpers_wait 27
#define name_trusted 28
#define freeze_without_closing 29
#define frozen_winner_ignores_marks 30
#define PLANTED(bug) (BUG == bug)

/* What freezing leaves as it is. */
#define SKIPPED(word) (FINAL(word) || ((word) == EMPTY && PLANTED(empty_slots_not_frozen)))

/* --- Persistent memory ------------------------------------------------------------------------ */

byte key[ENTRIES], dkey[ENTRIES];
byte value[ENTRIES], dvalue[ENTRIES];
byte next[LEAVES];                        /* of a block: the next anchor, or NONE; constant */
byte block[POSITIONS], dblock[POSITIONS]; /* of an anchor; block i is that of leaf i */
byte low[POSITIONS];                      /* of an anchor; constant */

/* --- DRAM ------------------------------------------------------------------------------------- */

byte fingerprints[ENTRIES];
byte visible[LEAVES];
byte unpersisted[LEAVES];
bit closing[LEAVES];
byte smo[LEAVES];           /* 0, the mark, or the left new leaf, by which the SMO is known */
byte absorbed[LEAVES];      /* of the SMO: a position, or NONE */
byte absorbed_leaf[LEAVES]; /* of the SMO */
byte leaf_at[POSITIONS];    /* NONE: joined with its left neighbour */
byte known;                 /* set of positions that the layers above may lead to */
byte named[POSITIONS];      /* leaf that these name: the first one, as if they were never updated */

/* --- The model's own -------------------------------------------------------------------------- */

int used_leaves;     /* a set: up to 31 leaves */
byte used_positions; /* a set: up to 8 */
byte doing[THREADS], then_doing[THREADS];
byte busy; /* number of threads that are neither idle nor stopped */
byte crashes;
byte stopped = NONE; /* the thread that stopped for good */
bit explained = 1;
chan halt[THREADS] = [0] of { bit };

c_decl {
  enum { kThreads = THREADS, kKeys = KEYS, kValues = VALUE_OF(THREADS) };
  \#include "history.h"
}
c_state "History history" "Global"

#include "steps.pml"
#include "thread.pml"
#include "nature.pml"
