/*
 * A thread: two operations, one after the other. Labels have the names of functions.
 */

proctype Thread(byte me)
{
  byte op, k;                               /* the operation */
  byte p, l;                                /* its place: position and leaf */
  byte slot, mask, settle, before, word, x; /* in the leaf */
  byte m, separator;                        /* the SMO, and where it splits the leaf */
  byte ap = NONE, al = NONE;                /* place that the SMO absorbs */
  byte op_p = NONE, op_l = NONE;            /* place that waits until its left neighbour does so */
  byte f, after_freeze;                     /* the leaf that is being frozen */
  bit wins, joining;
  byte i, j, n, r, e, sum;                  /* within steps */

end_idle:
  do
  :: {
       atomic {
         doing[me] != NOTHING ->
         op = doing[me];
         k = KEY_OF(op);
         doing[me] = then_doing[me];
         then_doing[me] = NOTHING;
         c_code {
           history_invoke(&now.history, PThread->me, PThread->op / 8, PThread->k, PThread->me + 2);
         };
         enter()
       };

       /* --- nbtree.h --- */

  retry:
       atomic { enter() };
  locate:
       atomic { visit() };
  go_right:
       atomic {
         n = next[l];
         if
         :: leaf_at[n] == NONE -> n = 0; goto replace_leaf /* another thread does it */
         :: else -> p = n; n = 0; goto locate
         fi
       };

  find:
       atomic {
         d_step {
           mask = 0;
           slot = NONE;
           settle = 0;
           n = visible[l];
           do
           :: i < SLOTS ->
              mask = mask | ((n & BIT(i)) && fingerprints[E(l, i)] == FINGERPRINT(k) -> BIT(i) : 0);
              i++
           :: else -> break
           od;
           i = 0;
           n = 0
         };
         if :: mask == 0 -> goto current :: else -> goto find_in_slot fi
       };
  find_in_slot:
       atomic {
         least(mask, i);
         word = key[E(l, i)];
         mask = mask & ~BIT(i);
         if
         :: SPECIAL(word) -> settle = settle | BIT(i) /* it may have been here */
         :: !SPECIAL(word) && KEY_OF(word) == k -> slot = i; mask = 0; settle = BIT(i)
         :: else
         fi;
         word = 0;
         i = 0;
         if
         :: slot != NONE -> goto read_value
         :: slot == NONE && mask != 0 -> goto find_in_slot
         :: slot == NONE && mask == 0 && settle != 0 -> goto persist_unpersisted
         :: else -> goto current
         fi
       };
  read_value:
       atomic { x = value[E(l, slot)]; goto persist_unpersisted };

       /* --- nbtree.cc, pair_writer.cc --- */

  persist_unpersisted:
       atomic {
         if
         :: unpersisted[l] == 0 || PLANTED(reader_ignores_marks) -> settle = 0; goto current
         :: else -> goto settle_slot
         fi
       };
  settle_slot:
       atomic {
         least(settle, i);
         flush(E(l, i));
         settle = settle & ~BIT(i);
         i = 0;
         if :: settle == 0 -> goto current :: else -> goto settle_slot fi
       };
  current:
       atomic {
         /* A leaf that is not closing is at its position, which need not be asked. */
         if :: closing[l] && leaf_at[p] != l -> goto retry :: else fi;
         if
         :: IS(op, GET) && slot != NONE -> respond(x)
         :: IS(op, GET) && slot == NONE -> respond(0)
         :: IS(op, INSERT) && slot != NONE -> respond(0)
         :: IS(op, INSERT) && slot == NONE -> goto add
         :: !IS(op, GET) && !IS(op, INSERT) && slot == NONE -> respond(0)
         :: IS(op, UPDATE) && slot != NONE -> goto replace
         :: IS(op, ERASE) && slot != NONE -> goto remove
         fi
       };

  replace:
       atomic { unpersisted[l] = unpersisted[l] + !PLANTED(update_not_marked) };
       atomic {
         word = key[E(l, slot)];
         if
         :: IS(word, LIVE) && PLANTED(update_of_value_alone) -> goto replace_value
         :: IS(word, LIVE) && !PLANTED(update_of_value_alone) ->
            value[E(l, slot)] = VALUE_OF(me);
            stored(E(l, slot))
         :: else -> goto not_replaced
         fi
       };
  replaced:
       atomic {
         if
         :: PLANTED(mark_ends_first) -> unpersisted[l]--
         :: PLANTED(update_not_persisted)
         :: else -> flush(E(l, slot)) /* the commit */
         fi
       };
       atomic {
         if
         :: PLANTED(mark_ends_first) -> flush(E(l, slot))
         :: PLANTED(update_not_marked)
         :: else -> unpersisted[l]--
         fi;
         respond(1)
       };
  replace_value:
       atomic { value[E(l, slot)] = VALUE_OF(me); stored(E(l, slot)); goto replaced };
  not_replaced:
       atomic {
         unpersisted[l] = unpersisted[l] - !PLANTED(update_not_marked);
         swap_lost(word)
       };

  remove:
       atomic { unpersisted[l] = unpersisted[l] + !PLANTED(erase_not_marked) };
       atomic {
         word = key[E(l, slot)];
         if
         :: IS(word, LIVE) -> key[E(l, slot)] = DEAD; stored(E(l, slot))
         :: else -> goto not_removed
         fi
       };
       atomic {
         if
         :: PLANTED(erase_hidden_first) -> visible[l] = visible[l] & ~BIT(slot)
         :: PLANTED(erase_not_persisted)
         :: else -> flush(E(l, slot)) /* the commit */
         fi
       };
       atomic {
         if
         :: PLANTED(erase_hidden_first) -> flush(E(l, slot))
         :: else -> visible[l] = visible[l] & ~BIT(slot)
         fi
       };
       atomic {
         unpersisted[l] = unpersisted[l] - !PLANTED(erase_not_marked);
#if POSITIONS > 1
         goto join_sparse
#else
         respond(1)
#endif
       };
  not_removed:
       atomic {
         unpersisted[l] = unpersisted[l] - !PLANTED(erase_not_marked);
         swap_lost(word)
       };

       /* --- entry_protocol.cc --- */

  add:
       atomic {
         slot = 0;
         do :: slot < SLOTS && fingerprints[E(l, slot)] != 0 -> slot++ :: else -> break od;
         if :: slot == SLOTS -> goto replace_leaf :: else -> fingerprints[E(l, slot)] = FINGERPRINT(k) fi
       };
       atomic {
         if
         :: PLANTED(key_before_value)
         :: else -> value[E(l, slot)] = VALUE_OF(me); stored(E(l, slot))
         fi
       };
       atomic {
         if
         :: key[E(l, slot)] == EMPTY -> key[E(l, slot)] = PENDING(k); stored(E(l, slot))
         :: else -> goto slot_closed
         fi
       };
#if PLANTED(key_before_value)
       atomic { value[E(l, slot)] = VALUE_OF(me); stored(E(l, slot)) };
#endif
       atomic {
         if
         :: PLANTED(insert_not_persisted)
         :: else -> flush(E(l, slot)) /* before another thread can see the key */
         fi;
         mask = 0;
         do
         :: i < slot ->
            mask = mask | (fingerprints[E(l, i)] == FINGERPRINT(k) -> BIT(i) : 0);
            i++
         :: else -> break
         od;
         i = 0;
         before = mask;
         wins = 1;
         if :: mask == 0 -> goto decide :: else -> goto free_before fi
       };
  slot_closed:
       atomic {
         if :: closing[l] -> goto replace_leaf :: else -> goto retry fi
       };

  free_before: /* the least slot in the mask */
       atomic {
         least(mask, i);
         n = i;
         i = 0;
         word = key[E(l, n)];
         if
         :: word == EMPTY && !PLANTED(empty_slots_survive) ->
            key[E(l, n)] = DEAD; /* not persisted: empty is as good after a crash */
            stored(E(l, n))
         :: word == DEAD && !PLANTED(dead_slot_not_settled) -> goto settle_dead
         :: word == PENDING(k) -> goto help
         :: word == LIVE(k) -> goto show_other
         :: word == FROZEN(k) -> wins = 0; n = 0; goto decide
         :: else
         fi;
         is_free()
       };
  settle_dead:
       atomic {
         if :: unpersisted[l] == 0 -> is_free() :: else fi
       };
       atomic { flush(E(l, n)); is_free() };
  help: /* all before it is settled: it is the first, and wins */
       atomic {
         if :: PLANTED(helped_insert_not_persisted) :: else -> flush(E(l, n)) fi
       };
       atomic {
         if
         :: key[E(l, n)] == PENDING(k) ->
            key[E(l, n)] = LIVE(k);
            stored(E(l, n));
            assert_only_live(l, k)
         :: else -> n = 0; goto free_before
         fi
       };
  show_other: /* it is live, or was */
       atomic { visible[l] = visible[l] | BIT(n); wins = 0 };
       atomic {
         if :: SPECIAL(key[E(l, n)]) :: else -> n = 0; goto decide fi
       };
       atomic { flush(E(l, n)) }; /* before it is hidden */
       atomic { visible[l] = visible[l] & ~BIT(n); n = 0 };

  decide:
       atomic {
         mask = 0;
         word = key[E(l, slot)];
         if
         :: !IS(word, PENDING) -> decided()
         :: IS(word, PENDING) && !wins -> goto lose
         :: IS(word, PENDING) && wins ->
            key[E(l, slot)] = LIVE(k); /* not persisted: pending is as good after a crash */
            stored(E(l, slot));
            assert_only_live(l, k)
         fi
       };
  show_own:
       atomic { visible[l] = visible[l] | BIT(slot) };
       atomic {
         if :: SPECIAL(key[E(l, slot)]) :: else -> respond(1) fi
       };
       atomic { flush(E(l, slot)) };
       atomic { visible[l] = visible[l] & ~BIT(slot); respond(1) };
  lose:
       atomic { unpersisted[l] = unpersisted[l] + !PLANTED(loser_not_marked) };
       atomic {
         word = key[E(l, slot)];
         if
         :: IS(word, PENDING) -> key[E(l, slot)] = DEAD; stored(E(l, slot))
         :: else -> goto not_lost
         fi
       };
       atomic {
         if
         :: PLANTED(loser_not_persisted)
         :: else -> flush(E(l, slot)) /* or it might come back */
         fi
       };
       atomic { unpersisted[l] = unpersisted[l] - !PLANTED(loser_not_marked); goto retry };
  not_lost:
       atomic { unpersisted[l] = unpersisted[l] - !PLANTED(loser_not_marked); decided() };
  fate_when_frozen: /* nothing in the leaf changes any more */
       atomic {
         mask = 0;
         do
         :: i == slot -> break
         :: i < slot && (before & BIT(i)) && key[E(l, i)] == FROZEN(k) &&
              !PLANTED(frozen_insert_wins) -> i = 0; goto retry
         :: else -> mask = mask | ((before & BIT(i)) && key[E(l, i)] == DEAD -> BIT(i) : 0); i++
         od;
         i = 0;
         if :: mask == 0 -> goto show_frozen :: else fi
       };
       atomic {
         if
         :: unpersisted[l] == 0 || PLANTED(frozen_winner_ignores_marks) -> goto show_frozen
         :: else
         fi
       };
  settle_before: /* or it might come back, and count before ours */
       atomic {
         least(mask, i);
         flush(E(l, i));
         mask = mask & ~BIT(i);
         i = 0;
         if :: mask == 0 -> goto show_frozen :: else -> goto settle_before fi
       };
  show_frozen:
       atomic { visible[l] = visible[l] | BIT(slot); respond(1) };

       /* --- smo.cc --- */

  replace_leaf:
       atomic {
         mask = 0;
         before = 0;
         word = 0;
         slot = 0;
         if :: leaf_at[p] != l -> leaf_replaced() :: else fi
       };
  try_reform:
       atomic {
         m = smo[l];
         ap = NONE;
         al = NONE;
         if
         :: m == TO_BE_ABSORBED -> f = l; after_freeze = ABSORB; goto freeze
         :: m != 0 && m != TO_BE_ABSORBED -> link()
         :: m == 0 && closing[l] && PLANTED(helpers_wait) -> goto replace_leaf
         :: else
         fi;
         f = l;
         after_freeze = INSTALL;
#if POSITIONS > 1
         n = next[l];
         if
         :: n != NONE && leaf_at[n] != NONE -> r = leaf_at[n]; goto look_right
         :: else -> n = 0
         fi;
#endif
         goto plan_reform
       };
  look_right:
       atomic {
         if :: smo[r] == TO_BE_ABSORBED -> ap = n; al = r :: else fi;
         n = 0;
         r = 0
       };
  plan_reform: /* a guess; what it decides is looked at again when all is frozen */
       atomic {
         plan();
         if :: PLANTED(copied_unfrozen) -> goto install :: else fi
       };

  freeze:
       atomic { closing[f] = !PLANTED(freeze_without_closing); freeze_on() };
  freeze_slot: /* unless another thread has just done it */
       atomic {
         do :: i < SLOTS && SKIPPED(key[E(f, i)]) -> i++ :: else -> break od;
         if
         :: i < SLOTS ->
            /* Not persisted: what counts after a crash is the same. */
            key[E(f, i)] = (key[E(f, i)] == EMPTY -> DEAD : FROZEN(KEY_OF(key[E(f, i)])));
            stored(E(f, i))
         :: else
         fi;
         freeze_on()
       };

  install:
       atomic {
         d_step {
           count_items(1, separator);
           n = sum;
           count_items(separator, KEYS + 1)
         };
         if
         :: smo[l] != 0 || n > SLOTS || sum > SLOTS ->
            n = 0;
            sum = 0;
            if
            :: joining && op_l == NONE -> p = ap; l = al; f = al; after_freeze = ABSORB; goto freeze
            :: else -> goto replace_leaf
            fi
#ifdef FEW_LEAVES
         :: smo[l] == 0 && n <= SLOTS && sum <= SLOTS && ALL_LEAVES_USED ->
            n = 0;
            sum = 0;
            goto end_without_leaf
#endif
         :: else -> n = 0; sum = 0; copy(); smo[l] = m; link()
         fi
       };
#ifdef FEW_LEAVES
  end_without_leaf: /* until a crash, if there is one */
       false;
#endif

  unlink_absorbed: /* first, so that no thread finds a leaf there that was joined */
       atomic {
         if :: leaf_at[absorbed[m]] == absorbed_leaf[m] -> leaf_at[absorbed[m]] = NONE :: else fi;
         if :: PLANTED(anchor_before_absorbed) -> leaf_replaced() :: else fi
       };
  link_block: /* the commit */
       atomic {
         if
         :: block[p] == l || (block[p] != m && PLANTED(late_helper_overwrites)) ->
            block[p] = m;
            stored_block(p)
         :: block[p] == m && !PLANTED(helper_trusts_anchor)
         :: else -> linked_block()
         fi
       };
       atomic { dblock[p] = block[p]; linked_block() };
  link_leaf:
       atomic {
         if :: leaf_at[p] == l || PLANTED(late_helper_overwrites) -> leaf_at[p] = m :: else fi;
         known = known | (next[m] == NONE -> 0 : BIT(next[m]));
         if
         :: PLANTED(position_before_anchor) -> goto link_block
         :: PLANTED(anchor_before_absorbed) && absorbed[m] != NONE -> goto unlink_absorbed
         :: else -> leaf_replaced()
         fi
       };

  absorb:
       atomic {
         if :: leaf_at[p] != l -> leaf_replaced() :: else fi
       };
       atomic { /* left_neighbour() */
         n = leaf_at[0];
         if
         :: next[n] == p -> op_p = p; op_l = l; p = 0; l = n; n = 0; goto replace_leaf
         :: else -> n = 0; goto absorb
         fi
       };

#if POSITIONS > 1
  join_sparse: /* of two leaves at most */
       atomic {
         joining = 1;
         if
         :: visible[l] != 0 -> respond(1)
         :: visible[l] == 0 && p == 0 -> goto join_right
         :: else
         fi
       };
       atomic {
         r = leaf_at[0];
         if :: next[r] == p -> may_join(r, l, wins) :: else -> wins = 0 fi;
         if :: wins -> ap = p; al = l; p = 0; l = r; r = 0; goto join :: else -> respond(1) fi
       };
  join_right:
       atomic {
         ap = next[l];
         if :: ap == NONE -> respond(1) :: else -> al = leaf_at[ap] fi;
         if :: al == NONE -> respond(1) :: else -> may_join(l, al, wins) fi;
         if :: wins -> goto join :: else -> respond(1) fi
       };
  join:
       atomic {
         plan();
         if :: smo[l] != 0 -> respond(1) :: else fi
       };
       atomic {
         if
         :: smo[al] == 0 -> smo[al] = TO_BE_ABSORBED; f = l; after_freeze = INSTALL; goto freeze
         :: else -> respond(1)
         fi
       }
#endif
     } unless {
       atomic {
         halt[me]?word;
         if
         :: word == FOR_EVER ->
            busy = busy - (op != NOTHING || doing[me] != NOTHING);
            doing[me] = NOTHING;
            then_doing[me] = NOTHING;
            forget();
            break
         :: else ->
            forget();
            if :: me + 1 < THREADS -> halt[me + 1]!FOR_NOW :: else fi
         fi
       }
     }
  od;
end_stopped:
  false
}
