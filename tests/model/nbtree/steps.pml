/*
 * What steps of a thread have in common. Local variables are those of Thread (thread.pml).
 */

inline flush(entry)
{
  dkey[entry] = key[entry];
  dvalue[entry] = value[entry]
}

/* After each store to an entry. */
inline stored(entry)
{
  if
  :: flush(entry)
#ifndef PERSISTENT_CACHE
  :: true
#endif
  fi
}

inline stored_block(anchor)
{
  if
  :: dblock[anchor] = block[anchor]
#ifndef PERSISTENT_CACHE
  :: true
#endif
  fi
}

/* The least element of a set that is not empty. */
inline least(set, element)
{
  element = 0;
  do :: (set) & BIT(element) -> break :: else -> element++ od
}

/* An unused number; leaf 0 would mean `no SMO`. */
inline take_number(set, limit, number)
{
  number = 1;
  do :: (set) & BIT(number) -> number++ :: else -> break od;
  assert(number < limit);
  set = set | BIT(number)
}

/* N4: an entry has become live; it is the only one of its key. */
inline assert_only_live(leaf, k)
{
  d_step {
    i = 0;
    j = 0;
    do :: i < SLOTS -> j = j + (key[E(leaf, i)] == LIVE(k)); i++ :: else -> break od;
    assert(j == 1);
    i = 0;
    j = 0
  }
}

/* Looks for the key in slots of the leaf: the first one that counts, into e. */
inline first_of(leaf, k)
{
  i = 0;
  do
  :: i < SLOTS ->
     if
     :: !SPECIAL(key[E(leaf, i)]) && KEY_OF(key[E(leaf, i)]) == k &&
          (e == NONE || PLANTED(last_of_a_key_copied)) ->
        e = E(leaf, i)
     :: else
     fi;
     i++
  :: else -> break
  od;
  i = 0
}

/* The entry that counts for the key in leaf l or, if it takes its neighbour along, there. */
inline item(k)
{
  e = NONE;
  first_of(l, k);
  if :: e == NONE && al != NONE -> first_of(al, k) :: else fi
}

/* How many items there are with keys in [from, to). */
inline count_items(from, to)
{
  sum = 0;
  j = from;
  do :: j < to -> item(j); sum = sum + (e != NONE); j++ :: else -> break od;
  e = 0;
  j = 0
}

/* Whether leaf l is split, and where: the right one gets keys from `separator` on. */
inline plan()
{
  d_step {
    separator = KEYS + 1;
    count_items(1, separator);
    if
    :: sum > SPLIT_ABOVE ->
       n = (sum + 1) / 2; /* the number that stays */
       separator = 1;
       do
       :: count_items(1, separator + 1);
          if :: sum > n -> break :: else -> separator++ fi
       od
    :: else
    fi;
    sum = 0;
    n = 0
  }
}

/* Writes the items with keys in [from, to) to a new block, and what its leaf knows of them. */
inline fill(leaf, from, to)
{
  n = 0;
  j = from;
  do
  :: j < to ->
     item(j);
     if
     :: e != NONE ->
        key[E(leaf, n)] = LIVE(j);
        value[E(leaf, n)] = value[e];
        fingerprints[E(leaf, n)] = FINGERPRINT(j);
        visible[leaf] = visible[leaf] | BIT(n);
        if :: PLANTED(copy_not_persisted) :: else -> flush(E(leaf, n)) fi;
        n++
     :: else
     fi;
     j++
  :: else -> break
  od;
  e = 0;
  j = 0;
  n = 0
}

/* Makes the new leaves of the modification m. */
inline copy()
{
  d_step {
    take_number(used_leaves, LEAVES, m);
    absorbed[m] = ap;
    absorbed_leaf[m] = al;
    next[m] = (ap == NONE -> next[l] : next[al]);
    if
    :: separator <= KEYS ->
       take_number(used_leaves, LEAVES, r);
       take_number(used_positions, POSITIONS, n);
       low[n] = separator;
       leaf_at[n] = r;
       named[n] = r;
       block[n] = r;
       dblock[n] = r; /* persisted with the copies */
       next[r] = next[m];
       next[m] = n;
       fill(r, separator, KEYS + 1);
       r = 0
    :: else
    fi;
    fill(m, 1, separator)
  }
}

inline forget()
{
  d_step {
    op = 0; k = 0; p = 0; l = 0; slot = 0; mask = 0; settle = 0; before = 0; word = 0; x = 0;
    m = 0; separator = 0; f = 0; after_freeze = 0; wins = 0; joining = 0;
    i = 0; j = 0; n = 0; r = 0; e = 0; sum = 0;
    ap = NONE; al = NONE; op_p = NONE; op_l = NONE
  }
}

inline link()
{
  if
  :: PLANTED(position_before_anchor) -> goto link_leaf
  :: absorbed[m] != NONE && !PLANTED(position_before_anchor) && !PLANTED(anchor_before_absorbed) ->
     goto unlink_absorbed
  :: else -> goto link_block
  fi
}

inline linked_block()
{
  if :: PLANTED(position_before_anchor) -> leaf_replaced() :: else -> goto link_leaf fi
}

/* join(): whether two leaves should become one. A guess. */
inline may_join(left, right, verdict)
{
  d_step {
    i = 0;
    n = 0;
    j = 0;
    do
    :: i < SLOTS ->
       n = n + ((visible[left] & BIT(i)) -> 1 : 0);
       j = j + ((visible[right] & BIT(i)) -> 1 : 0);
       i++
    :: else -> break
    od;
    verdict = (n == 0 || j == 0 || n + j <= JOIN_UP_TO);
    i = 0;
    n = 0;
    j = 0
  }
}

#define INSTALL 0 /* what comes after freezing */
#define FATE 1
#define ABSORB 2

/* Ends the operation. */
inline respond(answer)
{
  x = answer;
  c_code { now.explained = history_respond(&now.history, PThread->me, PThread->x); };
  assert(explained);
  forget();
  if :: doing[me] == NOTHING -> busy-- :: else fi;
  goto end_idle
}

/* locate(): the layers above lead to the position or to one at its left, and name a leaf of it. */
inline enter()
{
  p = POSITIONS - 1;
  do :: p == 0 -> break :: p > 0 && (known & BIT(p)) && low[p] <= k -> break :: p > 0 -> p-- od;
  l = named[p];
  if
  :: (!closing[l] || PLANTED(name_trusted)) && COVERS(l, k) -> goto find
  :: else -> visit()
  fi
}

/* locate_from(): a step further. */
inline visit()
{
  l = leaf_at[p];
  if
  :: l == NONE -> p = 0; goto locate
  :: l != NONE && COVERS(l, k) -> goto find
  :: else -> goto go_right
  fi
}

inline swap_lost(state)
{
  if :: IS(state, FROZEN) -> goto replace_leaf :: else -> goto retry fi
}

/* free_before() is done with slot n. */
inline is_free()
{
  mask = mask & ~BIT(n);
  n = 0;
  word = 0;
  if :: mask == 0 -> goto decide :: else -> goto free_before fi
}

/* Another thread has decided about this insert, and may even have erased it; or it is frozen. */
inline decided()
{
  if
  :: IS(word, LIVE) -> goto show_own
  :: IS(word, FROZEN) -> f = l; after_freeze = FATE; goto freeze
  :: else -> respond(1)
  fi
}

/* The next slot that freeze() has to change, or the end of it. What is final stays so. */
inline freeze_on()
{
  i = 0;
  do :: i < SLOTS && SKIPPED(key[E(f, i)]) -> i++ :: else -> break od;
  if :: i < SLOTS -> i = 0; goto freeze_slot :: else -> i = 0 fi;
  if
  :: after_freeze == INSTALL && al != NONE && f != al && !PLANTED(absorbed_not_frozen) ->
     f = al;
     goto freeze
  :: after_freeze == INSTALL && (al == NONE || f == al || PLANTED(absorbed_not_frozen)) ->
     goto install
  :: after_freeze == FATE -> goto fate_when_frozen
  :: after_freeze == ABSORB -> goto absorb
  fi
}

/* replace_leaf() is done: back to the leaf that is to be absorbed, or the end of erase(), or again. */
inline leaf_replaced()
{
  if
  :: op_l != NONE -> p = op_p; l = op_l; op_p = NONE; op_l = NONE; goto absorb
  :: op_l == NONE && joining -> respond(1)
  :: else -> goto retry
  fi
}
