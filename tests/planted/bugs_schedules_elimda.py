"""Bugs of ElimDa that take several threads at one key or one log, which the schedule fuzzer must
notice."""

from bug import ELIM_CHANGES, ELIM_FLUSH, ELIM_PUT, ELIM_SMO, ELIM_STORE, Bug, schedules


def kinds(more, domain="cpu_cache"):
    return (schedules(f"--engine elimda --domain {domain} --reopen{more}"),)


ANY = kinds("")
FULL = kinds(" --beginning full") + ANY
CONTESTED = kinds(" --beginning contested") + kinds(" --beginning contested-full") + ANY
GROWING = kinds(" --growing --beginning full") + kinds(" --growing")
VOLATILE = kinds("", "memory_controller")
STRINGS = kinds(" --keys bytes --values bytes") + VOLATILE

BUGS = [
    Bug(
        "schedules: elimda: an append is counted before its pair can be found",
        ELIM_PUT,
        "  line.set_print(i, LogLine::print_of(hash.signature()));\n"
        '  pm::on_step("elimda: a pair was appended");\n'
        "  // After the pair can be found: an insert that knows this number has seen the pair.\n"
        "  line.appends.fetch_add(1);\n",
        "  line.appends.fetch_add(1);\n"
        '  pm::on_step("elimda: a pair was appended");\n'
        "  line.set_print(i, LogLine::print_of(hash.signature()));\n",
        CONTESTED,
    ),
    Bug(
        "schedules: elimda: an insert does not ask what was appended since it looked",
        ELIM_PUT,
        "  if (mode != Mode::ahead && line.appends.load(std::memory_order_relaxed) != appends) {\n",
        "  if (!{planted} && mode != Mode::ahead && "
        "line.appends.load(std::memory_order_relaxed) != appends) {\n",
        CONTESTED,
    ),
    Bug(
        "schedules: elimda: a lookup does not ask whether pairs have moved on from the log",
        ELIM_STORE,
        "        line.moves.load(std::memory_order_acquire) == moves) [[likely]]\n",
        "        ({planted} || line.moves.load(std::memory_order_acquire) == moves)) [[likely]]\n",
        FULL,
    ),
    Bug(
        "schedules: elimda: a lookup does not see that the D-bucket has more pairs",
        ELIM_STORE,
        "    if (current(place, hash) && place.bucket->d_count() == d_count &&\n",
        "    if ({planted} || current(place, hash) && place.bucket->d_count() == d_count &&\n",
        FULL,
    ),
    Bug(
        "schedules: elimda: a writer uses a segment that was split",
        ELIM_STORE,
        "    if (segment.obsolete.load(std::memory_order_acquire)) {\n",
        "    if (!{planted} && segment.obsolete.load(std::memory_order_acquire)) {\n",
        FULL,
    ),
    Bug(
        "schedules: elimda: a value is read before the bucket is locked",
        ELIM_FLUSH,
        "      Locked locked = store_.lock_bucket(hash);\n"
        "      if (!store_.backup.counts(ref)) return;\n"
        "      if (!locked.bucket->d_full()) {\n"
        "        // An update of the pair holds the lock, too: so its value is not lost.\n"
        "        locked.bucket->d_add({load(pair), ref, hash.signature()});\n",
        "      const std::uint64_t early = pm::load(pair.value);\n"
        '      pm::on_step("elimda: a pair comes into the DRAM table");\n'
        "      Locked locked = store_.lock_bucket(hash);\n"
        "      if (!store_.backup.counts(ref)) return;\n"
        "      if (!locked.bucket->d_full()) {\n"
        "        locked.bucket->d_add({{pm::load(pair.key), {planted} ? early : "
        "pm::load(pair.value)}, ref, hash.signature()});\n",
        ANY,
    ),
    Bug(
        "schedules: elimda: an erase does not see what is in flight",
        ELIM_CHANGES,
        "      any |= kill_in_flight(log->line(), locked, key, hash);\n",
        "      if (!{planted}) any |= kill_in_flight(log->line(), locked, key, hash);\n",
        ANY,
    ),
    Bug(
        "schedules: elimda: an erase kills the first pair first",
        ELIM_CHANGES,
        "    bool any = false;\n"
        "    if (log) {\n",
        "    bool any = false;\n"
        "    if ({planted}) any = kill_in_p(locked, key, hash) | kill_in_d(locked, key, hash);\n"
        "    if (log) {\n",
        CONTESTED,
    ),
    Bug(
        "schedules: elimda: an update in the logs does not lock the log",
        ELIM_CHANGES,
        "    const std::lock_guard lock(log.line().lock);\n",
        "    std::unique_lock lock(log.line().lock, std::defer_lock);\n"
        "    if (!{planted}) lock.lock();\n",
        CONTESTED,
    ),
    Bug(
        "schedules: elimda: a reader shows a value of a P-bucket before it is durable",
        ELIM_STORE,
        "    if (!volatile_caches) return;\n",
        "    if ({planted} || !volatile_caches) return;\n",
        VOLATILE,
    ),
    # --- What is freed may still be found ---
    Bug(
        "schedules: elimda: a value is freed before a D-bucket has the new one",
        ELIM_CHANGES,
        "      set_value(store_.backup.pair(bucket.d_ref(found.at)).value, value,\n"
        "                [&](Word word) { bucket.d_set_value(found.at, word); });\n",
        "      Word shown = 0;\n"
        "      set_value(store_.backup.pair(bucket.d_ref(found.at)).value, value, "
        "[&](Word word) {\n"
        "        shown = word;\n"
        "        if (!{planted}) bucket.d_set_value(found.at, word);\n"
        "      });\n"
        "      bucket.d_set_value(found.at, shown);\n",
        STRINGS,
    ),
    Bug(
        "schedules: elimda: an erase frees strings that a log still shows",
        ELIM_CHANGES,
        "                        [&] { line.set_print(i - 1, 0); });\n",
        "                        [&] { if (!{planted}) line.set_print(i - 1, 0); });\n"
        "      line.set_print(i - 1, 0);\n",
        STRINGS,
    ),
    Bug(
        "schedules: elimda: an erase frees strings that a P-bucket still shows",
        ELIM_CHANGES,
        "                      load(pair), unlink, Shared::no);\n",
        "                      load(pair), [] {}, Shared::no);\n"
        "    unlink();\n",
        STRINGS + kinds(" --keys bytes --values bytes --straight"),
    ),
    Bug(
        "schedules: elimda: a pair is added to a bucket without its lock",
        ELIM_STORE,
        "    std::unique_lock lock(slot);\n",
        "    std::unique_lock lock(slot, std::defer_lock);\n"
        "    if (!{planted}) lock.lock();\n",
        kinds(" --straight --beginning contested") + kinds(" --straight"),
    ),
    Bug(
        "schedules: elimda: an erase in flight leaves the pair in its D-bucket",
        ELIM_CHANGES,
        "                        [&] { place.bucket->d_kill_ref(ref); });\n",
        "                        [&] { if (!{planted}) place.bucket->d_kill_ref(ref); });\n",
        STRINGS,
    ),
    Bug(
        "schedules: elimda: a segment is freed before readers come to its halves",
        ELIM_SMO,
        "    store_.table.replace(session, segment, halves[0].offset, halves[1].offset, unlink);",
        "    store_.table.replace(session, segment, halves[0].offset, halves[1].offset,\n"
        "                         [&] { if (!{planted}) unlink(); });\n"
        "    if ({planted}) unlink();",
        FULL,
    ),
    Bug(
        "schedules: elimda: an erase looks into a log that is retired",
        ELIM_STORE,
        "    if (!log.line().retired) return log;\n",
        "    if ({planted} || !log.line().retired) return log;\n",
        GROWING,
    ),
    Bug(
        "schedules: elimda: an update changes a pair of a log that is retired",
        ELIM_CHANGES,
        "    if (log.line().retired) return Replaced::absent;",
        "    if (!{planted} && log.line().retired) return Replaced::absent;",
        GROWING,
    ),
    Bug(
        "schedules: elimda: a pair is added to a log that is retired",
        ELIM_FLUSH,
        "    if (line.retired) {\n",
        "    if (!{planted} && line.retired) {\n",
        GROWING,
    ),
]
