#!/usr/bin/env python3
"""Persist mutation: suppresses one flush or fence call site at a time and expects the crash-state
explorer, or else the schedule fuzzer, to notice. If no test notices the
suppression of a site, the site is useless (remove it) or untested (test it).

    tests/crash/persist_mutation.py --tests build/instrumented/tests

Nothing is edited or rebuilt: a site is a place in a source file, and the explorer takes away what
it does at run time, and opens only the images that a crash could not leave otherwise. First it
lists the sites that each subject uses; then, for each site and for flush and fence apart, it
explores the subjects that use the site until one fails, with more and more rounds. What that does
not notice or never reaches, since the explorer's threads have keys of their own, is left to
schedules in which threads write the same keys. A site in the sources that nothing uses counts as a
survivor. Ends with 1 if there are survivors.
"""

import argparse
import collections
import concurrent.futures
import re
import subprocess
import sys
import time
from pathlib import Path

# In the cpu_cache domain flushes and fences do nothing.
DOMAINS = ("memory_controller", "page_cache")
SCHEDULES = "schedules of "
SCHEDULED_DOMAIN = "memory_controller"
FEW_SCHEDULES, MANY_SCHEDULES = 100, 4000
FOLDERS = ("src/pool", "src/alloc", "src/wal", "src/index")
ROOT = Path(__file__).resolve().parents[2]
# An engine with its kinds of keys and values, opened in the usual way.
_ENGINE = re.compile(r"^\w+:\w+:\w+$")
_KINDS = re.compile(r":(u64|bytes):(u64|bytes)$")
_SITE = re.compile(r"^site (\S+) flushes (\d+) fences (\d+) (.*)$")
_CALL = re.compile(r"(?:\.|->)\s*(?:flush|fence|persist|publish|stream)\(")


def sites_in_sources():
    """{"src/pool/directory.cc:12", ...}: every line that calls the seam."""
    found = set()
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".cc", ".h") or re.search(r"(^|_)test[._]", path.name):
                continue
            for number, line in enumerate(path.read_text().splitlines(), 1):
                code = line.split("//")[0]
                # File::publish gives a file its name; it is not the seam.
                if _CALL.search(code) and "file_.publish" not in code:
                    found.add(f"{path.relative_to(ROOT)}:{number}")
    return found


def explore(arguments, subject, domain, *more):
    explorer = str(arguments.tests / "crash/crash_explorer")
    command = [explorer, "--engine", subject, "--domain", domain, *more]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def schedule(arguments, subject, domain, *more):
    """The same with the schedule fuzzer."""
    fuzzer = str(arguments.tests / "linearizability/schedule_fuzzer")
    engine, keys, values = subject.removeprefix(SCHEDULES).split(":")
    kinds = ["--engine", engine, "--keys", keys, "--values", values]
    command = [fuzzer, *kinds, "--domain", domain, "--reopen", *more]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def subjects(arguments):
    command = [str(arguments.tests / "crash/crash_explorer"), "--list"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split() if name.startswith(arguments.engine)]


def find_sites(arguments, pool):
    """{(site, kind): [(subject, domain), ...]} and {site: function}."""
    names = subjects(arguments)
    runs = [(s, d) for d in DOMAINS for s in names]
    runs += [(SCHEDULES + s, SCHEDULED_DOMAIN) for s in names if _ENGINE.match(s)]

    def list_sites(run):
        seed = ("--sites", "--seed", str(arguments.seed))
        if run[0].startswith(SCHEDULES):
            return schedule(arguments, *run, *seed, "--runs", str(FEW_SCHEDULES))
        # Some recoveries of each round are enough to see what it calls.
        return explore(arguments, *run, *seed, "--rounds", "16", "--images", "40")

    results = pool.map(list_sites, runs)
    uses, functions = collections.defaultdict(list), {}
    for (subject, domain), result in zip(runs, results):
        if result.returncode != 0:
            output = result.stdout + result.stderr
            sys.exit(f"{subject} in {domain} fails without any suppression:\n{output}")
        for match in filter(None, map(_SITE.match, result.stdout.splitlines())):
            site, flushes, fences, function = match.groups()
            functions[site] = function
            for kind, count in (("flush", int(flushes)), ("fence", int(fences))):
                # Listed for one thread and for several.
                used = count > 0 and site.startswith(FOLDERS)
                if used and (subject, domain) not in uses[site, kind]:
                    uses[site, kind].append((subject, domain))
    return uses, functions


def at_home(site, subject):
    """Whether the subject is there for the layer or the engine of the site."""
    folder = site.rsplit("/", 1)[0]
    home = {"src/alloc": "calloc", "src/pool": "pool", "src/wal": "wal"}
    return subject.startswith(home.get(folder, folder.rsplit("/", 1)[1]))


def who_notices(arguments, mutant, users):
    """Subject and domain of the first exploration that fails, or None. First the subjects that are
    parts of the site's own layer or engine, with more and more rounds; then that as a whole; then
    the others; then schedules. Of each all with few rounds, of one thread, before any with many."""
    explored = [user for user in users if not user[0].startswith(SCHEDULES)]
    home = [user for user in explored if at_home(mutant[0], user[0])]
    parts = [user for user in home if not _KINDS.search(user[0])]
    wholes = [user for user in home if user not in parts]
    others = [user for user in explored if user not in home]
    scheduled = [user for user in users if user not in explored]
    return (
        explore_all(arguments, mutant, parts)
        or explore_all(arguments, mutant, wholes)
        or explore_all(arguments, mutant, others)
        or schedule_all(arguments, mutant, scheduled)
    )


def explore_all(arguments, mutant, users):
    first = arguments.seed
    few = arguments.rounds // 16
    for rounds, *threads in ((few, "--threads", "1"), (2 * few,), (arguments.rounds,)):
        for subject, domain in users:
            more = ["--rounds", str(rounds), "--seed", str(first), *threads]
            result = explore(arguments, subject, domain, *more, "--suppress", ":".join(mutant))
            if fails(result, subject):
                return f"{subject} in {domain}"
        first += rounds
    return None


def schedule_all(arguments, mutant, users):
    for runs in (FEW_SCHEDULES, MANY_SCHEDULES):
        for subject, domain in users:
            more = ["--runs", str(runs), "--seed", str(arguments.seed)]
            result = schedule(arguments, subject, domain, *more, "--suppress", ":".join(mutant))
            if fails(result, subject):
                return f"{subject} in {domain}"
    return None


def fails(result, subject):
    if result.returncode == 2:
        raise RuntimeError(f"can't try {subject}: {result.stderr}")
    return result.returncode != 0  # 1: a failure was reported; a signal: recovery crashed


def is_wanted(arguments, site):
    return any(part in site for part in arguments.site)


def mutate(arguments, pool, uses):
    """Suppresses each site and prints which test notices. Returns the mutants that none noticed."""
    mutants = sorted(mutant for mutant in uses if is_wanted(arguments, mutant[0]))
    sites = {site for site, _ in mutants}
    print(f"{len(sites)} call sites, {len(mutants)} suppressions", flush=True)
    survivors = []
    answers = pool.map(lambda mutant: who_notices(arguments, mutant, uses[mutant]), mutants)
    for (site, kind), catcher in zip(mutants, answers):
        answer = f"noticed by {catcher}" if catcher else "SURVIVES"
        print(f"{kind:5} of {site:44} {answer}", flush=True)
        if catcher is None:
            survivors.append((site, kind))
    return mutants, survivors


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument(
        "--tests", type=Path, required=True, help="folder of the tests in an instrumented build"
    )
    parser.add_argument("--engine", default="", help="only subjects whose name begins so")
    parser.add_argument(
        "--site", nargs="+", default=[""], help="only sites whose name contains one of these"
    )
    parser.add_argument(
        "--rounds", type=int, default=64, help="for each site, subject and domain, at most"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    start = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        uses, functions = find_sites(arguments, pool)
        mutants, survivors = mutate(arguments, pool, uses)
    for site, kind in survivors:
        print(f"survivor: {kind} of {site} in {functions[site]}")
    reached = {site.rsplit(":", 1)[0] for site, _ in uses}
    unreached = sorted(s for s in sites_in_sources() - reached if is_wanted(arguments, s))
    if arguments.engine and not any(arguments.engine in site for site in arguments.site):
        unreached = []  # other engines may use them
    for site in unreached:
        print(f"nothing uses {site}")
    print(
        f"{len(mutants) - len(survivors)} of {len(mutants)} suppressions noticed, "
        f"{len(unreached)} call sites unused, {time.monotonic() - start:.0f} s"
    )
    return 1 if survivors or unreached or not mutants else 0


if __name__ == "__main__":
    sys.exit(main())
