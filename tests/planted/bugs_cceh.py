"""Bugs of CCEH."""

from bug import (
    CCEH,
    CCEH_DESTROY,
    CCEH_DIRECTORY,
    CCEH_DIRECTORY_H,
    CCEH_H,
    CCEH_RECOVERY,
    CCEH_SEARCH,
    CCEH_SMO,
    CCEH_STRESS,
    CCEH_STRINGS,
    CCEH_TABLE,
    CCEH_UNIT,
    Bug,
    schedules,
)

CCEH_SCHEDULES = (schedules("--engine cceh"),)

BUGS = [
    # --- Pairs ---
    Bug(
        "cceh: the key comes before its value",
        CCEH_TABLE,
        "      pm().store(pair.value, value.word());  // not persisted: the "
        "same line as the commit\n"
        "      pm().publish(pair.key, is_zero(key) ? kThere : key);  // the commit\n",
        "      pm().publish(pair.key, is_zero(key) ? kThere : key);\n"
        "      pm().store(pair.value, value.word());\n"
        "      pm().persist(&pair, sizeof pair);\n",
        CCEH,
    ),
    Bug(
        "cceh: an insert of a string forgets the value that is committed with the key",
        CCEH_TABLE,
        "      pm().store(pair.value, value_word);  // not flushed: the same line as the commit\n"
        "      session.commit(pm::set_word(pair.key, key_word));\n",
        "      session.commit(pm::set_word(pair.key, key_word));\n"
        "      pm().store(pair.value, value_word);\n",
        CCEH_STRINGS,
    ),
    Bug(
        "cceh: an erase is not flushed",
        CCEH_TABLE,
        "    pm().publish(pair.key, 0);  // the commit\n",
        "    pm().store(pair.key, 0);\n",
        CCEH,
    ),
    Bug(
        "cceh: an update is not flushed",
        CCEH_TABLE,
        "    pm().publish(pair.value, value.word());  // the commit; the key is durable already\n",
        "    pm().store(pair.value, value.word());\n",
        CCEH,
    ),
    Bug(
        "cceh: the value of a pair that is erased is not freed",
        CCEH_TABLE,
        "    codec_.free(session, pm::load(pair.value));\n",
        "",
        CCEH_STRINGS,
    ),
    Bug(
        "cceh: the value that is replaced is not freed",
        CCEH_TABLE,
        "    codec_.free(session, old_word);\n",
        "",
        CCEH_STRINGS,
    ),
    Bug(
        "cceh: a put looks into the first bucket only, and adds a key twice",
        CCEH_SEARCH,
        "  for (unsigned i = 0; i < kProbe; ++i) {\n",
        "  for (unsigned i = 0; i < ({planted} ? 1 : kProbe); ++i) {\n",
        CCEH_UNIT,
    ),
    Bug(
        "cceh: a lookup does not validate what it has read",
        CCEH_SEARCH,
        "    if (seen.valid()) return value;\n",
        "    return value;\n",
        CCEH_STRESS,
    ),
    Bug(
        "cceh: a lookup does not ask the directory again behind the version",
        CCEH_SEARCH,
        "    if (!directory_.current(route)) [[unlikely]]\n      continue;\n",
        "",
        CCEH_SCHEDULES,
    ),
    # --- Moved pairs ---
    Bug(
        "cceh: moved pairs count in the segment that they have left",
        CCEH_H,
        "    return key != 0 && range.may_hold(KnownHash<K>::of(key), lazy_depth_);\n",
        "    return key != 0 && ({planted} || "
        "range.may_hold(KnownHash<K>::of(key), lazy_depth_));\n",
        CCEH,
    ),
    Bug(
        "cceh: deep splits leave moved pairs behind that no thread can tell",
        CCEH_SMO,
        "  const bool anew = depth >= lazy_depth_;\n",
        "  const bool anew = {planted} ? depth > 63 : depth >= lazy_depth_;\n",
        CCEH_STRINGS,
    ),
    Bug(
        "cceh: moved pairs come back when segments are joined",
        CCEH_SMO,
        "  clear_moved(kept);\n",
        "",
        CCEH_UNIT,
    ),
    Bug(
        "cceh: moved pairs are taken away by a join, but not durably",
        CCEH_SMO,
        "    pm().flush(&pair.key, sizeof pair.key);  // durable before the commit, by its fence\n",
        "",
        CCEH,
    ),
    # --- Splits, joins, the directory ---
    Bug(
        "cceh: a segment is linked before it is durable",
        CCEH_SMO,
        "  pm().stream(slots_of(made), slots.data(), slots.size() * sizeof(Pair));\n",
        "  pm().copy(slots_of(made), slots.data(), slots.size() * sizeof(Pair));\n",
        CCEH,
    ),
    Bug(
        "cceh: the right leader is not durable when the left one commits the split",
        CCEH_DIRECTORY,
        "  pool_.pm().flush(&all.entries[begin + half], sizeof(std::uint64_t));\n",
        "",
        CCEH,
    ),
    Bug(
        "cceh: the right leader is not pending before the split is committed",
        CCEH_DIRECTORY,
        "  pool_.pm().store(all.entries[begin + half], pending(middle));\n",
        "  pool_.pm().store(all.entries[begin + half], {planted} ? "
        "middle.pack() : pending(middle));\n",
        CCEH,
    ),
    Bug(
        "cceh: lookups go by pending entries",
        CCEH_DIRECTORY_H,
        "    if (!entry.pending && entry.depth <= all.depth) [[likely]] {\n",
        "    if (({planted} || !entry.pending) && entry.depth <= all.depth) [[likely]] {\n",
        CCEH_UNIT,
    ),
    Bug(
        "cceh: lookups go by stale entries",
        CCEH_DIRECTORY_H,
        "      const std::uint64_t& leader = all.entries[all.first_of(number, entry.depth)];\n",
        "      const std::uint64_t& leader =\n"
        "          all.entries[{planted} ? number : all.first_of(number, entry.depth)];\n",
        CCEH_UNIT,
    ),
    Bug(
        "cceh: a larger directory is linked before it is durable",
        CCEH_DIRECTORY,
        "  pm.flush(entries, 2 * old.size() * sizeof *entries);  // durable "
        "before the commit, by its fence\n",
        "",
        CCEH,
    ),
    Bug(
        "cceh: the former directory is not freed",
        CCEH_DIRECTORY,
        "  session.free(Reference::unpack(word).offset);\n",
        "",
        CCEH,
    ),
    Bug(
        "cceh: an overflow is linked before it is durable",
        CCEH_SMO,
        "  pm().flush(slots, bytes);  // durable before the commit that links it, by its fence\n",
        "",
        CCEH,
    ),
    # --- Creation and drop ---
    Bug(
        "cceh: the first segment is not durable when the index is there",
        CCEH_RECOVERY,
        "  pm.flush(pool.at<char>(segment), shape.segment_bytes());\n",
        "",
        CCEH,
    ),
    Bug(
        "cceh: a drop frees strings of moved pairs again",
        CCEH_DESTROY,
        "      if (!counts(pair, range)) continue;\n",
        "      if (pm::load(pair.key) == 0) continue;\n",
        CCEH_STRINGS,
    ),
    Bug(
        "cceh: a drop that a crash has interrupted loses the segments behind a leader that is gone",
        CCEH_DESTROY,
        "        free_by(entries[i], Entry{pm::kNull, leader.depth, false, "
        "false}.pack(), leader.offset);\n",
        "        free_by(entries[i], 0, leader.offset);\n",
        CCEH,
    ),
]
