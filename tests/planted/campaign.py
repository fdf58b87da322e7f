"""Plants each bug, and climbs the ladder of tests (ladder.py) until one notices it. The table of
first_notice.py keeps what was found, so a campaign that ends early goes on where it was."""

import collections
import concurrent.futures
import math
import os
import re
import subprocess
import threading
import time

import first_notice
from bugs import BUGS
from ladder import LADDER
from plant import VARIABLE

SCALE = {"PERDIX_TEST_SCALE": "0.1"}  # of the operations of conformance
_COUNTED = ("explorer", "schedules")  # in something other than seconds
TIMEOUT = 1800  # seconds, of these; they end by themselves, but a busy machine is slow
_SEED = re.compile(r": seed (\d+) is not durably linearizable")
_FIRST_SEED = re.compile(r"--seed (\d+)")
_EPISODE = re.compile(r"FINDING in episode (\d+)")

# One run: `program` is of a kind, or of a unit test its place in the build.
Step = collections.namedtuple("Step", "kind program arguments size subject")


def kind_and_rest(subject):
    """The kind of a bug's subject, the program, and the rest of it."""
    first, _, rest = subject.partition(" ")
    if not rest:
        return "explorer", "explorer", subject
    if first == "unit":
        program, cases = rest.split()
        return first, program, cases
    return first, first, re.sub(r" ?--runs \d+", "", rest)


def steps_of(bug):
    """The ladder for one bug."""
    for rung in LADDER:
        if rung.concerns:
            best = max((start for start in rung.concerns if bug.path.startswith(start)), key=len)
            subjects = [(rung.kind, rung.kind, rung.concerns[best])]
        else:
            subjects = [kind_and_rest(subject) for subject in bug.subjects]
        for kind, program, subject in subjects:
            if kind == rung.kind and subject:
                arguments = rung.command.format(subject=subject, size=rung.size)
                yield Step(kind, program, arguments, rung.size, subject)


class Ladder:
    """Runs steps. Each that notices a bug must be sound without one; that is tried once."""

    def __init__(self, path_of):
        self._path_of = path_of
        self._sound = {}
        self._lock = threading.Lock()

    def first_notice(self, number):
        """The row of a bug for the table."""
        bug = BUGS[number]
        for step in steps_of(bug):
            after = self._notice(step, number)
            if after is not None:
                program = f"{step.program} " if step.program != step.kind else ""
                return first_notice.row_of(bug, step.kind, after, program + step.subject)
        return first_notice.row_of(bug, first_notice.NONE, 0, first_notice.NONE)

    def _notice(self, step, number):
        """After how much the step notices the bug; None if it does not."""
        start = time.monotonic()
        result = self._run(step, number)
        seconds = math.ceil(time.monotonic() - start)
        if result is not None and result.returncode == 0:
            return None
        if result is None and step.kind in ("storm", "explorer"):
            return None  # these notice by themselves what hangs
        episode = _EPISODE.search(result.stdout) if result and step.kind == "storm" else None
        self._require_sound(step, ("--episode", episode[1]) if episode else ())
        if step.kind not in _COUNTED:
            return seconds
        found = _SEED.search(result.stdout) if result else None
        if step.kind == "schedules" and found:
            return int(found[1]) - int(_FIRST_SEED.search(step.arguments)[1]) + 1
        return step.size

    def _require_sound(self, step, more):
        with self._lock:
            if (step, more) not in self._sound:
                result = self._run(step, -1, more)
                self._sound[step, more] = result is not None and result.returncode == 0
            if not self._sound[step, more]:
                raise RuntimeError(f"fails without a bug: {step.program} {step.arguments}")

    def _run(self, step, number, more=()):
        """What a step gives; None if it does not end in time."""
        command = [self._path_of(step.program), *step.arguments.split(), *more]
        environment = os.environ | SCALE | {VARIABLE: str(number)}
        limit = TIMEOUT if step.kind in _COUNTED else step.size
        try:
            return subprocess.run(
                command, env=environment, capture_output=True, text=True, check=False, timeout=limit
            )
        except subprocess.TimeoutExpired:
            return None


def left_of(numbers, rows, again):
    """The bugs that the table does not have as they are now."""
    for number in numbers:
        row = rows.get(first_notice.key_of(BUGS[number]))
        if again or row is None or row.sources != first_notice.sources_of(BUGS[number]):
            yield number


def programs_of(numbers):
    """The programs that the ladders of these bugs need."""
    return sorted({step.program for number in numbers for step in steps_of(BUGS[number])})


def run(numbers, jobs, path_of):
    """Fills the table for these bugs. Returns 1 if a test fails without a bug."""
    rows = first_notice.read_table()
    known = {first_notice.key_of(bug) for bug in BUGS}
    rows = {key: row for key, row in rows.items() if key in known}
    ladder, start, failed = Ladder(path_of), time.monotonic(), 0
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        waited_for = [pool.submit(ladder.first_notice, number) for number in numbers]
        for done, future in enumerate(concurrent.futures.as_completed(waited_for), 1):
            left = (time.monotonic() - start) / done * (len(numbers) - done)
            print(f"{done} of {len(numbers)}, {left / 60:.0f} min left: ", end="")
            if error := future.exception():
                failed += 1
                print(error, flush=True)
                continue
            row = future.result()
            rows[row.key] = row
            first_notice.write_table(rows)
            what = f"{row.noticed_by}, {row.after} {row.unit}, {row.subject}"
            print(f"{row.key}: {what}", flush=True)
    print(first_notice.summary(rows.values()))
    return 1 if failed else 0
