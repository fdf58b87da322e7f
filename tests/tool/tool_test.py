#!/usr/bin/env python3
"""Runs the tool `perdix` as a user would: every command, its exit status, its output, its messages.

tests/tool/tool_test.py PATH_OF_PERDIX [unittest arguments]
"""

import fcntl
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

TOOL = None
SEED = 20240501
PATIENCE = 300  # seconds, after which what has not come will not: far more than any command takes


class ToolTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="perdix-tool-test-")
        self.addCleanup(scratch.cleanup)
        self.directory = Path(scratch.name)
        self.pool = self.path("test.pool")

    def path(self, name):
        return str(self.directory / name)

    def write(self, name, content):
        path = self.path(name)
        mode = "wb" if isinstance(content, bytes) else "w"
        with open(path, mode) as file:
            file.write(content)
        return path

    def run_tool(self, *arguments, stdin=b"", status=0):
        """Runs the tool; the exit status must be the given one. Returns the finished process."""
        done = subprocess.run([TOOL, *arguments], input=stdin, capture_output=True,
                              timeout=PATIENCE)
        self.assertEqual(done.returncode, status, f"perdix {arguments}: {done.stderr!r}")
        return done

    def output(self, *arguments, stdin=b""):
        return self.run_tool(*arguments, stdin=stdin).stdout

    def error(self, *arguments, stdin=b"", status=2):
        """The one line on standard error of a command that fails."""
        done = self.run_tool(*arguments, stdin=stdin, status=status)
        message = done.stderr.decode()
        self.assertTrue(message.startswith("perdix: "), message)
        self.assertEqual(message.count("\n"), 1, f"more than one line: {message}")
        return message

    def create(self):
        self.output("create", self.pool)

    def indexes(self):
        return [i["name"] for i in json.loads(self.output("info", self.pool, "--json"))["indexes"]]


class Help(ToolTest):
    COMMANDS = "create load get put del incr scan dump info check drop engines elf".split()

    def test_lists_commands_and_exit_status(self):
        text = self.output("--help").decode()
        for command in self.COMMANDS:
            self.assertIn(f"\n  {command} ", text)
        self.assertIn("Exit status", text)

    def test_every_command_shows_examples(self):
        for command in self.COMMANDS:
            text = self.output(command, "--help").decode()
            self.assertIn(f"perdix {command}", text)
            self.assertIn("Example", text)

    def test_version(self):
        self.assertRegex(self.output("--version").decode(), r"^perdix \d+\.\d+\.\d+\n$")

    def test_wrong_usage_names_the_help(self):
        self.assertIn("perdix --help", self.error())
        self.assertIn("perdix", self.error("frobnicate"))
        self.assertIn("perdix get --help", self.error("get", self.pool))
        self.assertIn("perdix scan --help", self.error("scan", self.pool, "i", "--limit", "many"))


class Engines(ToolTest):
    DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "options.md"

    def test_the_table_of_the_documentation_is_theirs(self):
        lines = []
        for family in json.loads(self.output("engines", "--json")):
            lines += ["", "## " + ", ".join(f"`{engine}`" for engine in family["engines"]), "",
                      "| option | default | values | meaning |", "|---|---|---|---|"]
            lines += [f"| `{o['name']}` | `{o['default']}` | {o['range'] or o['type']} "
                      f"| {o['meaning']} |" for o in family["options"]]
        table = "\n".join(lines) + "\n"
        self.assertTrue(self.DOCUMENT.read_text().endswith(table),
                        f"the end of {self.DOCUMENT} should be:\n{table}")

    def test_shows_each_option_in_a_line(self):
        text = self.output("engines").decode()
        self.assertRegex(text, r"(?m)^cceh\n(  .*\n)*  segment_bytes +16320 +a multiple of 64")
        self.assertRegex(text, r"(?m)^tips:hash, tips:btree, .*tips:art.*\n(  .*\n)*  min_workers ")


class Create(ToolTest):
    def test_creates_a_private_file(self):
        self.assertIn(b"created", self.output("create", self.pool))
        self.assertEqual(stat.S_IMODE(os.stat(self.pool).st_mode), 0o600)

    def test_takes_sizes_and_durability(self):
        self.output(
            "create", self.pool, "--size", "32M", "--max-size", "1GiB", "--durability", "process"
        )
        facts = json.loads(self.output("info", self.pool, "--json"))
        self.assertEqual(facts["durability"], "process")
        self.assertEqual(facts["indexes"], [])

    def test_refuses_a_file_that_is_there(self):
        path = self.write("test.pool", "precious")
        self.error("create", path)
        self.assertEqual(Path(path).read_text(), "precious")

    def test_refuses_bad_options_and_paths(self):
        self.error("create", self.pool, "--size", "big")
        self.error("create", self.pool, "--durability", "eternal")
        self.error("create", self.path("no/such/directory/test.pool"))
        self.assertFalse(os.path.exists(self.pool))


class Points(ToolTest):
    def setUp(self):
        super().setUp()
        self.create()

    def test_put_get_del(self):
        self.output("put", self.pool, "words", "pear", "green")
        self.assertEqual(self.output("get", self.pool, "words", "pear"), b"green\n")
        self.output("put", self.pool, "words", "pear", "yellow")
        self.assertEqual(self.output("get", self.pool, "words", "pear"), b"yellow\n")
        self.output("del", self.pool, "words", "pear")
        self.error("get", self.pool, "words", "pear", status=1)
        self.error("del", self.pool, "words", "pear", status=1)

    def test_numbers(self):
        spec = ["--keys", "u64", "--values", "u64"]
        top = str(2**64 - 1)
        self.output("put", self.pool, "n", "0", top, *spec)
        self.output("put", self.pool, "n", top, "0")
        self.assertEqual(self.output("get", self.pool, "n", "0"), top.encode() + b"\n")
        self.assertEqual(self.output("get", self.pool, "n", top), b"0\n")
        for bad in ("x", "", "1.5", str(2**64)):
            self.assertIn("number", self.error("get", self.pool, "n", bad))
        self.error("get", self.pool, "n", "--", "-1")

    def test_incr(self):
        self.assertEqual(self.output("incr", self.pool, "n", "hits", "--values", "u64"), b"1\n")
        self.assertEqual(self.output("incr", self.pool, "n", "hits", "41"), b"42\n")
        self.assertEqual(self.output("incr", self.pool, "n", "--", "hits", "-42"), b"0\n")
        self.assertIn("nothing was changed", self.error("incr", self.pool, "n", "--", "hits", "-1"))
        self.output("incr", self.pool, "n", "hits", "18446744073709551615")
        self.error("incr", self.pool, "n", "hits")
        self.assertEqual(self.output("get", self.pool, "n", "hits"), b"18446744073709551615\n")

    def test_incr_of_digits(self):
        self.output("put", self.pool, "words", "k", "99")
        self.assertEqual(self.output("incr", self.pool, "words", "k"), b"100\n")
        self.assertEqual(self.output("get", self.pool, "words", "k"), b"100\n")
        self.output("put", self.pool, "words", "k", "ten")
        self.error("incr", self.pool, "words", "k")
        self.assertEqual(self.output("get", self.pool, "words", "k"), b"ten\n")

    def test_odd_keys_are_taken_as_they_are(self):
        for key in ("", " ", "a\tb", "line\nbreak", "back\\slash", "naïve", "--", "#"):
            self.output("put", self.pool, "odd", "--", key, f"value of {key!r}")
            self.output("get", self.pool, "odd", "--", key)

    def test_output_of_binary_values(self):
        self.output("put", self.pool, "blobs", "--hex", "00ff", "0a09ff41")
        self.assertEqual(self.output("get", self.pool, "blobs", "--hex", "00ff"), b"0a09ff41\n")
        self.output("put", self.pool, "blobs", "--hex", "6b", "0a09ff41")
        self.assertEqual(self.output("get", self.pool, "blobs", "k"), b"\\n\\t\\xffA\n")
        self.assertEqual(self.output("get", self.pool, "blobs", "k", "--raw"), b"\n\t\xffA")
        self.error("get", self.pool, "blobs", "--hex", "0")

    def test_key_sizes(self):
        longest = "k" * 65535
        self.output("put", self.pool, "long", longest, "v")
        self.assertEqual(self.output("get", self.pool, "long", longest), b"v\n")
        self.assertIn(
            "65535", self.error("put", self.pool, "long", longest + "k", "v").replace(",", "")
        )

    def test_options_of_an_index(self):
        put = ("put", self.pool, "table", "k", "v", "--engine", "cceh")
        self.output(*put, "--option", "segment_bytes=1K", "--option", "lazy_depth=3")
        self.assertEqual(self.output("get", self.pool, "table", "k"), b"v\n")
        for option, told in (("media_unit=64", "the engine cceh has no option 'media_unit'"),
                             ("segment_bytes=100", "segment_bytes is 100; it must be a multiple"),
                             ("segment_bytes=some", "segment_bytes is 'some'"),
                             ("segment_bytes", "is not NAME=VALUE"), ("x= --option x=", "twice")):
            self.assertIn(told, self.error(*put, "--option", *option.split()))
            refused = ("put", self.pool, "new", "k", "v", "--engine", "cceh", "--option")
            self.assertIn(told, self.error(*refused, *option.split()))
        self.error("get", self.pool, "new", "k")  # nothing was created

    def test_kinds_of_an_index_stay(self):
        self.output("put", self.pool, "n", "1", "2", "--keys", "u64")
        self.error("put", self.pool, "n", "1", "2", "--keys", "bytes")
        self.error("put", self.pool, "other", "1", "2", "--engine", "nonesuch")

    def test_missing_things(self):
        self.error("get", self.path("none.pool"), "words", "k")
        self.error("get", self.pool, "none", "k")
        self.error("del", self.pool, "none", "k")
        self.error("put", self.pool, "", "k", "v")
        self.error("put", self.pool, "n" * 128, "k", "v")


class Failures(ToolTest):
    def test_leave_no_index(self):
        self.create()
        rows = self.write("rows.csv", "k,v\n1,x\n")
        for command in (("put", self.pool, "i", "abc", "1", "--keys", "u64"),
                        ("put", self.pool, "i", "k" * 65536, "v"),
                        ("incr", self.pool, "i", "--", "hits", "-1"),
                        ("load", self.pool, "i", rows, "--values", "u64"),
                        ("load", self.pool, "i", rows, "--key-column", "3")):
            message = self.error(*command)
            self.assertEqual(self.indexes(), [], message)
            self.assertEqual("load" in command, "(nothing was stored)" in message, message)
        self.output("load", self.pool, "i", rows, "--header", "--keys", "u64")
        self.error("put", self.pool, "i", "abc", "1")
        self.assertEqual(self.output("get", self.pool, "i", "1"), b"x\n")


class Load(ToolTest):
    def setUp(self):
        super().setUp()
        self.create()

    def load(self, content, *options, name="rows.tsv"):
        return self.output("load", self.pool, "rows", self.write(name, content), *options).decode()

    def dump(self, *options):
        return self.output("dump", self.pool, "rows", *options)

    def test_tsv(self):
        self.assertIn("2 rows", self.load("b\t2\na\t1\textra\n"))
        self.assertEqual(self.dump("--no-header"), b"a\t1\nb\t2\n")

    def test_csv(self):
        self.load('key,value\n"a,b","say ""hi"""\n', "--header", name="rows.csv")
        self.assertEqual(self.dump("--no-header"), b'a,b\tsay "hi"\n')

    def test_columns_and_kinds(self):
        self.load("x\t7\ny\t8\n", "--key-column", "2", "--value-column", "1", "--keys", "u64")
        self.assertEqual(self.dump("--no-header"), b"7\tx\n8\ty\n")

    def test_line_numbers_as_values(self):
        self.load("pear\n\napple\n", "--value-column", "0", "--values", "u64")
        self.assertEqual(self.dump("--no-header"), b"apple\t3\npear\t1\n")

    def test_standard_input(self):
        self.output("load", self.pool, "rows", "-", stdin=b"k\tv\n")
        self.assertEqual(self.dump("--no-header"), b"k\tv\n")

    def test_escapes(self):
        self.load("a\\tb\t\\x00\\\\\n")
        self.assertEqual(self.dump("--no-header"), b"a\\tb\t\\x00\\\\\n")
        self.output("drop", self.pool, "rows")
        self.load("C:\\dir\tx\n", "--plain")
        self.assertEqual(self.output("get", self.pool, "rows", "C:\\dir"), b"x\n")

    def test_empty_file(self):
        self.assertIn("0 rows", self.load(""))
        self.assertIn("0 rows", self.load("\n\n"))

    def test_again_replaces(self):
        self.load("a\t1\n")
        self.load("a\t2\n")
        self.assertEqual(self.dump("--no-header"), b"a\t2\n")

    def test_bad_rows_name_their_line(self):
        cases = [
            ("a\t1\nb\n", [], ":2: "),
            ("a\t1\n\nb\\q\t2\n", [], ":3: "),
            ("1\tx\n2\ty\nthree\tz\n", ["--keys", "u64"], ":3: "),
            ("k" * 65536 + "\tx\n", [], ":1: "),
            (b"a\t1\nb\x00c\t2\n", [], ":2: "),
            (b"\x7fELF\x02\x01\x01\x00\x00\x00", [], ":1: "),
        ]
        for content, options, expected in cases:
            path = self.write("bad.tsv", content)
            self.assertIn(
                f"bad.tsv{expected}", self.error("load", self.pool, "bad", path, *options)
            )
            self.output("drop", self.pool, "bad") if "bad" in self.indexes() else None

    def test_bad_csv_names_its_line(self):
        for content, line in (('a,b\n"open,1\n', 2), ('a,b\nc,d\n"x"y,1\n', 3)):
            path = self.write("bad.csv", content)
            self.assertIn(f"bad.csv:{line}: ", self.error("load", self.pool, "rows", path))

    def test_rows_before_a_bad_one_are_in(self):
        path = self.write("bad.tsv", "a\t1\nb\t2\nc\n")
        self.assertIn("2 rows", self.error("load", self.pool, "rows", path))
        self.assertEqual(self.dump("--no-header"), b"a\t1\nb\t2\n")

    def test_missing_file_and_pool(self):
        self.error("load", self.pool, "rows", self.path("none.tsv"))
        self.error("load", self.path("none.pool"), "rows", self.write("rows.tsv", "a\t1\n"))
        self.error("load", self.pool, "rows", str(self.directory))

    def test_endless_garbage_ends(self):
        self.assertIn("NUL", self.error("load", self.pool, "rows", "/dev/zero"))

    def test_progress_can_be_asked_for(self):
        path = self.write("rows.tsv", "a\t1\n")
        self.run_tool("load", self.pool, "rows", path, "--progress")

    def test_interrupt_leaves_the_acknowledged_rows(self):
        process = subprocess.Popen(
            [TOOL, "load", self.pool, "rows", "-"], stdin=subprocess.PIPE, stderr=subprocess.PIPE
        )
        rows = "".join(f"key{i:06}\tvalue\n" for i in range(5000)).encode()
        process.stdin.write(rows)
        process.stdin.write(b"cut off")
        process.stdin.flush()
        wait_until_read(process)
        process.send_signal(signal.SIGINT)
        message = process.stderr.read().decode()
        self.assertEqual(process.wait(timeout=PATIENCE), 2)
        process.stdin.close()
        process.stderr.close()
        self.assertIn("rows were acknowledged", message)
        count = int(message.split("interrupted; ")[1].split(" ")[0].replace(",", ""))
        pairs = self.dump("--no-header").splitlines()
        self.assertEqual(len(pairs), count)
        self.assertEqual(pairs, rows.splitlines()[:count])


def unread(pipe):
    """Bytes in a pipe that its reader has not taken yet."""
    import array
    import termios

    size = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, size)
    return size[0]


def wait_until_read(process):
    """Returns when a process has taken all that was written to its standard input."""
    end = time.monotonic() + PATIENCE
    while (left := unread(process.stdin.fileno())) > 0:
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            raise AssertionError(f"{process.args} has left {left} bytes of its input unread; "
                                 f"its status was {process.poll()}")
        time.sleep(0.01)


class ScanAndDump(ToolTest):
    def setUp(self):
        super().setUp()
        self.create()

    def test_scan(self):
        rows = "".join(
            f"{w}\t{i}\n" for i, w in enumerate(["pea", "pear", "peat", "plum", "apple"])
        )
        self.output("load", self.pool, "w", "-", stdin=rows.encode())
        scan = lambda *options: self.output("scan", self.pool, "w", *options)
        self.assertEqual(scan(), b"apple\t4\npea\t0\npear\t1\npeat\t2\nplum\t3\n")
        self.assertEqual(scan("--prefix", "pea", "--keys-only"), b"pea\npear\npeat\n")
        self.assertEqual(scan("--from", "peaz", "--keys-only"), b"plum\n")
        self.assertEqual(scan("--from", "peas", "--prefix", "pea", "--keys-only"), b"peat\n")
        self.assertEqual(scan("--limit", "2", "--keys-only"), b"apple\npea\n")
        self.assertEqual(scan("--limit", "0"), b"")
        self.assertEqual(scan("--prefix", "706c", "--hex"), b"706c756d\t33\n")
        self.assertEqual(scan("--prefix", "zebra"), b"")
        keys = lambda *options: scan("--keys-only", *options).decode().split()
        self.assertEqual(keys("--reverse"), ["plum", "peat", "pear", "pea", "apple"])
        self.assertEqual(keys("--from", "pea", "--to", "peat"), ["pea", "pear"])
        self.assertEqual(keys("--from", "pea", "--to", "peat", "--reverse"), ["pear", "pea"])
        self.assertEqual(keys("--prefix", "pea", "--reverse"), ["peat", "pear", "pea"])
        self.assertEqual(keys("--prefix", "pea", "--reverse", "--limit", "1"), ["peat"])
        self.assertEqual(keys("--prefix", "pb", "--reverse"), [])
        self.assertEqual(keys("--prefix", "pea", "--to", "pear", "--reverse"), ["pea"])
        self.assertEqual(keys("--reverse", "--limit", "0"), [])
        removed = self.output("del", self.pool, "w", "--range", "pea", "pez")
        self.assertEqual(removed, b"3 keys removed\n")
        self.assertEqual(keys(), ["apple", "plum"])
        self.error("del", self.pool, "w")

    def test_scan_of_numbers(self):
        self.output(
            "load", self.pool, "n", "-", "--keys", "u64", stdin=b"10\tten\n9\tnine\n300\tmany\n"
        )
        self.assertEqual(
            self.output("scan", self.pool, "n", "--from", "10"), b"10\tten\n300\tmany\n"
        )
        self.error("scan", self.pool, "n", "--prefix", "1")
        self.error("scan", self.pool, "n", "--from", "ten")

    def test_reader_that_stops_early_is_no_error(self):
        rows = "".join(f"key{i:06}\t{'v' * 50}\n" for i in range(20000)).encode()
        self.output("load", self.pool, "w", "-", stdin=rows)
        pipeline = f"set -o pipefail; {TOOL} dump {self.pool} w | head -n 1"
        done = subprocess.run(["bash", "-c", pipeline], capture_output=True,
                              timeout=PATIENCE)
        self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_full_disk_is_an_error(self):
        self.output("put", self.pool, "w", "k", "v")
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [TOOL, "dump", self.pool, "w"], stdout=full, stderr=subprocess.PIPE,
                timeout=PATIENCE
            )
        self.assertEqual(done.returncode, 2)

    def random_bytes(self, generator):
        special = [
            b"\\",
            b"\t",
            b"\n",
            b"\r",
            b"\x00",
            b"#",
            b"\xff",
            "é".encode(),
            b"\xe2\x82",
            b",",
            b'"',
            b"x41",
        ]
        parts = [
            (
                generator.choice(special)
                if generator.random() < 0.5
                else generator.randbytes(generator.randrange(4))
            )
            for _ in range(generator.randrange(6))
        ]
        return b"".join(parts)

    def test_any_bytes_survive_dump_and_load(self):
        generator = random.Random(SEED)
        pairs = {self.random_bytes(generator): self.random_bytes(generator) for _ in range(3000)}
        pairs[b"#perdix-dump"] = b"1"
        hex_rows = b"".join(
            k.hex().encode() + b"\t" + v.hex().encode() + b"\n" for k, v in pairs.items()
        )
        self.output("load", self.pool, "a", "-", "--hex", stdin=hex_rows)
        for options in ([], ["--no-header"]):
            dump = self.output("dump", self.pool, "a", *options)
            self.output("load", self.pool, "b", "-", stdin=dump)
            self.assertEqual(self.output("dump", self.pool, "b", *options), dump, f"seed {SEED}")
            shown = self.output("scan", self.pool, "b", "--hex").splitlines()
            expected = sorted((k.hex() + "\t" + v.hex()).encode() for k, v in pairs.items())
            self.assertEqual(sorted(shown), expected, f"seed {SEED}")
            self.output("drop", self.pool, "b")

    def test_kinds_survive_dump_and_load(self):
        for keys in ("u64", "bytes"):
            for values in ("u64", "bytes"):
                name = keys + values
                self.output(
                    "load",
                    self.pool,
                    name,
                    "-",
                    "--keys",
                    keys,
                    "--values",
                    values,
                    stdin=b"7\t8\n70\t80\n",
                )
                dump = self.output("dump", self.pool, name)
                copy = self.path(name)
                self.output("create", copy)
                self.output("load", copy, "copy", "-", stdin=dump)
                self.assertEqual(self.output("dump", copy, "copy"), dump)

    def test_a_dump_that_was_cut_off_is_noticed(self):
        rows = b"".join(b"key%03d\tvalue number %d\n" % (i, i * i) for i in range(300))
        self.output("load", self.pool, "a", "-", stdin=rows)
        dump = self.output("dump", self.pool, "a")
        lines = dump.splitlines(keepends=True)
        ends = [len(dump) - len(lines[-1]), len(b"".join(lines[:150])), len(lines[0]), 0]
        for end in [*ends, *(end + 9 for end in ends[1:3]), ends[0] - 1]:
            copy = self.path(f"cut at {end}")
            self.output("create", copy)
            self.error("load", copy, "a", "-", stdin=dump[:end])
            if end < len(lines[0]) + len(lines[1]):
                continue  # no row was whole, so there is no index
            stored = self.output("dump", copy, "a", "--no-header").splitlines(keepends=True)
            self.assertEqual(stored, lines[1 : 1 + len(stored)], "rows are whole, in order")
        for wrong in (dump + b"more\t1\n", dump.replace(lines[7], b""), dump[:-2] + b"\n"):
            self.error("load", self.pool, "b", "-", stdin=wrong)

    def test_dump_of_a_later_version_is_refused(self):
        self.error("load", self.pool, "x", "-", stdin=b"#perdix-dump\t9\tsptree\tu64\tu64\n")


class InfoCheckDrop(ToolTest):
    def setUp(self):
        super().setUp()
        self.create()
        self.output("load", self.pool, "words", "-", "--values", "u64", stdin=b"pear\t1\nplum\t2\n")

    def test_info(self):
        text = self.output("info", self.pool, "--stats").decode()
        for expected in ("durability", "domain", "words", "sptree", "bytes", "u64", "DRAM"):
            self.assertIn(expected, text)
        facts = json.loads(self.output("info", self.pool, "--stats", "--json"))
        self.assertEqual(facts["indexes"][0]["name"], "words")
        self.assertEqual(facts["indexes"][0]["pairs"], 2)
        self.assertTrue(facts["was_clean"] in (True, False))

    def test_info_counts_all_pairs_of_an_index_that_was_just_opened(self):
        rows = b"".join(b"%d\t%d\n" % (i * 7919, i) for i in range(20000))
        self.output("load", self.pool, "many", "-", "--keys", "u64", "--values", "u64", stdin=rows)
        index = json.loads(self.output("info", self.pool, "--stats", "--json"))["indexes"][0]
        self.assertEqual((index["name"], index["pairs"], index["resumed"]), ("many", 20000, 1))
        self.assertGreater(index["leaves"], 20000 // 128)
        self.assertGreater(index["recovery_seconds"], 0)
        self.assertGreater(index["resumption_seconds"], 0)
        text = self.output("info", self.pool, "--stats").decode()
        self.assertRegex(text, r"opened in +resumed\n")
        self.assertRegex(text, r"many .* 20,000 .* 100 % in [0-9.]+ [num]?s\n")

    def test_info_tells_what_tips_has_done(self):
        rows = b"".join(b"%d\t%d\n" % (i * 7919, i) for i in range(2000))
        self.output("load", self.pool, "plugged", "-", "--engine", "tips:btree", "--keys", "u64",
                    "--values", "u64", stdin=rows)
        facts = json.loads(self.output("info", self.pool, "--stats", "--json"))["indexes"]
        by_name = {index["name"]: index for index in facts}
        self.assertNotIn("tips", by_name["words"])
        tips = by_name["plugged"]["tips"]
        self.assertEqual(by_name["plugged"]["pairs"], 2000)
        self.assertEqual((tips["cache_hits"], tips["waiting"]), (0, 0))
        self.assertGreaterEqual(tips["workers"], 1)
        self.assertGreaterEqual(tips["workers_used"], tips["replays"])
        text = self.output("info", self.pool, "--stats").decode()
        self.assertRegex(text, r"plugged .* 2,000 .*\n +cache: 0 hits, .*; replay: .*; logs: ")

    def test_the_further_indexes_of_tips_are_there(self):
        for engine in ("tips:bst", "tips:art", "tips:clht", "tips:lfhash", "tips:lfbst"):
            self.output("put", self.pool, engine, "k", "v", "--engine", engine)
            self.assertEqual(self.output("get", self.pool, engine, "k"), b"v\n")
        self.assertEqual(json.loads(self.output("check", self.pool, "--json"))["unknown"], [])
        self.output("drop", self.pool, "tips:art")

    def test_names_cannot_steer_a_terminal(self):
        name = "a\u009b2J\u202e"  # the control characters that names may hold
        self.output("load", self.pool, name, "-", stdin=b"k\tv\n")
        shown = [self.output("info", self.pool), self.output("info", self.pool, "--json")]
        shown.append(self.error("drop", self.pool, name + "?").encode())
        shown.append(self.error("get", self.pool, name, "absent", status=1).encode())
        shown.append(self.output("load", self.pool, name, "-", stdin=b"l\tv\n"))
        for text in shown:
            for code in "\u009b\u202e":
                self.assertNotIn(code, text.decode())
        self.assertIn(b"a\\xc2\\x9b2J\\xe2\\x80\\xae", shown[0])

    def test_check(self):
        self.assertIn(b"sound", self.output("check", self.pool))
        facts = json.loads(self.output("check", self.pool, "--json"))
        self.assertEqual((facts["sound"], facts["problems"], facts["pairs"]), (True, [], 2))
        self.assertFalse(facts["stores_may_be_missing"])

    def test_check_of_a_copy_that_was_taken_alive(self):
        copy = self.path("copy")
        with self.owner_of_the_pool() as owner:
            shutil.copyfile(self.pool, copy)
            self.end(owner)
        self.assertIn("copy of a pool", self.error("get", copy, "words", "pear"))
        shown = self.output("check", copy).decode()
        self.assertIn("pairs may be missing", shown)
        self.assertIn("sound", shown)
        self.output("get", copy, "words", "pear")
        self.assertNotIn(b"missing", self.output("check", copy))

    def test_drop(self):
        self.output("drop", self.pool, "words")
        self.error("get", self.pool, "words", "pear")
        self.error("drop", self.pool, "words")
        self.assertIn(b"sound", self.output("check", self.pool))

    def test_files_that_are_no_pool(self):
        for name, content in (
            ("empty", b""),
            ("text", b"hello\n" * 1000),
            ("noise", os.urandom(1 << 20)),
        ):
            path = self.write(name, content)
            for command in (
                ["info", path],
                ["check", path],
                ["get", path, "i", "k"],
                ["drop", path, "i"],
            ):
                self.assertIn(name, self.error(*command))
            self.assertEqual(Path(path).read_bytes(), content, "a foreign file was changed")
        for command in (["info"], ["check"]):
            self.error(*command, self.path("none"))
            self.error(*command, str(self.directory))

    def owner_of_the_pool(self):
        """A process that has the pool open and waits."""
        owner = subprocess.Popen(
            [TOOL, "load", self.pool, "other", "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
        )
        owner.stdin.write(b"a\t1\n")
        owner.stdin.flush()
        wait_until_read(owner)  # it opens the pool first
        return owner

    def end(self, owner):
        owner.stdin.close()
        self.assertEqual(owner.wait(timeout=PATIENCE), 0)

    def test_pool_in_use(self):
        with self.owner_of_the_pool() as owner:
            for command in (
                ["info", self.pool],
                ["check", self.pool],
                ["get", self.pool, "words", "pear"],
            ):
                self.error(*command)
            self.end(owner)
        self.assertEqual(self.output("get", self.pool, "words", "pear"), b"1\n")


class Bench(ToolTest):
    """`perdix bench` runs the program perdix-bench; here a script stands for it."""

    def setUp(self):
        super().setUp()
        self.tool = self.path("perdix")  # a copy, with nothing beside it
        shutil.copy(TOOL, self.tool)
        self.search = self.directory / "search"
        self.search.mkdir()

    def install(self, folder, says):
        program = Path(folder) / "perdix-bench"
        program.write_text(f"#!/bin/sh\necho {says} \"$@\"\nexit 7\n")
        program.chmod(0o755)

    def bench(self, *options):
        return subprocess.run(
            [self.tool, "bench", *options],
            capture_output=True,
            text=True,
            timeout=300,
            env=os.environ | {"PATH": f"{self.search}:/usr/bin:/bin"},
        )

    def test_says_how_to_get_the_program(self):
        done = self.bench("--records", "5")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("perdix-bench", done.stderr)
        self.assertIn("make install-bench", done.stderr)

    def test_hands_everything_on(self):
        self.install(self.search, "found")
        for options in (["--help"], ["--records", "5", "-x", "--", "a b"], []):
            done = self.bench(*options)
            self.assertEqual(done.returncode, 7, done.stderr)
            self.assertEqual(done.stdout.strip(), " ".join(["found", *options]))

    def test_takes_the_program_beside_it_first(self):
        self.install(self.search, "found")
        self.install(self.directory, "beside")
        self.assertEqual(self.bench().stdout, "beside\n")

    def test_a_program_that_can_not_be_run_is_an_error(self):
        self.install(self.search, "found")
        (self.search / "perdix-bench").write_text("#!/no/such/interpreter\n")
        self.assertEqual(self.bench().returncode, 2)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()
