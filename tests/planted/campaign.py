"""Plants each bug, and climbs the ladder of tests (ladder.py) until one notices it. The table of
first_notice.py keeps what was found, so a campaign that ends early goes on where it was."""

import concurrent.futures
import math
import os
import re
import subprocess
import tempfile
import threading
import time

import first_notice
from bugs import BUGS
from ladder import DEEP, deep_steps, quick_steps
from plant import VARIABLE

TIMEOUT = 600  # seconds of a test of the quick suite: what hangs is noticed
DEEP_TIMEOUT = 3600  # of others, which end by themselves, but a busy machine is slow
# Of each subject that was explored; the last is the one with the failure.
_IMAGES = re.compile(r"(\d+) images \(in recovery")
_SCHEDULE = re.compile(r": seed (\d+) is not durably linearizable")
_EPISODE = re.compile(r"FINDING in episode (\d+)")


class Ladder:
    """Runs steps. Each that notices a bug must pass without one; that is tried once."""

    def __init__(self, tests, path_of):
        self._tests = tests
        self._path_of = path_of
        self._sound = {}
        self._lock = threading.Lock()

    def quick(self, number):
        """The row of a bug after the quick suite."""
        return self._row(number, quick_steps(BUGS[number], self._tests), first_notice.OPEN)

    def deep(self, number):
        """The row of a bug that the quick suite did not notice."""
        return self._row(number, deep_steps(BUGS[number], self._path_of), first_notice.NONE)

    def _row(self, number, steps, otherwise):
        for step in steps:
            after = self._notice(step, number)
            if after is not None:
                return first_notice.row_of(BUGS[number], step, after)
        return first_notice.row_of(BUGS[number], missed_by=otherwise)

    def _notice(self, step, number):
        """After how much the step notices the bug; None if it does not."""
        start = time.monotonic()
        result = self._run(step, number)
        seconds = math.ceil(time.monotonic() - start)
        if result is not None and result.returncode == 0:
            return None
        if result is None and step.suite == DEEP:
            return None  # it took long, for whatever reason
        output = result.stdout if result else ""
        episode = _EPISODE.search(output) if step.kind == "storm" else None
        self._require_sound(step, ("--episode", episode[1]) if episode else ())
        if step.kind == "explorer":
            return sum(map(int, _IMAGES.findall(output))) or 1  # it crashed in the first subject
        if step.kind == "schedules" and (found := _SCHEDULE.search(output)):
            return int(found[1]) - first_seed(step.command) + 1
        return seconds

    def _require_sound(self, step, more):
        key = (step.command, more)
        with self._lock:
            first = key not in self._sound
            sound = self._sound.setdefault(key, concurrent.futures.Future())
        if first:
            result = self._run(step, -1, more)
            sound.set_result(result is not None and result.returncode == 0)
        if not sound.result():
            raise RuntimeError(f"fails without a bug: {' '.join(step.command)}")

    @staticmethod
    def _run(step, number, more=()):
        """What a step gives; None if it does not end in time. A process that a bug ends leaves
        files: they go with the folder."""
        with tempfile.TemporaryDirectory(prefix="perdix-planted-") as folder:
            places = {"TMPDIR": folder, "PERDIX_TEST_DIR": folder}
            variables = {**dict(step.variables), **places, VARIABLE: str(number)}
            try:
                return subprocess.run(
                    [*step.command, *more],
                    env=os.environ | variables,
                    cwd=folder,
                    capture_output=True,
                    text=True,
                    errors="replace",
                    check=False,
                    timeout=DEEP_TIMEOUT if step.suite == DEEP else TIMEOUT,
                )
            except subprocess.TimeoutExpired:
                return None


def first_seed(command):
    """Where schedules begin to count."""
    return int(command[command.index("--seed") + 1]) if "--seed" in command else 1


def left_of(numbers, rows, again):
    """The bugs that the table does not have as they are now."""
    for number in numbers:
        row = rows.get(first_notice.key_of(BUGS[number]))
        if again or row is None or row.sources != first_notice.sources_of(BUGS[number]):
            yield number


def run(numbers, left, jobs, ladder):
    """Fills the table for the bugs that are left of these: first by the quick suite, then for those
    that it missed by the deep one, which takes longer. Returns 1 if a test fails without a bug."""
    files = {first_notice.key_of(bug): bug.path for bug in BUGS}
    table = first_notice.read_table()
    rows = {key: row._replace(file=files[key]) for key, row in table.items() if key in files}
    failed = _try_all("quick suite", left, jobs, ladder.quick, rows)
    of_table = {number: rows.get(first_notice.key_of(BUGS[number])) for number in numbers}
    missed = [n for n, row in of_table.items() if row and row.suite == first_notice.OPEN]
    failed += _try_all("deep suite", missed, jobs, ladder.deep, rows)
    print(first_notice.summary(rows.values()))
    return 1 if failed else 0


def _try_all(suite, numbers, jobs, attempt, rows):
    """Tries these bugs, and keeps the rows. Returns how many could not be tried."""
    start, failed = time.monotonic(), 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waited_for = [pool.submit(attempt, number) for number in numbers]
        for done, future in enumerate(concurrent.futures.as_completed(waited_for), 1):
            left = (time.monotonic() - start) / done * (len(numbers) - done)
            print(f"{suite}: {done} of {len(numbers)}, {left / 60:.0f} min left: ", end="")
            if error := future.exception():
                failed += 1
                print(error, flush=True)
                continue
            row = future.result()
            rows[row.key] = row
            first_notice.write_table(rows)
            print(f"{row.key}: {row.suite}, {row.test}, {row.after} {row.unit}", flush=True)
    return failed
