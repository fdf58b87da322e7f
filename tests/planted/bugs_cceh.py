"""Bugs of CCEH."""

from bug import (
    CCEH,
    CCEH_BUILDER,
    CCEH_OWNED,
    CCEH_DIRECTORY,
    CCEH_DIRECTORY_H,
    CCEH_PAIRS,
    CCEH_RECOVERY,
    CCEH_ROUTER,
    CCEH_SEARCH,
    CCEH_SEGMENTS,
    CCEH_SMO,
    CCEH_STRESS,
    CCEH_STRINGS,
    CCEH_TABLE,
    CCEH_UNIT,
    Bug,
    drop,
    drop_part,
    schedules,
    store_for_publish,
    swap_part,
)

CCEH_SCHEDULES = (schedules("--engine cceh"),)

BUGS = [
    # --- Displacement ---
    drop(
        "cceh: recovery leaves a displaced pair in its former slot, too",
        CCEH_PAIRS,
        "session.redo(from.key, 0)",
        CCEH,
    ),
    drop(
        "cceh: the former slot of a displaced pair keeps it",
        CCEH_PAIRS,
        "pm().store(from.key, 0)",
        CCEH,
    ),
    drop(
        "cceh: the former slot of a displaced pair is not flushed",
        CCEH_PAIRS,
        "pm().flush(&from.key, sizeof from.key)",
        CCEH,
    ),
    store_for_publish(
        "cceh: the new slot of a displaced pair is not flushed",
        CCEH_PAIRS,
        "pm().publish(to.key, key)",
        CCEH,
    ),
    Bug(
        "cceh: a displaced pair leaves its value behind",
        CCEH_PAIRS,
        "    pm().store(to.value, value);  // not flushed: the same line as the commit\n",
        "    if ({planted} == false) pm().store(to.value, value);\n",
        CCEH_UNIT,
    ),
    Bug(
        "cceh: where stores commit as one, a displaced pair stays in its former slot",
        CCEH_PAIRS,
        "                                  pm::set_word(from.key, 0)};\n",
        "                                  pm::set_word(from.key, {planted} ? key : 0)};\n",
        CCEH,
    ),
    Bug(
        "cceh: a pair is displaced to the slot of another that counts",
        CCEH_SMO,
        "      Pair* const free = its.free_slot(segments_.taken(its, locked.range));\n",
        "      Pair* const free =\n"
        "          its.free_slot({planted} ? 0x0f : segments_.taken(its, locked.range));\n",
        CCEH_UNIT,
    ),
    Bug(
        "cceh: a segment that has room for a displacement is split",
        CCEH_SMO,
        "    if (Pair* const freed = displace(locked, hash)) return freed;\n",
        "    if (Pair* const freed = {planted} ? nullptr : displace(locked, hash)) return freed;\n",
        CCEH_UNIT,
    ),
    Bug(
        "cceh: an index of a former format is opened",
        CCEH_RECOVERY,
        "  if (pm::load(root.magic) == Root::kMagic) return root;\n",
        "  if ({planted} || pm::load(root.magic) == Root::kMagic) return root;\n",
        CCEH_UNIT,
    ),
    # --- Pairs ---
    Bug(
        "cceh: the key comes before its value",
        CCEH_PAIRS,
        "        pm().store(pair.value, value.word());  // not persisted: the "
        "same line as the commit\n"
        "        pm().publish(pair.key, key == Key{} ? kThere : key);  // the commit\n",
        "        pm().publish(pair.key, key == Key{} ? kThere : key);\n"
        "        pm().store(pair.value, value.word());\n"
        "        pm().persist(&pair, sizeof pair);\n",
        CCEH,
    ),
    Bug(
        "cceh: an insert of a string forgets the value that is committed with the key",
        CCEH_PAIRS,
        "      pm().store(pair.value, words.value);  // not flushed: the same line as the commit\n"
        "      session.commit(pm::set_word(pair.key, words.key));\n",
        "      session.commit(pm::set_word(pair.key, words.key));\n"
        "      pm().store(pair.value, words.value);\n",
        CCEH_STRINGS,
    ),
    store_for_publish(
        "cceh: an erase is not flushed",
        CCEH_PAIRS,
        "pm().publish(pair.key, 0)",
        CCEH,
    ),
    store_for_publish(
        "cceh: an update is not flushed",
        CCEH_PAIRS,
        "pm().publish(pair.value, value.word())",
        CCEH,
    ),
    drop(
        "cceh: the value of a pair that is erased is not freed",
        CCEH_PAIRS,
        "values_.free(session, pm::load(pair.value))",
        CCEH_STRINGS,
    ),
    drop(
        "cceh: the value that is replaced is not freed",
        CCEH_PAIRS,
        "values_.free(session, old_word)",
        CCEH_STRINGS,
    ),
    Bug(
        "cceh: a put looks into the first bucket only, and adds a key twice",
        CCEH_SEGMENTS,
        "    for (; like != 0; like &= like - 1) {\n",
        "    if ({planted}) like &= (1U << kBucketPairs) - 1;\n"
        "    for (; like != 0; like &= like - 1) {\n",
        CCEH_UNIT,
    ),
    drop_part(
        "cceh: a lookup does not validate what it has read",
        CCEH_SEARCH,
        "if (seen.valid()) [[likely]]",
        "if (seen.valid()) [[likely]]",
        CCEH_STRESS,
    ),
    drop(
        "cceh: a lookup does not ask the directory again behind the version",
        CCEH_ROUTER,
        "if (!directory_.current(found))",
        CCEH_SCHEDULES,
    ),
    # --- Moved pairs ---
    Bug(
        "cceh: moved pairs count in the segment that they have left",
        CCEH_SEGMENTS,
        "    return key != 0 && range.may_hold(KnownHash<K>::of(key, hash_), lazy_depth_);\n",
        "    return key != 0 && ({planted} || "
        "range.may_hold(KnownHash<K>::of(key, hash_), lazy_depth_));\n",
        CCEH,
    ),
    Bug(
        "cceh: deep splits leave moved pairs behind that no thread can tell",
        CCEH_SMO,
        "    const bool anew = !segments_.tells_moved(depth);\n",
        "    const bool anew = {planted} ? depth > 63 : !segments_.tells_moved(depth);\n",
        CCEH_STRINGS,
    ),
    drop(
        "cceh: moved pairs come back when segments are joined",
        CCEH_SMO,
        "clear_moved(kept)",
        CCEH_UNIT,
    ),
    drop(
        "cceh: moved pairs are taken away by a join, but not durably",
        CCEH_SMO,
        "pm.flush(&pair.key, sizeof pair.key)",
        CCEH,
    ),
    # --- Splits, joins, the directory ---
    swap_part(
        "cceh: a segment is linked before it is durable",
        CCEH_BUILDER,
        "pm().stream(segments_.slots_of(made), slots.data(), slots.size() * sizeof(Pair))",
        "stream",
        "copy",
        CCEH,
        after="const auto add = [&](const Pair& pair) {",
    ),
    drop(
        "cceh: the right leader is not durable when the left one commits the split",
        CCEH_DIRECTORY,
        "pool_.pm().flush",
        CCEH,
        after="pool_.pm().store(all.entries[begin + half], middle.as_pending().pack());",
    ),
    Bug(
        "cceh: the right leader is not pending before the split is committed",
        CCEH_DIRECTORY,
        "  pool_.pm().store(all.entries[begin + half], middle.as_pending().pack());\n",
        "  pool_.pm().store(all.entries[begin + half],\n"
        "                   ({planted} ? middle : middle.as_pending()).pack());\n",
        CCEH,
    ),
    Bug(
        "cceh: lookups go by pending entries",
        CCEH_DIRECTORY_H,
        "    if (!entry.pending() && entry.depth() <= all.depth) [[likely]] {\n",
        "    if (({planted} || !entry.pending()) && entry.depth() <= all.depth) [[likely]] {\n",
        CCEH_UNIT,
    ),
    Bug(
        "cceh: lookups go by stale entries",
        CCEH_DIRECTORY_H,
        "      const std::uint64_t& leader = all.entries[all.first_of(number, entry.depth())];\n",
        "      const std::uint64_t& leader =\n"
        "          all.entries[{planted} ? number : all.first_of(number, entry.depth())];\n",
        CCEH_UNIT,
    ),
    drop(
        "cceh: a larger directory is linked before it is durable",
        CCEH_DIRECTORY,
        "pm.flush(entries, 2 * old.size() * sizeof *entries)",
        CCEH,
    ),
    drop(
        "cceh: the former directory is not freed",
        CCEH_DIRECTORY,
        "session.free(Reference::unpack(word).offset)",
        CCEH,
    ),
    drop(
        "cceh: an overflow is linked before it is durable",
        CCEH_BUILDER,
        "pm().flush(slots, bytes)",
        CCEH,
    ),
    # --- Creation and drop ---
    drop(
        "cceh: the first segment is not durable when the index is there",
        CCEH_RECOVERY,
        "pm.flush(pool.at<char>(segment), shape.segment_bytes())",
        CCEH,
    ),
    Bug(
        "cceh: the seed comes after the index is there, and not durably",
        CCEH_RECOVERY,
        "  session.commit(pm::set_word(word, root));\n",
        "  session.commit(pm::set_word(word, root));\n"
        "  pm.store(pool.at<Root>(root)->seed, made.seed + 1);\n",
        CCEH,
    ),
    Bug(
        "cceh: an index that is opened again hashes without its seed",
        CCEH_TABLE,
        "      search_(pool(), root_, shape_of(pool(), root_), info().value_kind),\n",
        "      search_(pool(), root_, [&] {\n"
        "        Shape seeded = shape_of(pool(), root_);\n"
        "        if ({planted} && !handle_.created()) seeded.seed = 0;\n"
        "        return seeded;\n"
        "      }(), info().value_kind),\n",
        CCEH,
    ),
    Bug(
        "cceh: all indexes have one seed",
        CCEH_RECOVERY,
        "shape.seed != 0 ? shape.seed : draw_hash_seed()};\n",
        "shape.seed != 0 ? shape.seed : {planted} ? 1 : draw_hash_seed()};\n",
        CCEH_UNIT,
    ),
    Bug(
        "cceh: a drop looks for moved pairs without the seed",
        CCEH_OWNED,
        "  const Segments<K> segments(pool, root, shape_of(pool, root), value_kind);\n",
        "  Shape seeded = shape_of(pool, root);\n"
        "  if ({planted}) seeded.seed = 0;\n"
        "  const Segments<K> segments(pool, root, seeded, value_kind);\n",
        CCEH_UNIT,
    ),
    swap_part(
        "cceh: a drop frees strings of moved pairs again",
        CCEH_OWNED,
        "if (!segments.counts(key, range)) continue",
        "!segments.counts(key, range)",
        "key == 0",
        CCEH_STRINGS,
    ),
    Bug(
        "cceh: a drop that a crash has interrupted loses the segments behind a leader that is gone",
        CCEH_OWNED,
        "pm::set_word(entries[i], Entry{pm::kNull, leader.depth()}.pack())",
        "pm::set_word(entries[i], 0)",
        CCEH,
    ),
]
