"""Tests of what runs the servers' own suites (bindings/valkey/upstream), without these suites.

A little suite stands for them. Images are compared with real servers, and each kind of difference
is made on purpose.
"""

import os
import shutil
import signal
import sys
import unittest
from pathlib import Path

import servers

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "upstream"))
import images  # noqa: E402: only there after the line above
import results  # noqa: E402
import run  # noqa: E402
import suites  # noqa: E402

TOOL = Path(os.environ.get("PERDIX_TOOL", servers.ROOT / "build/valkey/bin/perdix"))


class ResultsTest(unittest.TestCase):
    """Results are read, joined and explained. No server runs."""

    def test_words_of_a_line(self):
        for word in ("", "a\tb", "a\\tb", "\\", "\\\\n\n", "tab\t\r\nend\\"):
            self.assertEqual(results.unescaped(results.escaped(word)), word)
            self.assertNotIn("\t", results.escaped(word))
            self.assertNotIn("\n", results.escaped(word))

    def test_worst_run_counts(self):
        lines = [["ok", "f", "a", ""], ["err", "f", "a", "why"], ["ok", "f", "a", ""]]
        lines += [["ignore", "f", "", "a tag"], ["skip", "f", "b", ""]]
        found = results.outcomes(lines)
        self.assertEqual(found, {"a": results.Outcome("err", "why"), "b": results.Outcome("skip")})

    def test_incomplete_file(self):
        path = Path(self.enterContext(_folder())) / "results"
        self.assertEqual(results.read_lines(path), ([], False))
        results.write_line(path, "ok", "f", "a", "")
        self.assertEqual(results.read_lines(path), ([["ok", "f", "a", ""]], False))
        results.write_line(path, "done")
        self.assertEqual(results.read_lines(path), ([["ok", "f", "a", ""]], True))

    def test_what_fails_with_the_module_only(self):
        unit = self.unit(stock={"both": "err", "one": "ok", "none": "ok", "lost": "ok", "at": "ok"},
                         module={"both": "err", "one": "err", "none": "ok", "at": "err"},
                         again={"both": "err", "one": "err", "none": "ok", "at": "ok"})
        self.assertEqual(unit.suspects(), ["at", "one"])
        self.assertEqual(unit.with_the_module_only(), ["one"])
        self.assertEqual(unit.disturbed(), ["at"])
        self.assertEqual(unit.unreached(), ["lost"])

    def test_file_that_was_left(self):
        lines = [["testing", "f", "a", "a"], ["ok", "f", "a", "a"], ["testing", "f", "b", "b"]]
        unit = self.unit(stock={"a": "ok", "b": "ok", "c": "ok", "d": "skip"}, module={}, again={})
        unit.module = results.outcomes(lines)
        found = [(f.test, f.what) for f in results.findings([unit], [])]
        self.assertEqual(found, [("b", "failure"), ("1 tests", "not reached")])
        self.assertEqual(results.counts_of(unit)[2], 2)

    def test_left_out(self):
        unit = self.unit(stock={"a": "ok", "b": "skip"}, module={"a": "skip", "b": "skip"},
                         again={})
        self.assertEqual([(f.test, f.what) for f in results.findings([unit], [])],
                         [("a", "left out")])
        reasons = [results.Reason("redis-*", "unit/x", "a", what, "limit", "long")
                   for what in ("left out", "failure")]
        self.assertEqual(results.left_out(reasons, "redis-7", "unit/x"), ["a"])
        self.assertEqual(results.left_out(reasons, "redis-7", "unit/y"), [])
        self.assertEqual(results.left_out(reasons, "valkey-8", "unit/x"), [])

    def test_reasons(self):
        unit = self.unit(stock={"a [1]": "ok", "b": "ok"}, module={"a [1]": "err", "b": "err"},
                         again={"a [1]": "err", "b": "err"})
        unit.images = [("b", "differs", "less"), ("a [1]", "same", "3")]
        first = results.Reason("valkey-*,redis-7", "unit/*", "a [1]", "failure", "limit", "said")
        found = results.findings([unit], [first])
        self.assertEqual(
            [(f.test, f.what, f.kind) for f in found],
            [("a [1]", "failure", "limit"), ("b", "failure", "new"), ("b", "image", "new")])
        for wrong in ("redis-8", "redis-"):
            first.servers = wrong
            self.assertEqual(results.findings([unit], [first])[0].kind, "new")

    def test_page(self):
        unit = self.unit(stock={"a|b": "ok"}, module={"a|b": "err"}, again={"a|b": "err"})
        text = results.page([unit], results.findings([unit], []), {("redis-7", "7.0")})
        self.assertIn("| redis-7 | unit/x | 1 | 0 | 1 | 0 | 0 | 0 |", text)
        self.assertIn("| new | failure | `unit/x` | a\\|b | redis-7 | not known:", text)

    def test_reasons_of_the_project(self):
        for reason in results.read_reasons(HERE.parent / "upstream/reasons.tsv"):
            self.assertIn(reason.kind, results.KINDS)
            self.assertIn(reason.what, (*results.WHATS, "*"))
            self.assertTrue(reason.text)

    def test_version_of_a_suite(self):
        there = ["5:7.0.15-1~deb12u7", "8.1.1+dfsg1-3", "8.1.9-1", "9.1.2-1", "5:8.0.2-3"]
        self.assertEqual(suites.newest(there, "7.0.15"), "5:7.0.15-1~deb12u7")
        self.assertEqual(suites.newest(there, "8.1.8"), "8.1.1+dfsg1-3")
        self.assertEqual(suites.newest(there, "9.1.2"), "9.1.2-1")
        self.assertRaises(LookupError, suites.newest, there, "9.0.0")

    def unit(self, **runs):
        outcomes = {name: {test: results.Outcome(status) for test, status in run.items()}
                    for name, run in runs.items()}
        return results.Unit("redis-7", "unit/x", **outcomes)


def _folder():
    import tempfile

    return tempfile.TemporaryDirectory(prefix="perdix-upstream-")


class ChangedImages(images.Images):
    """Images in which commands have changed something since they were copied."""

    commands = ()

    def problem(self):
        found = super().problem()  # clears the copy for opening
        self.opened(lambda connection: [connection.call(*words) for words in self.commands])
        return found


class DamagedImages(images.Images):
    """Images whose last bytes that are in use are others."""

    def copy(self, pool, image):
        super().copy(pool, image)
        content = image.read_bytes()
        image.write_bytes(content.replace(b"a value that is long enough", b"x" * 27))


class ImagesTest(servers.ServerTest):
    """Images of a server's pool are compared with what the server shows."""

    def setUp(self):
        super().setUp()
        self.live = self.start()
        client = self.running.client
        client.set("string", "a value that is long enough to lie in the pool")
        client.set("expiring", "1", px=3600_000)
        client.rpush("list", "a", "b")
        client.xadd("stream", {"field": "value"}, id="1-1")
        client.xgroup_create("stream", "group", "0")
        client.select(3)
        client.hset("hash", mapping={"one": "1", "two": "2"})

    def start(self, name="server", mode="keyspace"):
        self.running = self.server(name, ("mode", mode), start=False)
        self.running.pool = self.running.folder / "perdix.pool"
        self.running.start()
        return images.Live(self.running.process.pid, self.running.port, self.running.folder)

    def images(self, kind=images.Images):
        return kind(servers.program(), servers.MODULE, TOOL, self.folder / "image")

    def changed(self, *commands):
        changing = self.images(ChangedImages)
        changing.commands = commands
        return changing.compare(self.live)

    def differs(self, text, *commands):
        verdict = self.changed(*commands)
        self.assertEqual(verdict.status, "differs", verdict)
        self.assertIn(text, verdict.detail)

    def test_same(self):
        self.assertEqual(self.images().compare(self.live), images.Verdict("same", "5"))
        self.assertEqual(self.changed().status, "same")
        self.assertEqual(list(self.folder.glob("image*")), [])

    def test_key_that_is_lost(self):
        self.differs("not in the image: db0 list", ("DEL", "list"))

    def test_key_of_another_database(self):
        self.differs("not in the image: db3 hash", ("SELECT", 3), ("DEL", "hash"))

    def test_key_too_many(self):
        self.differs("only in the image: db1 more", ("SELECT", 1), ("SET", "more", 1))

    def test_other_value(self):
        self.differs("another value in the image: db0 string", ("APPEND", "string", "."))
        self.differs("another value in the image: db0 list", ("RPUSH", "list", "c"))

    def test_result_in_a_hyperloglog(self):
        client = self.running.client
        client.select(3)
        client.pfadd("log", *range(100))
        client.pfcount("log")
        self.assertEqual(self.changed(("SELECT", 3), ("PFCOUNT", "log")).status, "same")
        self.differs("another value in the image: db3 log", ("SELECT", 3), ("PFADD", "log", "more"))

    def test_other_type(self):
        self.differs("another type in the image: db0 list", ("SET", "list", "c"))

    def test_expiry(self):
        self.differs("another time of expiry in the image: db0 expiring", ("PERSIST", "expiring"))
        self.differs("another time of expiry in the image: db0 expiring",
                     ("PEXPIRE", "expiring", 3500_000))

    def test_group_of_a_stream(self):
        self.differs("another groups or fields' times in the image: db0 stream",
                     ("XREADGROUP", "GROUP", "group", "reader", "STREAMS", "stream", ">"))

    @unittest.skipUnless(servers.KIND == "valkey-9", "only Valkey 9 has fields that expire")
    def test_expiry_of_a_field(self):
        self.differs("another groups or fields' times in the image: db3 hash", ("SELECT", 3),
                     ("HPEXPIRE", "hash", 3600_000, "FIELDS", 1, "one"))

    def test_key_whose_name_is_too_long(self):
        self.running.client.set("a" * (images.LONGEST_NAME + 1), 1)
        self.assertEqual(self.images().compare(self.live), images.Verdict("same", "5"))
        self.running.client.set("a" * images.LONGEST_NAME, 1)
        self.assertEqual(self.images().compare(self.live), images.Verdict("same", "6"))

    def test_many_keys(self):
        most, images.MOST_KEYS = images.MOST_KEYS, 2
        self.addCleanup(setattr, images, "MOST_KEYS", most)
        self.assertEqual(self.changed().status, "same")
        self.differs("db0 (4 keys)", ("APPEND", "string", "."))

    def test_damaged_image(self):
        verdict = self.images(DamagedImages).compare(self.live)
        self.assertEqual(verdict.status, "differs", verdict)

    def test_server_that_keeps_nothing(self):
        live = self.start("other", "tables")
        self.running.client.set("native", "1")
        verdict = self.images().compare(live)
        self.assertEqual(verdict, images.Verdict("differs", "not in the image: db0 native"))

    def test_server_that_is_stopped(self):
        self.running.process.send_signal(signal.SIGSTOP)
        self.addCleanup(self.running.process.send_signal, signal.SIGCONT)
        servers.wait_for(self.live.is_stopped, "the server stops")
        self.assertEqual(self.images().compare(self.live).status, "none")

    def test_server_that_asks_for_a_password(self):
        self.running.client.config_set("requirepass", "secret")
        verdict = self.images().compare(self.live)
        self.assertEqual(verdict.status, "none")
        self.assertIn("NOAUTH", verdict.detail)


class RunTest(servers.ServerTest):
    """The little suite runs with and without the module."""

    FILE = "unit/file"

    def setUp(self):
        super().setUp()
        source = self.folder / "source"
        (source / "tests/unit").mkdir(parents=True)
        shutil.copy(HERE / "little_suite.tcl", source / "tests/test_helper.tcl")
        shutil.copy(HERE / "little_suite_file.tcl", source / f"tests/{self.FILE}.tcl")
        suites.link_programs(servers.KIND, servers.program(), source / "src")
        self.suite = run.Suite(servers.KIND, servers.program(), source, servers.MODULE, TOOL,
                               self.folder / "results")

    def test_run(self):
        unit = self.suite.run_all(self.FILE)
        tests = {name: outcome.status for name, outcome in unit.stock.items()}
        fails = "fails with a module\t"
        self.assertEqual(tests, {"passes everywhere": "ok", "fails everywhere": "err", fails: "ok",
                                 "runs twice": "ok", "starts a server of its own": "ok"})
        self.assertEqual(unit.with_the_module_only(), [fails])
        self.assertIn("a module\tis loaded", unit.module[fails].message)
        compared = [(test, status) for test, status, _ in unit.images]
        self.assertEqual(compared, [
            ("passes everywhere", "same"), ("fails everywhere", "same"), (fails, "same"),
            ("runs twice", "same"), ("runs twice", "same"), ("starts a server of its own", "same")])
        self.assertEqual(results.counts_of(unit), (5, 1, 1, 6, 0, 0))

    def test_images_that_differ(self):
        class Emptied(ChangedImages):
            commands = (("DEL", "kept"),)

        self.suite.make_images = Emptied
        unit = self.suite.run_all(self.FILE)
        self.assertEqual({status for _, status, _ in unit.images}, {"differs"})
        self.assertEqual(dict(unit.differing())["starts a server of its own"],
                         "not in the image: db0 kept")
        found = results.findings([unit], [])
        self.assertEqual({finding.what for finding in found}, {"failure", "image"})

    def test_test_that_is_left_out(self):
        self.suite.reasons = [
            results.Reason("*", self.FILE, "passes everywhere", "left out", "limit", "long")]
        unit = self.suite.run_all(self.FILE)
        self.assertEqual(unit.stock["passes everywhere"].status, "ok")
        self.assertEqual(unit.left_out(), ["passes everywhere"])

    def test_goes_on_where_it_ended(self):
        first = self.suite.run_all(self.FILE)
        stock = self.suite.path(self.FILE, "stock")
        written = stock.stat().st_mtime_ns
        lines = self.suite.path(self.FILE, "module").read_text().splitlines(keepends=True)
        self.suite.path(self.FILE, "module").write_text("".join(lines[:-1]))  # not done
        self.assertEqual(self.suite.run_all(self.FILE), first)
        self.assertEqual(stock.stat().st_mtime_ns, written)

    def test_suite_that_does_not_run(self):
        (self.suite.source / f"tests/{self.FILE}.tcl").write_text("exit 1\n")
        with self.assertRaisesRegex(RuntimeError, "has run no test"):
            self.suite.run_all(self.FILE)


if __name__ == "__main__":
    unittest.main()
