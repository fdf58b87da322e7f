/*
 * What is there in the beginning, crashes, recovery (recovery.cc), and what is asked afterwards.
 */

inline put(entry, k)
{
  key[entry] = LIVE(k);
  value[entry] = INITIAL_VALUE;
  flush(entry)
}

/* An entry that was erased. */
inline bury(entry)
{
  key[entry] = DEAD;
  flush(entry)
}

inline give(thread, first, second)
{
  doing[thread] = first;
  then_doing[thread] = second;
  busy = busy + (first != NOTHING)
}

/* What the index reaches is in use; the ledger has the rest freed. */
inline find_used()
{
  used_leaves = 0;
  used_positions = 0;
  p = 0;
  do
  :: p != NONE ->
     used_positions = used_positions | BIT(p);
     used_leaves = used_leaves | BIT(block[p]);
     p = next[block[p]]
  :: else -> break
  od;
  for (l : 0 .. LEAVES - 1) {
    if
    :: used_leaves & BIT(l)
    :: else ->
       next[l] = 0;
       for (i : 0 .. SLOTS - 1) {
         key[E(l, i)] = 0;
         value[E(l, i)] = 0;
         flush(E(l, i))
       }
    fi
  }
  for (p : 0 .. POSITIONS - 1) {
    if :: used_positions & BIT(p) :: else -> block[p] = 0; dblock[p] = 0; low[p] = 0 fi
  }
  p = 0; l = 0; i = 0
}

inline crash()
{
  d_step {
    crashes++;
    for (e : 0 .. ENTRIES - 1) {
      key[e] = dkey[e];
      value[e] = dvalue[e];
      fingerprints[e] = 0
    }
    for (p : 0 .. POSITIONS - 1) {
      block[p] = dblock[p];
      leaf_at[p] = 0;
      named[p] = 0
    }
    for (l : 0 .. LEAVES - 1) {
      visible[l] = 0;
      unpersisted[l] = 0;
      closing[l] = 0;
      smo[l] = 0;
      absorbed[l] = 0;
      absorbed_leaf[l] = 0
    }
    for (i : 0 .. THREADS - 1) {
      doing[i] = NOTHING;
      then_doing[i] = NOTHING
    }
    known = 0;
    busy = 0;
    c_code { history_crash(&now.history); };
    find_used();
    e = 0
  }
}

/* Whether an entry before this one has the same key. */
inline loses(entry, verdict)
{
  verdict = 0;
  j = (entry / SLOTS) * SLOTS;
  do
  :: j < entry ->
     verdict = verdict ||
               (!SPECIAL(key[j]) && !SPECIAL(key[entry]) && KEY_OF(key[j]) == KEY_OF(key[entry]));
     j++
  :: else -> break
  od;
  j = 0
}

/* warm(): what DRAM knows. Frozen entries stay so: their leaf is replaced when it is written to. */
inline rebuild()
{
  for (e : 0 .. ENTRIES - 1) {
    d_step {
      lost = 0;
      loses(e, lost)
    };
    if
    :: key[e] == EMPTY
    :: key[e] == DEAD || lost -> fingerprints[e] = FINGERPRINT(0)
    :: else ->
       fingerprints[e] = FINGERPRINT(KEY_OF(key[e]));
       visible[e / SLOTS] = visible[e / SLOTS] | BIT(e % SLOTS);
       if
       :: IS(key[e], LIVE)
       :: IS(key[e], FROZEN) -> closing[e / SLOTS] = 1
       :: IS(key[e], PENDING) -> key[e] = LIVE(KEY_OF(key[e])); stored(e) /* not durable: as good as live */
       fi
    fi
  }
  for (p : 0 .. POSITIONS - 1) {
    leaf_at[p] = ((used_positions & BIT(p)) -> block[p] : NONE);
    named[p] = ((used_positions & BIT(p)) -> block[p] : 0)
  }
  known = used_positions;
  p = 0;
  e = 0;
  lost = 0
}

inline read_all()
{
  n = (stopped == 0 -> 1 : 0);
  busy = 1;
  doing[n] = GET(1);
  then_doing[n] = (KEYS > 1 -> GET(2) : NOTHING);
  n = 0
}

active proctype Nature()
{
  byte e, i, j, l, n, p;
  bit lost;

  atomic {
    for (l : 0 .. LEAVES - 1) {
      next[l] = NONE
    }
    if
    :: SECOND_LOW != 0 -> low[1] = SECOND_LOW; block[1] = 1; dblock[1] = 1; next[0] = 1
    :: else
    fi;
    INITIAL;
    find_used();
    rebuild();
    for (i : 1 .. KEYS) {
      n = 0;
      for (e : 0 .. ENTRIES - 1) {
        n = n || key[e] == LIVE(i)
      }
      c_code { history_start(&now.history, PNature->i, PNature->n); }
    }
    for (i : 0 .. THREADS - 1) {
      run Thread(i)
    }
    give(0, T0);
    give(1, T1);
#if THREADS > 2
    give(2, T2);
#endif
    i = 0; n = 0; e = 0; l = 0
  };

running:
  if
#ifdef STOP
  :: atomic { stopped == NONE && busy > 0 -> stopped = 0; halt[0]!FOR_EVER }; goto running
  :: atomic { stopped == NONE && busy > 0 -> stopped = 1; halt[1]!FOR_EVER }; goto running
#if THREADS > 2
  :: atomic { stopped == NONE && busy > 0 -> stopped = 2; halt[2]!FOR_EVER }; goto running
#endif
#else
  :: atomic { crashes < 2 -> crash(); halt[0]!FOR_NOW }; goto recover
#endif
  :: atomic { crashes == 0 && busy == 0 -> read_all() }; goto end
  fi;

recover:
  if
  :: atomic { crashes < 2 -> crash() }; goto recover
  :: atomic { /* for_each_entry(): kills one that lost, durably */
       do
       :: e < ENTRIES ->
          loses(e, lost);
          if :: lost && !PLANTED(losers_survive_recovery) -> break :: else -> e++ fi
       :: else -> break
       od;
       if
       :: e < ENTRIES -> key[e] = DEAD; flush(e); e = 0; lost = 0; goto recover
       :: else -> rebuild()
       fi;
       if :: crashes == 1 -> give(0, AFTER); goto running :: else -> read_all() fi
     }
  fi;

end:
  busy == 0
}
