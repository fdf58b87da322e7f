#!/usr/bin/env python3
"""Runs `perdix elf` as a user would: tables from files, queries compared with brute force, kills,
and messages.

tests/tool/elf_test.py PATH_OF_PERDIX [unittest arguments]
"""

import csv
import io
import json
import os
import random
import subprocess
import sys
import time
import unittest

import tool_test

SEED = 20260711
COLUMNS = "n:int32,l:int64,g:double,day:date,mode:string"
MODES = ["AIR", "REG AIR", "", "it's, \"quoted\"", "two\nlines", "SHIP"]


class ElfTest(tool_test.ToolTest):
    def setUp(self):
        super().setUp()
        self.create()
        self.random = random.Random(SEED)

    def random_row(self):
        pick = self.random
        year = pick.choice([1969, 1970, 1994])
        return [
            str(pick.randrange(-5, 6)),
            str(pick.randrange(-3, 4) * 2**40),
            str(pick.randrange(-8, 9) / 4),
            f"{year}-{pick.randrange(1, 13):02}-{pick.randrange(1, 29):02}",
            pick.choice(MODES),
        ]

    def csv(self, rows, header=None):
        text = io.StringIO()
        writer = csv.writer(text)
        if header:
            writer.writerow(header)
        writer.writerows(rows)
        return text.getvalue().encode()

    def build(self, rows, *options, name="t"):
        return self.output(
            "elf", "build", self.pool, name, "-", "--columns", COLUMNS, *options,
            stdin=self.csv(rows))

    def query(self, conditions, *options, name="t"):
        return self.output("elf", "query", self.pool, name, conditions, *options).decode()

    def tids(self, conditions):
        return sorted(int(line.split("\t")[0]) for line in self.query(conditions).splitlines()[1:])

    def wrong(self, *arguments, stdin=b""):
        return self.error("elf", *arguments, stdin=stdin)


class Queries(ElfTest):
    def expect(self, conditions, test):
        wanted = [tid for tid, row in enumerate(self.rows) if test(*row)]
        self.assertEqual(self.tids(conditions), wanted, conditions)
        self.assertEqual(self.query(conditions, "--count"), f"{len(wanted)}\n")

    def test_find_what_brute_force_finds(self):
        self.rows = [self.random_row() for _ in range(400)]
        self.assertIn(b"400 rows of 5 columns", self.build(self.rows))
        self.expect("", lambda *row: True)
        self.expect("n between -1 and 3 and mode = AIR",
                    lambda n, l, g, day, mode: -1 <= int(n) <= 3 and mode == "AIR")
        self.expect("l > -2199023255552 and g <= 0.5",
                    lambda n, l, g, day, mode: int(l) > -2**41 and float(g) <= 0.5)
        self.expect("day >= 1970-01-01 AND day < 1994-06-01",
                    lambda n, l, g, day, mode: "1970-01-01" <= day < "1994-06-01")
        self.expect("mode in ('REG AIR', '', 'two\nlines')",
                    lambda n, l, g, day, mode: mode in ("REG AIR", "", "two\nlines"))
        self.expect("mode prefix 'it''s'", lambda n, l, g, day, mode: mode.startswith("it's"))
        self.expect("n = 7", lambda *row: False)

    def test_show_rows_as_tsv(self):
        self.build([["1", "2", "0.5", "1969-12-31", "a\tb"]])
        self.assertEqual(self.query(""),
                         "tid\tn\tl\tg\tday\tmode\n0\t1\t2\t0.5\t1969-12-31\ta\\tb\n")
        self.assertEqual(self.query("", "--limit", "0"), "tid\tn\tl\tg\tday\tmode\n")

    def test_limit_and_explain(self):
        self.build([self.random_row() for _ in range(100)])
        self.assertEqual(len(self.query("", "--limit", "7").splitlines()), 8)
        plan = self.query("n between 1 and 3 and mode in (AIR, SHIP)", "--explain")
        self.assertIn("one walk", plan)
        self.assertIn("mode", plan)
        self.assertIn("probability", plan)

    def test_time_a_count(self):
        self.build([self.random_row() for _ in range(100)])
        count = self.query("n between 1 and 3", "--count")
        self.assertEqual(self.query("n between 1 and 3", "--time", "3"), count)
        self.wrong("query", self.pool, "t", "", "--time", "0")

    def test_say_where_conditions_are_wrong(self):
        self.build([self.random_row()])
        self.assertIn("position 3: one of =", self.wrong("query", self.pool, "t", "n ! 1"))
        self.assertIn("no column 'x'", self.wrong("query", self.pool, "t", "x = 1"))
        self.assertIn("no int32", self.wrong("query", self.pool, "t", "n = one"))
        self.assertIn("bounds cross", self.wrong("query", self.pool, "t", "n between 2 and 1"))


class Builds(ElfTest):
    def test_take_columns_by_name(self):
        text = self.csv([["x", "5", "skipped"], ["y", "6", ""]], ["mode", "n", "other"])
        path = self.write("rows.csv", text)
        self.output("elf", "build", self.pool, "t", path, "--header", "--columns",
                    "n:int32,mode:string", "--order", "mode")
        self.assertEqual(self.query("n = 6"), "tid\tn\tmode\n1\t6\ty\n")
        facts = json.loads(self.output("elf", "info", self.pool, "t", "--json"))
        self.assertEqual([c["dimension"] for c in facts["columns"]], [1, 0])
        self.assertEqual(facts["rows"], 2)

    def test_replace_rows_and_keep_them_after_an_error(self):
        self.build([self.random_row() for _ in range(20)])
        self.build([self.random_row() for _ in range(30)])
        self.assertEqual(self.query("", "--count"), "30\n")
        bad = self.csv([self.random_row(), self.random_row()[:4] + ["x"]]) + b"one,2,3,4,5\n"
        message = self.wrong("build", self.pool, "t", "-", "--columns", COLUMNS, stdin=bad)
        self.assertRegex(message, r"standard input:\d+: column 'n': 'one' is no int32")
        self.assertIn("nothing has changed", message)
        self.wrong("build", self.pool, "t", "-", "--columns", "n:int32", stdin=b"1\n")
        self.assertEqual(self.query("", "--count"), "30\n")

    def test_refuse_bad_input(self):
        rows = self.write("rows.csv", "1,2\n1\n")
        two = "a:int32,b:int32"
        self.assertIn("rows.csv:2:", self.wrong("build", self.pool, "t", rows, "--columns", two))
        self.assertIn("NAME:TYPE", self.wrong("build", self.pool, "t", rows, "--columns", "a"))
        self.assertIn("int64, double",
                      self.wrong("build", self.pool, "t", rows, "--columns", "a:text"))
        self.assertIn("names no column 'a'",
                      self.wrong("build", self.pool, "t", rows, "--header", "--columns", two))
        nan = self.write("nan.csv", "nan\n")
        self.assertIn("NaN", self.wrong("build", self.pool, "t", nan, "--columns", "a:double"))
        self.wrong("build", self.pool, "t", self.path("none.csv"), "--columns", two)
        self.wrong("query", self.pool, "none", "")

    def test_that_fail_leave_no_table(self):
        """Also those that fail at the table, when all rows are read."""
        for column in ("nonesuch", "b,b"):
            self.wrong("build", self.pool, "t", "-", "--columns", "a:int32,b:int32", "--order",
                       column, stdin=b"1,2\n")
            self.assertEqual(self.indexes(), [])
        self.output("elf", "build", self.pool, "t", "-", "--columns", "a:double", stdin=b"1.5\n")

    def test_refuse_a_name_that_is_there_twice(self):
        text = self.write("rows.csv", "a,b,a\n1,2,3\n")
        message = self.wrong("build", self.pool, "t", text, "--header", "--columns", "a:int32")
        self.assertIn("rows.csv:1: the first row names two columns 'a'", message)
        self.output("elf", "build", self.pool, "t", text, "--header", "--columns", "b:int32")

    def test_take_names_with_commas(self):
        text = self.write("rows.csv", '"a,""b"":",c\n1,x\n')
        self.output("elf", "build", self.pool, "t", text, "--header", "--columns",
                    '"a,""b"":":int32,c:string', "--order", 'c,"a,""b"":"')
        self.assertEqual(self.query(""), 'tid\ta,"b":\tc\n0\t1\tx\n')
        self.assertIn("no name in double quotes",
                      self.wrong("build", self.pool, "u", text, "--columns", '"a:int32'))

    def test_read_what_a_query_shows(self):
        self.build([["1", "2", "0.5", "1969-12-31", "a\tb\\ \n"],
                    ["2", "3", "4", "1994-01-01", ""]])
        shown = self.query("")
        path = self.write("shown.tsv", shown)
        self.output("elf", "build", self.pool, "u", path, "--header", "--columns", COLUMNS)
        self.assertEqual(self.query("", name="u"), shown)
        bad = self.write("bad.tsv", "\\q\n")
        self.assertIn("bad.tsv:1:",
                      self.wrong("build", self.pool, "v", bad, "--columns", "s:string"))

    def test_take_empty_lines_of_one_column(self):
        text = self.write("rows.csv", "s\na\n\nb\n")
        self.output("elf", "build", self.pool, "t", text, "--header", "--columns", "s:string")
        self.assertEqual(sorted(self.query("").splitlines()), ["0\ta", "1\t", "2\tb", "tid\ts"])
        self.output("elf", "build", self.pool, "u", "-", "--columns", "a:int32,b:int32",
                    stdin=b"1,2\n\n3,4\n")
        self.assertEqual(self.query("", "--count", name="u"), "2\n")

    def test_take_small_numbers_for_zero(self):
        text = self.write("rows.csv", "1e-400\n-1e-400\n5e-324\n")
        self.output("elf", "build", self.pool, "t", text, "--columns", "g:double")
        self.assertEqual(self.query("g = 0", "--count"), "2\n")
        large = self.write("large.csv", "1e400\n")
        self.assertIn("'1e400' is no double",
                      self.wrong("build", self.pool, "t", large, "--columns", "g:double"))

    def test_refuse_a_limit_below_zero(self):
        self.build([self.random_row()])
        self.wrong("query", self.pool, "t", "", "--limit", "-1")
        self.output("put", self.pool, "words", "a", "b")
        self.error("scan", self.pool, "words", "--limit", "-1")

    def test_are_seen_by_other_commands(self):
        self.build([self.random_row() for _ in range(50)])
        facts = json.loads(self.output("info", self.pool, "--json"))
        self.assertEqual(facts["indexes"][0]["engine"], "elf_table")
        self.assertIn(b"sound", self.output("check", self.pool))
        self.assertIn(b"sound; 50 rows", self.output("elf", "check", self.pool, "t"))
        self.assertIn(b"50 rows", self.output("elf", "compact", self.pool, "t"))
        self.assertIn(b"mode", self.output("elf", "info", self.pool, "t"))
        self.output("put", self.pool, "words", "a", "b")
        self.assertIn("words", self.wrong("query", self.pool, "words", ""))
        self.output("drop", self.pool, "t")
        self.assertIn(b"sound", self.output("check", self.pool))

    def test_survive_kills(self):
        """A build that is killed leaves all old rows or all new ones."""
        before = [self.random_row() for _ in range(500)]
        self.build(before)
        text = self.csv([self.random_row() for _ in range(20_000)])
        path = self.write("rows.csv", text)
        begin = time.monotonic()
        self.output("elf", "build", self.pool, "t", path, "--columns", COLUMNS)
        duration = time.monotonic() - begin
        for i in range(12):
            self.build(before)
            process = subprocess.Popen(
                [tool_test.TOOL, "elf", "build", self.pool, "t", path, "--columns", COLUMNS],
                stdout=subprocess.DEVNULL)
            time.sleep(duration * (0.2 + 0.07 * i))
            process.kill()
            process.wait()
            self.assertIn(self.query("", "--count"), ("500\n", "20000\n"))
            self.assertIn(b"sound", self.output("elf", "check", self.pool, "t"))
            self.assertIn(b"sound", self.output("check", self.pool))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    tool_test.TOOL = os.path.abspath(sys.argv.pop(1))
    unittest.main()
