#!/usr/bin/env python3
"""Runs the servers' own suites with and without the module; `make valkey-upstream` calls it.

    bindings/valkey/upstream/run.py [--server redis-7] [--only unit/type/set] [--again]
        [--page] [--report] [-- OPTIONS of the suite's runtest]

Each file of a suite runs with the stock server, then with the module in `mode keyspace`, where an
image of each server's pool is compared after each test (images.py). If something fails with the
module only, the file runs once more with the module and without images. Results are kept in
build/valkey-upstream/SERVER/, so that a run that was stopped goes on with what is missing; --again
runs all again. --page writes bindings/valkey/upstream/RESULTS.md from what is there, --report
prints it, both without running anything.

Returns 1 if something fails with the module only, or an image differs, that reasons.tsv does not
explain.
"""

import argparse
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import images
import results
import suites

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
SERVERS = ROOT / "build/valkey-servers"
MODULE = ROOT / "build/valkey/bindings/valkey/perdix.so"
TOOL = ROOT / "build/valkey/bin/perdix"
RESULTS = ROOT / "build/valkey-upstream"
KINDS = {
    "redis-7": "redis-7/redis-server",
    "valkey-8": "valkey-8/valkey-server",
    "valkey-9": "valkey-9/valkey-server",
}
FILES = (
    "unit/type/string", "unit/type/incr", "unit/type/list", "unit/type/list-2",
    "unit/type/list-3", "unit/type/set", "unit/type/zset", "unit/type/hash", "unit/type/stream",
    "unit/type/stream-cgroups", "unit/expire", "unit/hashexpire", "unit/keyspace", "unit/multi",
    "unit/dump", "unit/scripting", "unit/functions", "unit/other", "unit/scan", "unit/sort",
    "unit/bitops", "unit/bitfield", "unit/hyperloglog", "unit/geo", "unit/introspection",
    "unit/introspection-2", "unit/slowlog", "unit/lazyfree", "unit/maxmemory", "unit/pubsub",
    "unit/pause", "unit/info", "unit/protocol", "unit/acl", "unit/wait", "unit/aofrw",
    "unit/shutdown", "unit/auth", "unit/querybuf", "unit/commandlog", "unit/latency-monitor",
    "unit/tracking",
)
SECONDS = 1500  # for a file, after which what runs of it is ended
PATIENCE = 200  # seconds without a result, after which the suite ends a file itself


class Suite:
    """The suite of one server, and where its results are."""

    def __init__(self, kind, server, source, module, tool, folder):
        self.kind = kind
        self.server = server
        self.source = source
        self.module = module
        self.tool = tool
        self.folder = folder
        self.options = []
        self.reasons = []
        self.make_images = images.Images

    def has(self, file):
        return (self.source / "tests" / f"{file}.tcl").exists()

    def path(self, file, run):
        return self.folder / self.kind / run / (file.replace("/", "_") + ".tsv")

    def unit(self, file):
        """The results of a file that are there."""
        runs = {run: results.outcomes(results.read_lines(self.path(file, run))[0])
                for run in ("stock", "module", "again")}
        compared = results.read_lines(self.path(file, "images"))[0]
        return results.Unit(self.kind, file, **runs,
                            images=[(test, status, detail) for status, _, test, detail in compared])

    def is_complete(self, file):
        return all(results.read_lines(self.path(file, run))[1] for run in ("stock", "module"))

    def run_all(self, file, again=False):
        """Runs a file in all ways that lack results."""
        for run in ("stock", "module", "again"):
            if again:
                self.path(file, run).unlink(missing_ok=True)
        for run in ("stock", "module"):
            self.run(file, run)
        unit = self.unit(file)
        if unit.suspects() or unit.unreached():
            self.run(file, "again")
        return self.unit(file)

    def run(self, file, run):
        path = self.path(file, run)
        if results.read_lines(path)[1]:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(prefix="perdix-suite-", dir=memory()) as scratch:
            self.place_temporary_files(Path(scratch))
            if run == "module":
                self.run_with_images(file, path, Path(scratch))
            else:
                self.execute(file, path, run != "stock")
        results.write_line(path, "done")

    def run_with_images(self, file, path, scratch):
        verdicts = self.path(file, "images")
        verdicts.parent.mkdir(parents=True, exist_ok=True)
        verdicts.unlink(missing_ok=True)

        def record(place, test, verdict):
            name, origin = results.unescaped(test), results.unescaped(place)
            results.write_line(verdicts, verdict.status, origin, name, verdict.detail)

        compared = self.make_images(self.server, self.module, self.tool, scratch / "image")
        with images.Service(compared, record) as service:
            self.execute(file, path, True, str(service.port))

    def place_temporary_files(self, scratch):
        """The suite's servers have their folders, and so their pools, in memory."""
        folder = self.source / "tests/tmp"
        if folder.is_symlink():
            folder.unlink()
        elif folder.exists():
            shutil.rmtree(folder)
        (scratch / "tmp").mkdir()
        folder.symlink_to(scratch / "tmp")

    def execute(self, file, path, module, port=""):
        command = ["tclsh", HERE / "suite.tcl", "--single", file, "--clients", "1", "--durable"]
        command += ["--timeout", str(PATIENCE), *ports(), *self.options]
        if module:
            command += ["--config", "loadmodule", f"{self.module} mode keyspace"]
            for test in results.left_out(self.reasons, self.kind, file):
                command += ["--skiptest", test]
        environment = {**os.environ, "LC_ALL": "C.UTF-8", "PERDIX_RESULTS": str(path),
                       "PERDIX_IMAGES": port}
        with open(path.with_suffix(".log"), "wb") as log:
            process = subprocess.Popen(
                [str(word) for word in command], cwd=self.source, env=environment, stdout=log,
                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True)
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                results.write_line(path, "exception", file, "", f"not done after {SECONDS} s")
            finally:
                end_group(process)
        if not results.read_lines(path)[0]:
            text = path.with_suffix(".log").read_text(errors="replace")
            raise RuntimeError(f"{file} of {self.kind} has run no test: {text[-2000:]}")


def ports():
    """Ports for a suite. Other suites may run on the machine; the first port that one takes lies
    32 below its base."""
    while True:
        base = random.randrange(12, 28) * 1000
        try:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", base - 32))
            return "--baseport", str(base), "--portcount", "900"
        except OSError:
            continue


def end_group(process):
    """Ends what a suite leaves behind: its processes are a group of their own."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def memory():
    shm = Path("/dev/shm")
    return shm if shm.is_dir() else None


def fetched(kinds):
    """The suites of servers, fetched where they are missing."""
    archive = suites.Archive(RESULTS / "apt")
    for kind in kinds:
        server = SERVERS / KINDS[kind]
        source = suites.suite(archive, kind, server, RESULTS)
        yield Suite(kind, server, source, MODULE, TOOL, RESULTS)


def there(kinds):
    """The suites whose results are there."""
    for kind in kinds:
        source = RESULTS / kind / "source"
        if source.exists():
            yield Suite(kind, SERVERS / KINDS[kind], source, MODULE, TOOL, RESULTS)


def report(found):
    for finding in found:
        print(f"{finding.kind}: {finding.what} under {finding.server}, {finding.file}: "
              f"{finding.test}\n    {finding.reason or finding.message}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--server", action="append", choices=KINDS, help="default: all")
    parser.add_argument("--only", action="append", metavar="FILE", help="as unit/type/set")
    parser.add_argument("--again", action="store_true", help="run what has results, too")
    parser.add_argument("--page", action="store_true", help="write RESULTS.md, run nothing")
    parser.add_argument("--report", action="store_true", help="print the findings, run nothing")
    parser.add_argument("options", nargs="*", help="of the suite's runtest, after --")
    return parser.parse_args()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends what runs
    options = arguments()
    kinds = options.server or list(KINDS)
    files = options.only or FILES
    runs = not (options.page or options.report)
    reasons = results.read_reasons(HERE / "reasons.tsv")
    chosen = list(fetched(kinds) if runs else there(kinds))
    for suite in chosen if runs else ():
        suite.options, suite.reasons = options.options, reasons
        for file in filter(suite.has, files):
            begin = time.monotonic()
            unit = suite.run_all(file, options.again)
            tests, stock, module, same, differ, left = results.counts_of(unit)
            print(f"{suite.kind} {file}: {tests} tests, {stock} fail with the stock server, "
                  f"{module} only with the module; {same} images, {differ} differ, {left} not "
                  f"compared; {time.monotonic() - begin:.0f} s", flush=True)
    units = [s.unit(f) for s in chosen for f in files if s.has(f) and s.is_complete(f)]
    found = results.findings(units, reasons)
    if options.page:
        versions = {(s.kind, (s.source / "debian-version").read_text().strip()) for s in chosen}
        (HERE / "RESULTS.md").write_text(results.page(units, found, versions))
    else:
        report(found)
    return 1 if any(finding.kind == "new" for finding in found) else 0


if __name__ == "__main__":
    sys.exit(main())
