"""Bugs of ElimDa."""

from bug import (
    ELIM,
    ELIM_BACKUP,
    ELIM_CREATION,
    ELIM_DESTROY,
    ELIM_GROWING,
    ELIM_INSERT,
    ELIM_LOGS,
    ELIM_MODIFY,
    ELIM_MORE,
    ELIM_MORE_UNIT,
    ELIM_RECOVERY,
    ELIM_RELOCATE,
    ELIM_RESUME,
    ELIM_SEARCH,
    ELIM_SHAPE,
    ELIM_SMO,
    ELIM_STRINGS,
    ELIM_TABLE,
    ELIM_UNIT,
    Bug,
    drop,
    drop_part,
    store_for_publish,
    swap_part,
    unit,
)

BUGS = [
    # --- Creation ---
    drop(
        "elimda: the root, with the seed, is not durable when the index is there",
        ELIM_CREATION,
        "pool.pm().flush(pool.at<Root>(offset), sizeof root)",
        ELIM,
    ),
    Bug(
        "elimda: pairs that were stored directly come after younger ones of logs",
        ELIM_RESUME,
        "    add_cold_logs(pairs, segment, *cold, depth);\n",
        "    add_cold_logs(pairs, segment, *cold, depth);\n"
        "  if ({planted})\n"
        "    std::stable_partition(pairs.begin(), pairs.end(), [](const auto& pair) {\n"
        "      return static_cast<std::uint16_t>(pair.copy) != UnitWord::kNoLog;\n"
        "    });\n",
        ELIM_UNIT,
    ),
    Bug(
        "elimda: an index that is opened again hashes without its seed",
        ELIM_RECOVERY,
        "      hash_(shape_.seed),\n",
        "      hash_({planted} && !handle_.created() ? 0 : shape_.seed),\n",
        ELIM,
    ),
    Bug(
        "elimda: all indexes have one seed",
        ELIM_CREATION,
        "shape.seed != 0 ? shape.seed : draw_hash_seed()};\n",
        "shape.seed != 0 ? shape.seed : {planted} ? 1 : draw_hash_seed()};\n",
        ELIM_UNIT,
    ),
    Bug(
        "elimda: a drop looks for copies without the seed",
        ELIM_DESTROY,
        "        hash_(shape_.seed),\n",
        "        hash_({planted} ? 0 : shape_.seed),\n",
        ELIM_UNIT,
    ),
    # --- Collecting logs ---
    Bug(
        "elimda: a pair counts before it is there",
        ELIM_INSERT,
        "    store_integers(pair, key, value);\n"
        "    pm().store(word, head.pack());  // the commit\n",
        "    pm().store(word, head.pack());\n"
        "    store_integers(pair, key, value);\n",
        ELIM,
    ),
    Bug(
        "elimda: a log that was copied is not emptied on opening",
        ELIM_RECOVERY,
        "    if (copied == shape_.unit_words())\n      log.reset();\n",
        "    if (copied == shape_.unit_words())\n      continue;\n",
        ELIM_STRINGS,
    ),
    drop(
        "elimda: dead bits outlive the pairs that they killed",
        ELIM_LOGS,
        "clear_dead(0)",
        ELIM,
    ),
    Bug(
        "elimda: a log is emptied before it is copied",
        ELIM_RELOCATE,
        "    pm().publish(backup_.words(unit)[w], word.pack());\n  }\n",
        "    if (w == 0) {\n"
        "      auto head = LogWord::unpack(pm::load(log.word()));\n"
        "      pm().publish(log.word(), LogWord{0, head.number}.pack());\n"
        "    }\n"
        "    pm().publish(backup_.words(unit)[w], word.pack());\n  }\n",
        ELIM,
    ),
    # --- More collecting logs ---
    Bug(
        "elimda: more logs are linked before they have the pairs",
        ELIM_MORE,
        "  copy_pairs(from, *to);\n"
        "  session.commit(pm::set_word(root_.log_area, logs_.area_word({area, depth})), [&] {\n",
        "  if (!{planted}) copy_pairs(from, *to);\n"
        "  session.commit(pm::set_word(root_.log_area, logs_.area_word({area, depth})), [&] {\n"
        "    if ({planted}) copy_pairs(from, *to);\n",
        ELIM_GROWING,
    ),
    Bug(
        "elimda: the logs that were too few are freed before there are more",
        ELIM_MORE,
        "  session.free(logs_.area().offset);\n",
        "  if ({planted}) {\n"
        "    alloc::Session early = pool_.allocator().session();\n"
        "    early.free(logs_.area().offset);\n"
        "    early.log();\n"
        "    early.finish();\n"
        "  }\n"
        "  if (!{planted}) session.free(logs_.area().offset);\n",
        ELIM_GROWING,
    ),
    drop(
        "elimda: heads of more logs are not zeroed",
        ELIM_MORE,
        "pm().zero(&to.log(0).word(), shape_.log_heads_bytes(to.count()))",
        ELIM_MORE_UNIT,
    ),
    Bug(
        "elimda: heads of more logs do not count their pairs",
        ELIM_MORE,
        "pm().store(log.word(), LogWord{log.line().count, 0}.pack());",
        "if (!{planted}) pm().store(log.word(), LogWord{log.line().count, 0}.pack());",
        ELIM_GROWING,
    ),
    Bug(
        "elimda: killed pairs come to more logs",
        ELIM_MORE,
        "      if (log.dead(i)) continue;\n",
        "      if (!{planted} && log.dead(i)) continue;\n",
        ELIM_GROWING,
    ),
    drop(
        "elimda: there are more logs while pairs of one are in flight",
        ELIM_MORE,
        "if (in_flight) return;",
        ELIM_MORE_UNIT,
    ),
    Bug(
        "elimda: a log has the name of an earlier one",
        ELIM_SHAPE,
        "return static_cast<std::uint16_t>(logs_grow ? 1u << depth | log : log);",
        "return static_cast<std::uint16_t>(logs_grow && !{planted} ? 1u << depth | log : log);",
        ELIM_MORE_UNIT,
    ),
    swap_part(
        "elimda: units of fewer logs are not found again",
        ELIM_RESUME,
        "unsigned depth = shape_.logs_grow ? 0 : cold->log_depth",
        "shape_.logs_grow ? 0 : cold->log_depth",
        "cold->log_depth",
        ELIM_GROWING,
    ),
    Bug(
        "elimda: units of fewer logs come after those of more",
        ELIM_RESUME,
        "  std::vector<ColdPair> pairs = cold_pairs(segment);\n",
        "  std::vector<ColdPair> pairs = cold_pairs(segment);\n"
        "  if ({planted})\n"
        "    std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) {\n"
        "      return static_cast<std::uint16_t>(a.copy) > static_cast<std::uint16_t>(b.copy);\n"
        "    });\n",
        ELIM_MORE_UNIT,
    ),
    # --- Backup log ---
    drop(
        "elimda: a pair of the backup log counts before it is durable",
        ELIM_INSERT,
        "pm().flush(&pair, sizeof pair)",
        ELIM,
        after="::add_direct(",
    ),
    drop(
        "elimda: a string's reference counts before it is durable",
        ELIM_INSERT,
        "pm().flush(&pair, sizeof pair)",
        ELIM_STRINGS,
        after="commit(bit)",
    ),
    drop(
        "elimda: bits are set before what they stand for is fenced",
        ELIM_INSERT,
        "pm().fence()",
        ELIM,
    ),
    drop(
        "elimda: a new chunk is linked before it is zeroed, durably",
        ELIM_BACKUP,
        "pm.flush(&head, shape_.chunk_pairs_at())",
        ELIM,
    ),
    # --- Erase ---
    Bug(
        "elimda: an erase leaves the pair in the backup log",
        ELIM_MODIFY,
        "  kill({&backup_.word(ref), backup_.bit(ref), 0},\n"
        "       {place.bucket->d_key(i), place.bucket->d_value(i)}, "
        "[&] { place.bucket->d_kill(i); });\n",
        "  if ({planted}) return place.bucket->d_kill(i);\n"
        "  kill({&backup_.word(ref), backup_.bit(ref), 0},\n"
        "       {place.bucket->d_key(i), place.bucket->d_value(i)}, "
        "[&] { place.bucket->d_kill(i); });\n",
        ELIM,
    ),
    Bug(
        "elimda: an erase leaves the pair in its P-bucket",
        ELIM_MODIFY,
        "  kill({&table_.live_word(place.segment->offset, place.at, slot), "
        "PmTable::live_bit(slot), 0},\n"
        "       {pm::load(pair.key), pm::load(pair.value)}, "
        "[&] { place.bucket->kill_entry(code_, entry); });\n",
        "  place.bucket->kill_entry(code_, entry);\n",
        ELIM,
    ),
    drop(
        "elimda: an erase leaves its strings",
        ELIM_MODIFY,
        "codec_.free(session, pair.value)",
        ELIM_STRINGS,
    ),
    # --- Relocation ---
    drop(
        "elimda: what was relocated stays in the backup log, and comes back (paper)",
        ELIM_RELOCATE,
        "clear_in_backup(moved)",
        ELIM,
    ),
    Bug(
        "elimda: pairs leave the backup log before they are in the PM table",
        ELIM_RELOCATE,
        "  write_to_p(locked, first, moved);\n",
        "  clear_in_backup(moved);\n  write_to_p(locked, first, moved);\n",
        ELIM,
    ),
    swap_part(
        "elimda: relocated pairs count before they are durable",
        ELIM_RELOCATE,
        "pm().stream(&p_pair(place, first + from), unit.data(), shape_.unit_bytes())",
        "stream",
        "copy",
        ELIM,
        after="::write_to_p(",
    ),
    drop(
        "elimda: bits of the backup log are not cleared durably",
        ELIM_RELOCATE,
        "pm().flush(&word, sizeof word)",
        ELIM,
    ),
    # --- Split ---
    swap_part(
        "elimda: a new segment's pairs are not durable when it is linked",
        ELIM_SMO,
        "if (count > 0)",
        "stream",
        "copy",
        ELIM,
    ),
    drop(
        "elimda: a new segment's live bits are not durable when it is linked",
        ELIM_SMO,
        "table_.flush_head",
        ELIM,
    ),
    drop(
        "elimda: what a split took from the backup log stays there",
        ELIM_SMO,
        "clear_in_backup",
        ELIM,
    ),
    drop(
        "elimda: a new directory is not durable when it is linked",
        ELIM_TABLE,
        "entries(larger), std",
        ELIM,
    ),
    drop(
        "elimda: the old directory leaks",
        ELIM_TABLE,
        "session.free(old.offset)",
        ELIM,
        after="PmTable::double_directory(",
    ),
    # --- Duplicates ---
    Bug(
        "elimda: a lookup begins with the D-bucket, so a later value wins",
        ELIM_SEARCH,
        "  if (const Found found = find_in_p(place, key, hash)) return found;\n"
        "  return find_in_d(place, key, hash);\n",
        "  if ({planted}) if (const Found later = find_in_d(place, key, hash)) return later;\n"
        "  if (const Found found = find_in_p(place, key, hash)) return found;\n"
        "  return find_in_d(place, key, hash);\n",
        ELIM,
    ),
    Bug(
        "elimda: an erase kills one pair of a D-bucket only",
        ELIM_MODIFY,
        "    kill_d_pair(place, i - 1);\n    any = true;\n",
        "    kill_d_pair(place, i - 1);\n    any = true;\n    if ({planted}) break;\n",
        ELIM,
    ),
    Bug(
        "elimda: opening takes the units of a log from the youngest on",
        ELIM_RESUME,
        "    return a.log != b.log ? a.log < b.log : "
        "static_cast<std::int32_t>(a.number - b.number) < 0;\n",
        "    return a.log != b.log ? a.log < b.log : "
        "(static_cast<std::int32_t>(a.number - b.number) < 0) != {planted};\n",
        ELIM,
    ),
    # --- Opening ---
    drop_part(
        "elimda: a copy that a crash left in the backup log stays there",
        ELIM_RESUME,
        "if (!drop_copy(filled, pair))",
        "if (!drop_copy(filled, pair)) ",
        ELIM_STRINGS,
    ),
    Bug(
        "elimda: a copy is looked for at the first pair of its key only",
        ELIM_RESUME,
        "  if (!is_in_p(place, pair.pair)) return false;\n",
        "  const KeyHash hash{std::uint64_t{pair.pair.signature} << 32};\n"
        "  const Found first = find_in_p(place, keys_.view(pair.pair.pair.key), hash);\n"
        "  if (!is_in_p(place, pair.pair) || ({planted} && first.value != pair.pair.pair.value)) "
        "return false;\n",
        ELIM_STRINGS,
    ),
    drop(
        "elimda: a copy is dropped, but not durably",
        ELIM_RESUME,
        "pm().persist(&word, sizeof word)",
        (unit("tests/linearizability/elimda_copies_test", "*"),),
        after="::drop_copy(",
    ),
    store_for_publish(
        "elimda: an update is not durable where the pair is in flight or in a D-bucket",
        ELIM_MODIFY,
        "pm().publish(word, value.word())",
        ELIM,
    ),
]
