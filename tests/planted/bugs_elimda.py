"""Bugs of ElimDa."""

from bug import (
    ELIM,
    ELIM_BACKUP,
    ELIM_BACKUP_HEAD,
    ELIM_BITS,
    ELIM_CHANGES,
    ELIM_COLD,
    ELIM_COUNT,
    ELIM_DIRECT,
    ELIM_DRAINED,
    ELIM_DRAM,
    ELIM_FLUSH,
    ELIM_FOR_EACH,
    ELIM_GROWING,
    ELIM_LISTS,
    ELIM_LISTS_HEAD,
    ELIM_LOGS,
    ELIM_MORE,
    ELIM_MORE_UNIT,
    ELIM_OPENING_UNIT,
    ELIM_OWNED,
    ELIM_PARTS_UNIT,
    ELIM_PUT,
    ELIM_READS_UNIT,
    ELIM_RECOVERY,
    ELIM_RELOCATE,
    ELIM_ROOT,
    ELIM_SETS_UNIT,
    ELIM_SHAPE,
    ELIM_SMO,
    ELIM_STORE,
    ELIM_STRAIGHT,
    ELIM_STRAIGHT_UNIT,
    ELIM_STRESS,
    ELIM_STRINGS,
    ELIM_TABLE,
    ELIM_UNIT,
    ELIM_WORDS,
    Bug,
    drop,
    drop_part,
    schedules,
    store_for_publish,
    swap_part,
    unit,
)

BUGS = [
    # --- Visits ---
    drop(
        "elimda: pairs of a log that did not fit into a part are taken for shown",
        ELIM_FOR_EACH,
        "if (in_logs_) of_logs_.resize(known + batch.size())",
        ELIM_UNIT,
    ),
    # --- Creation ---
    drop(
        "elimda: the root, with the seed, is not durable when the index is there",
        ELIM_ROOT,
        "pool.pm().flush(pool.at<Root>(offset), sizeof root)",
        ELIM,
    ),
    Bug(
        "elimda: pairs that were stored directly come after younger ones of logs",
        ELIM_COLD,
        "      add_cold_logs(pairs, segment, *cold, depth);\n",
        "      add_cold_logs(pairs, segment, *cold, depth);\n"
        "  if ({planted})\n"
        "    std::stable_partition(pairs.begin(), pairs.end(), [](const auto& pair) {\n"
        "      return static_cast<std::uint16_t>(pair.copy) != UnitWord::kNoLog;\n"
        "    });\n",
        ELIM_UNIT,
    ),
    Bug(
        "elimda: an index that is opened again hashes without its seed",
        ELIM_STORE,
        "        words(pool, shape.seed, value_kind),\n",
        "        words(pool,\n"
        "              {planted} && (pm::load(root.log_area) | pm::load(root.chunks)) != 0 ? 0\n"
        "                                                                           : shape.seed,\n"
        "              value_kind),\n",
        ELIM,
    ),
    Bug(
        "elimda: all indexes have one seed",
        ELIM_ROOT,
        "shape.seed != 0 ? shape.seed : draw_hash_seed()};\n",
        "shape.seed != 0 ? shape.seed : {planted} ? 1 : draw_hash_seed()};\n",
        ELIM_UNIT,
    ),
    Bug(
        "elimda: a drop looks for copies without the seed",
        ELIM_OWNED,
        "    const KeyHash hash = store_.words.hash_of_word(pm::load(pair.key));\n",
        "    const KeyHash hash = {planted} ? "
        "Hasher(0)(store_.words.keys().view(pm::load(pair.key))) : "
        "store_.words.hash_of_word(pm::load(pair.key));\n",
        ELIM_UNIT,
    ),
    # --- Collecting logs ---
    Bug(
        "elimda: a pair counts before it is there",
        ELIM_PUT,
        "    store_.words.store_integers(pair, key, value);\n"
        "    store_.pm().store(word, head.pack());  // the commit\n",
        "    store_.pm().store(word, head.pack());\n"
        "    store_.words.store_integers(pair, key, value);\n",
        ELIM,
    ),
    Bug(
        "elimda: a log that was copied is not emptied on opening",
        ELIM_BACKUP,
        "  if (copied == shape_.unit_words())\n    log.reset();\n",
        "  if (copied == shape_.unit_words())\n    return;\n",
        ELIM_STRINGS,
    ),
    swap_part(
        "elimda: a word that was never written belongs to the first copy of log 0",
        ELIM_BACKUP,
        "with += word.pack() != 0",
        "word.pack() != 0 && ",
        "",
        ELIM_PARTS_UNIT,
    ),
    drop(
        "elimda: dead bits outlive the pairs that they killed",
        ELIM_LOGS,
        "clear_dead(0)",
        ELIM,
    ),
    Bug(
        "elimda: a log is emptied before it is copied",
        ELIM_FLUSH,
        "      store_.pm().publish(store_.backup.words(unit)[w], word.pack());\n",
        "      if (w == 0) {\n"
        "        auto head = LogWord::unpack(pm::load(log.word()));\n"
        "        store_.pm().publish(log.word(), LogWord{0, head.number}.pack());\n"
        "      }\n"
        "      store_.pm().publish(store_.backup.words(unit)[w], word.pack());\n",
        ELIM,
    ),
    # --- More collecting logs ---
    Bug(
        "elimda: more logs are linked before they have the pairs",
        ELIM_MORE,
        "    copy_pairs(from, *to);\n"
        "    session.commit(pm::set_word(store_.root.log_area, "
        "store_.logs.area_word({area, depth})), [&] {\n",
        "    if (!{planted}) copy_pairs(from, *to);\n"
        "    session.commit(pm::set_word(store_.root.log_area, "
        "store_.logs.area_word({area, depth})), [&] {\n"
        "      if ({planted}) copy_pairs(from, *to);\n",
        ELIM_GROWING,
    ),
    Bug(
        "elimda: the logs that were too few are freed before there are more",
        ELIM_MORE,
        "    session.free(store_.logs.area().offset);\n",
        "    if ({planted}) {\n"
        "      alloc::Session early = store_.pool.allocator().session();\n"
        "      early.free(store_.logs.area().offset);\n"
        "      early.log();\n"
        "      early.finish();\n"
        "    }\n"
        "    if (!{planted}) session.free(store_.logs.area().offset);\n",
        ELIM_GROWING,
    ),
    drop(
        "elimda: heads of more logs are not zeroed",
        ELIM_MORE,
        "store_.pm().zero(&to.log(0).word()",
        ELIM_MORE_UNIT,
    ),
    Bug(
        "elimda: heads of more logs do not count their pairs",
        ELIM_MORE,
        "store_.pm().store(log.word(), LogWord{log.line().count, 0}.pack());",
        "if (!{planted}) store_.pm().store(log.word(), LogWord{log.line().count, 0}.pack());",
        ELIM_GROWING,
    ),
    Bug(
        "elimda: killed pairs come to more logs",
        ELIM_MORE,
        "        if (log.dead(i)) continue;\n",
        "        if (!{planted} && log.dead(i)) continue;\n",
        ELIM_GROWING,
    ),
    drop(
        "elimda: there are more logs while pairs of one are in flight",
        ELIM_MORE,
        "if (in_flight) return;",
        ELIM_MORE_UNIT,
    ),
    Bug(
        "elimda: the logs that were too few are freed before readers come to those that are more",
        ELIM_MORE,
        "      store_.logs.use(to.release());\n    });\n",
        "      if (!{planted}) store_.logs.use(to.release());\n    });\n"
        "    if ({planted}) store_.logs.use(to.release());\n",
        ELIM_SETS_UNIT,
    ),
    Bug(
        "elimda: a lookup takes the set of logs before it searches the bucket",
        ELIM_STORE,
        "    if (const Found found = find_in_bucket(place, key, hash)) return found;\n"
        "    const LogSet* set = logs.set();\n",
        "    const LogSet* early = logs.set();\n"
        "    if (const Found found = find_in_bucket(place, key, hash)) return found;\n"
        "    const LogSet* set = {planted} ? early : logs.set();\n",
        ELIM_SETS_UNIT,
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
        ELIM_COLD,
        "unsigned depth = shape_.logs_grow ? 0 : cold->log_depth",
        "shape_.logs_grow ? 0 : cold->log_depth",
        "cold->log_depth",
        ELIM_GROWING,
    ),
    Bug(
        "elimda: units of fewer logs come after those of more",
        ELIM_COLD,
        "    std::vector<ColdPair> pairs = cold_pairs(segment);\n",
        "    std::vector<ColdPair> pairs = cold_pairs(segment);\n"
        "  if ({planted})\n"
        "    std::stable_sort(pairs.begin(), pairs.end(), [](const auto& a, const auto& b) {\n"
        "      return static_cast<std::uint16_t>(a.copy) > static_cast<std::uint16_t>(b.copy);\n"
        "    });\n",
        ELIM_MORE_UNIT,
    ),
    # --- Backup log ---
    drop(
        "elimda: a pair of the backup log counts before it is durable",
        ELIM_PUT,
        "store_.pm().flush(&pair, sizeof pair)",
        ELIM,
        after="::store_pair(",
    ),
    drop(
        "elimda: a string's reference counts before it is durable",
        ELIM_PUT,
        "store_.pm().flush(&pair, sizeof pair)",
        ELIM_STRINGS,
        after="commit_bits(store_.pm(), bit, shared)",
    ),
    drop(
        "elimda: bits are set before what they stand for is fenced",
        ELIM_BITS,
        "pm.fence()",
        ELIM,
    ),
    drop(
        "elimda: a new chunk is linked before it is zeroed, durably",
        ELIM_BACKUP,
        "pm.flush(&head, shape_.chunk_pairs_at())",
        ELIM,
    ),
    # --- Counting ---
    Bug(
        "elimda: count: a number is remembered while a writer is active",
        ELIM_COUNT,
        "    if (!quiet() || added_.sum() != added || removed_.sum() != removed) return keys;\n",
        "    if ((!quiet() && !{planted}) || added_.sum() != added || removed_.sum() != removed) "
        "return keys;\n",
        ELIM_PARTS_UNIT,
    ),
    Bug(
        "elimda: count: keys that came during a count are counted twice",
        ELIM_COUNT,
        "    const std::uint64_t keys = count();\n",
        "    const std::uint64_t keys = count();\n"
        "    if ({planted}) return at_count_ = static_cast<std::int64_t>(keys) - added + removed, "
        "state_ = State::known, keys;\n",
        ELIM_PARTS_UNIT,
    ),
    Bug(
        "elimda: count: a writer that holds the lock of a log is overlooked",
        ELIM_STORE,
        "      quiet = quiet && std::unique_lock(log.line().lock, std::try_to_lock).owns_lock();\n",
        "      quiet = {planted} || "
        "(quiet && std::unique_lock(log.line().lock, std::try_to_lock).owns_lock());\n",
        ELIM_PARTS_UNIT,
    ),
    # --- Straight to P-buckets ---
    Bug(
        "elimda: straight: a pair in its place is shown before it counts",
        ELIM_PUT,
        "  store_pair(store_.table.pair(locked, slot), key, hash, value, {&live, bit, bit}, "
        "Shared::no);\n"
        '  pm::on_step("elimda: a pair is in its P-bucket");\n'
        "  locked.bucket->add_recent(hash.signature());\n",
        "  locked.bucket->add_recent(hash.signature());\n"
        '  pm::on_step("elimda: a pair is in its P-bucket");\n'
        "  store_pair(store_.table.pair(locked, slot), key, hash, value, {&live, bit, bit}, "
        "Shared::no);\n",
        (schedules("--engine elimda --domain memory_controller --reopen --straight"),),
    ),
    drop(
        "elimda: straight: the live bit of a place is stored, but not durable",
        ELIM_BITS,
        "pm.persist(change.word, sizeof *change.word)",
        ELIM_STRAIGHT,
        after="pm.store(*change.word",
    ),
    Bug(
        "elimda: straight: an erase leaves a recent pair in its P-bucket",
        ELIM_CHANGES,
        "      kill_in_slot(place, slot, [&] { place.bucket->kill_recent(i); });\n",
        "      if ({planted}) place.bucket->kill_recent(i);\n"
        "      else kill_in_slot(place, slot, [&] { place.bucket->kill_recent(i); });\n",
        ELIM_STRAIGHT,
    ),
    drop(
        "elimda: straight: recent pairs get no fingerprints",
        ELIM_RELOCATE,
        "slots.push_back({static_cast<std::uint16_t>(slot),",
        ELIM_STRAIGHT_UNIT,
        after="recent_pairs(const Place& place)",
    ),
    Bug(
        "elimda: straight: fingerprints of recent pairs name the slots in front",
        ELIM_RELOCATE,
        "      const unsigned slot = bucket.recent_slot(i);\n",
        "      const unsigned slot = bucket.recent_slot(i) - ({planted} && i > 0 ? 1 : 0);\n",
        ELIM_STRAIGHT_UNIT,
    ),
    swap_part(
        "elimda: straight: recent pairs come to slots that a restart has found in use",
        ELIM_COLD,
        "contents.used = slots.empty() ? 0 : slots.back().slot + 1u",
        "slots.empty() ? 0 : slots.back().slot + 1u",
        "static_cast<unsigned>(slots.size())",
        ELIM_STRAIGHT_UNIT,
    ),
    Bug(
        "elimda: straight: a bucket that is replaced takes the slots of recent pairs again",
        ELIM_RELOCATE,
        "live_d_pairs(bucket), bucket.next_slot());\n",
        "live_d_pairs(bucket), {planted} ? bucket.recent_slot(0) : bucket.next_slot());\n",
        ELIM_STRAIGHT_UNIT,
    ),
    swap_part(
        "elimda: straight: a pair comes to a slot behind the P-bucket",
        ELIM_PUT,
        "if (store_.straight && locked.bucket->next_slot() < store_.shape.p_pairs)",
        "locked.bucket->next_slot() < store_.shape.p_pairs",
        "locked.bucket->next_slot() <= store_.shape.p_pairs",
        ELIM_STRAIGHT_UNIT,
    ),
    drop(
        "elimda: straight: pairs of logs that are no longer used are forgotten",
        ELIM_RECOVERY,
        "retry_when_full(store_.pool, [&] { flusher_.drain_logs(); })",
        ELIM_DRAINED,
    ),
    drop(
        "elimda: straight: a full pool that keeps its logs has pairs come straight",
        ELIM_RECOVERY,
        "store_.straight = false",
        ELIM_STRAIGHT_UNIT,
    ),
    drop(
        "elimda: straight: a full pool without logs has pairs come to the backup log",
        ELIM_RECOVERY,
        "store_.straight = true",
        ELIM_STRAIGHT_UNIT,
    ),
    drop(
        "elimda: straight: what comes from D-buckets to places counts before it is durable",
        ELIM_RELOCATE,
        "store_.pm().flush(to, pairs.size() * sizeof(Pair))",
        (unit("tests/linearizability/elimda_copies_test", "*"),),
    ),
    Bug(
        "elimda: straight: a segment with recent pairs is taken for an empty one",
        ELIM_SMO,
        "        if (bucket.recent_live(i)) return false;\n",
        "        if (!{planted} && bucket.recent_live(i)) return false;\n",
        ELIM_STRAIGHT_UNIT,
    ),
    Bug(
        "elimda: straight: a visit passes over recent pairs",
        ELIM_FOR_EACH,
        "      if (bucket.recent_live(i)) add_p(bucket.recent_slot(i));\n",
        "      if (!{planted} && bucket.recent_live(i)) add_p(bucket.recent_slot(i));\n",
        ELIM_STRAIGHT_UNIT,
    ),
    Bug(
        "elimda: straight: a split leaves in D-buckets what P-buckets have room for",
        ELIM_SMO,
        "    const unsigned count = std::min(room, in_p + in_d);\n",
        "    const unsigned count = std::min({planted} ? store_.shape.unit_from(in_p) : room, "
        "in_p + in_d);\n",
        ELIM_STRAIGHT_UNIT,
    ),
    Bug(
        "elimda: a lookup whose bucket was replaced shows a value that is not durable",
        ELIM_STORE,
        "    if (!replaced && !place.bucket->has_unpersisted()) return;\n",
        "    if ((!replaced || {planted}) && !place.bucket->has_unpersisted()) return;\n",
        ELIM_READS_UNIT,
    ),
    # --- Erase ---
    Bug(
        "elimda: an erase leaves the pair in the backup log",
        ELIM_CHANGES,
        "    const BackupRef ref = place.bucket->d_ref(i);\n",
        "    if ({planted}) return place.bucket->d_kill(i);\n"
        "    const BackupRef ref = place.bucket->d_ref(i);\n",
        ELIM,
    ),
    Bug(
        "elimda: an erase leaves the pair in its P-bucket",
        ELIM_CHANGES,
        "    kill_in_slot(place, store_.code.slot(place.bucket->entry(entry)),\n",
        "    if ({planted}) return place.bucket->kill_entry(store_.code, entry);\n"
        "    kill_in_slot(place, store_.code.slot(place.bucket->entry(entry)),\n",
        ELIM,
    ),
    drop(
        "elimda: an erase leaves its strings",
        ELIM_WORDS,
        "values_.free(session, pair.value);",
        ELIM_STRINGS,
    ),
    # --- Relocation ---
    drop(
        "elimda: what was relocated stays in the backup log, and comes back (paper)",
        ELIM_RELOCATE,
        "store_.backup.clear(moved)",
        ELIM,
    ),
    Bug(
        "elimda: pairs leave the backup log before they are in the PM table",
        ELIM_RELOCATE,
        "    write_to_p(locked, first, moved);\n",
        "    store_.backup.clear(moved);\n    write_to_p(locked, first, moved);\n",
        ELIM,
    ),
    swap_part(
        "elimda: relocated pairs count before they are durable",
        ELIM_RELOCATE,
        "store_.pm().stream(&store_.table.pair(place, first + from), unit.data()",
        "stream",
        "copy",
        ELIM,
        after="void write_to_p(",
    ),
    drop(
        "elimda: bits of the backup log are not cleared durably",
        ELIM_BACKUP,
        "pool_.pm().flush(&of_pair, sizeof of_pair)",
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
        "store_.table.flush_head",
        ELIM,
    ),
    drop(
        "elimda: what a split took from the backup log stays there",
        ELIM_SMO,
        "store_.backup.clear",
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
        ELIM_STORE,
        "  if (const Found found = find_in_p(place, key, hash)) return found;\n"
        "  return find_in_d(place, key, hash);\n",
        "  if ({planted}) if (const Found later = find_in_d(place, key, hash)) return later;\n"
        "  if (const Found found = find_in_p(place, key, hash)) return found;\n"
        "  return find_in_d(place, key, hash);\n",
        ELIM,
    ),
    Bug(
        "elimda: an erase kills one pair of a D-bucket only",
        ELIM_CHANGES,
        "      kill_d_pair(place, i - 1);\n      any = true;\n",
        "      kill_d_pair(place, i - 1);\n      any = true;\n      if ({planted}) break;\n",
        ELIM,
    ),
    Bug(
        "elimda: opening takes the units of a log from the youngest on",
        ELIM_BACKUP_HEAD,
        "      return a.log != b.log ? a.log < b.log : "
        "static_cast<std::int32_t>(a.number - b.number) < 0;\n",
        "      return a.log != b.log ? a.log < b.log : "
        "(static_cast<std::int32_t>(a.number - b.number) < 0) != {planted};\n",
        ELIM,
    ),
    # --- Opening at any size ---
    drop(
        "elimda: a log does not say that it is being copied",
        ELIM_FLUSH,
        "log.begin_copy()",
        ELIM_STRINGS,
    ),
    Bug(
        "elimda: a unit of a log lies in a region that has not all hashes of the log",
        ELIM_FLUSH,
        "store_.backup.take(log.first_hash(), log.depth())",
        "store_.backup.take(log.first_hash(), {planted} ? ChunkLists::kMaxDepth : log.depth())",
        ELIM_OPENING_UNIT,
    ),
    Bug(
        "elimda: the pairs of all regions share the unit that is being filled",
        ELIM_DIRECT,
        ": of_regions()[ChunkLists::region_of(hash, depth)];",
        ": of_regions()[{planted} ? 1 : ChunkLists::region_of(hash, depth)];",
        ELIM_OPENING_UNIT,
    ),
    swap_part(
        "elimda: a unit of no log gets the number of an earlier use",
        ELIM_BACKUP,
        "return number + 1",
        "number + 1",
        "1",
        ELIM_PARTS_UNIT,
    ),
    drop(
        "elimda: the lists of chunks are not taken over when there are more regions",
        ELIM_LISTS,
        "pm.store(words[region], pm::load(head(region)))",
        ELIM_OPENING_UNIT,
    ),
    drop(
        "elimda: the lists of more regions are not durable when they are linked",
        ELIM_LISTS,
        "pm.flush(words, table_bytes(larger.depth))",
        ELIM_STRAIGHT,
    ),
    swap_part(
        "elimda: a cold segment does not look into the regions of smaller depths",
        ELIM_LISTS_HEAD,
        "for (unsigned d = 0; d <= end; ++d)",
        "d = 0",
        "d = end",
        ELIM_OPENING_UNIT,
    ),
    drop(
        "elimda: a drop leaves the lists of chunks",
        ELIM_OWNED,
        "release(store_.root.chunks, pm::kNull,",
        ELIM_OPENING_UNIT,
    ),
    drop(
        "elimda: pairs of a region that was read do not come back",
        ELIM_BACKUP,
        "used.units.push_back({word.log, word.number, unit})",
        ELIM_OPENING_UNIT,
    ),
    Bug(
        "elimda: opening reads all regions",
        ELIM_RECOVERY,
        "    store_.dram.start();\n",
        "    store_.dram.start();\n    if ({planted}) store_.backup.read_all();\n",
        ELIM_OPENING_UNIT,
    ),
    Bug(
        "elimda: opening makes all segments known",
        ELIM_RECOVERY,
        "    store_.cold.begin(store_.logs.area().depth);\n",
        "    store_.cold.begin(store_.logs.area().depth);\n"
        "    if ({planted}) store_.dram.for_each_segment([](Segment&) {});\n",
        ELIM_OPENING_UNIT,
    ),
    Bug(
        "elimda: an index of an earlier release has the copies of logs that say so finished",
        ELIM_RECOVERY,
        "    if (logs_say_copying(store_.root)) return",
        "    if ({planted} || logs_say_copying(store_.root)) return",
        ELIM_OPENING_UNIT,
    ),
    Bug(
        "elimda: a segment that two threads ask for has two DRAM sides",
        ELIM_DRAM,
        "  if (Segment* segment = known_segment(hash)) return *segment;\n",
        "  if (Segment* segment = known_segment(hash); !{planted} && segment != nullptr) "
        "return *segment;\n",
        ELIM_STRESS,
    ),
    # --- Opening ---
    drop_part(
        "elimda: a copy that a crash left in the backup log stays there",
        ELIM_COLD,
        "if (!drop_copy(filled, pair))",
        "if (!drop_copy(filled, pair)) ",
        ELIM_STRINGS,
    ),
    Bug(
        "elimda: a copy is looked for at the first pair of its key only",
        ELIM_COLD,
        "    if (!is_in_p(place, pair.pair)) return false;\n",
        "    if (!is_in_p(place, pair.pair)) return false;\n"
        "    if ({planted}) {\n"
        "      Word first = 0;\n"
        "      const KeyHash hash{std::uint64_t{pair.pair.signature} << 32};\n"
        "      place.bucket->find_entry(code_, hash.signature(), "
        "[&](unsigned, std::uint16_t entry) {\n"
        "        const Pair& in_p = table_.pair(place, code_.slot(entry));\n"
        "        first = pm::load(in_p.value);\n"
        "        return !code_.killed(entry) && "
        "words_.is_key(pm::load(in_p.key), words_.keys().view(pair.pair.pair.key), hash);\n"
        "      });\n"
        "      if (first != pair.pair.pair.value) return false;\n"
        "    }\n",
        ELIM_STRINGS,
    ),
    drop(
        "elimda: a copy is dropped, but not durably",
        ELIM_COLD,
        "pool_.pm().persist(&word, sizeof word)",
        (unit("tests/linearizability/elimda_copies_test", "*"),),
        after="bool drop_copy(",
    ),
    store_for_publish(
        "elimda: an update is not durable where the pair is in flight or in a D-bucket",
        ELIM_CHANGES,
        "store_.pm().publish(word, value.word())",
        ELIM,
    ),
]
