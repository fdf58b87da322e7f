#!/usr/bin/env python3
"""Conditions of TPC-H's Q1, Q6, Q12, Q14 and Q19 on lineitem: `perdix elf` beside DuckDB.

    pip install tpchgen-cli duckdb
    bench/elf/tpch.py build/release/bin/perdix --scale 1

Both count the rows that meet the conditions, and must agree. Queries are compared in a process that
runs already and has the table open: DuckDB's with one thread, in memory, and perdix's
(`perdix elf query --time`). Each has the median of as many queries, in turn, round by round. The
time of a process of perdix that starts, opens the pool, answers and ends is in a column of its
own. At the end a compact is killed, and the next query's time is shown: it opens
what the kill has left. Ends with 1 if an answer is wrong.
"""

import argparse
import json
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb

COLUMNS = {
    "l_partkey": "int32", "l_quantity": "double", "l_discount": "double",
    "l_returnflag": "string", "l_linestatus": "string", "l_shipdate": "date",
    "l_commitdate": "date", "l_receiptdate": "date", "l_shipinstruct": "string",
    "l_shipmode": "string",
}
SQL_TYPES = {"int32": "integer", "double": "double", "string": "varchar", "date": "date"}
# The parts of the conditions that compare a column with constants.
QUERIES = {
    "Q1": "l_shipdate <= 1998-09-02",
    "Q6": "l_shipdate >= 1994-01-01 and l_shipdate < 1995-01-01"
          " and l_discount between 0.05 and 0.07 and l_quantity < 24",
    "Q12": "l_shipmode in (MAIL, SHIP) and l_receiptdate >= 1994-01-01"
           " and l_receiptdate < 1995-01-01",
    "Q14": "l_shipdate >= 1995-09-01 and l_shipdate < 1995-10-01",
    "Q19": "l_shipmode in (AIR, 'REG AIR') and l_shipinstruct = 'DELIVER IN PERSON'"
           " and l_quantity between 1 and 11",
}
# Few lists: what is left is the process and its opening.
POINT = ("l_returnflag = N and l_linestatus = O and l_shipinstruct = NONE and l_shipmode = AIR"
         " and l_discount = 0.05 and l_quantity = 17 and l_commitdate = 1996-02-12")


def sql(conditions):
    """The same in SQL, where words and dates stand in quotes."""
    words = []
    for word in conditions.replace("(", "( ").replace(")", " )").split():
        bare = word.rstrip(",")
        is_date = bare.count("-") == 2 and bare[0].isdigit()
        if is_date or bare in ("MAIL", "SHIP", "AIR"):
            word = f"'{bare}'" + word[len(bare):]
        words.append(word)
    return " ".join(words)


def timed(call):
    begin = time.perf_counter()
    answer = call()
    return answer, (time.perf_counter() - begin) * 1e3


def median_of(repeat, call):
    runs = [timed(call) for _ in range(repeat)]
    return runs[0][0], statistics.median(milliseconds for _, milliseconds in runs)


class Perdix:
    def __init__(self, program, folder):
        self.program = program
        self.pool = folder / "tpch.pool"
        self.run("create", self.pool)

    def run(self, *arguments):
        command = [self.program, *map(str, arguments)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def build(self, csv):
        columns = ",".join(f"{name}:{kind}" for name, kind in COLUMNS.items())
        self.run("elf", "build", self.pool, "lineitem", csv, "--header", "--columns", columns)

    def start(self):
        self.run("--version")

    def query(self, conditions, *options):
        return ("elf", "query", self.pool, "lineitem", conditions, *options)

    def count(self, conditions):
        return int(self.run(*self.query(conditions, "--count")))

    def milliseconds(self, conditions, times):
        """The median in a process that has the table open."""
        command = [self.program, *map(str, self.query(conditions, "--time", times))]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return float(done.stderr.split("median ")[1].split(" ms")[0])

    def info(self):
        return json.loads(self.run("elf", "info", self.pool, "lineitem", "--json"))

    def kill_a_compact(self, seconds):
        command = [self.program, "elf", "compact", str(self.pool), "lineitem"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        return process.wait() == -signal.SIGKILL


def load_duckdb(csv):
    database = duckdb.connect()
    database.execute("set threads = 1")
    kinds = ", ".join(f"cast({name} as {SQL_TYPES[kind]}) as {name}"
                      for name, kind in COLUMNS.items())
    database.execute(f"create table lineitem as select {kinds} from read_csv('{csv}')")
    return database


def compare(perdix, database, arguments):
    repeat, wrong = arguments.repeat, 0
    _, start = median_of(2 * repeat + 1, perdix.start)
    print(f"a process of perdix that does nothing: {start:.1f} ms")
    print(f"{'':6}{'rows':>12}{'perdix, a query':>18}{'DuckDB, a query':>18}{'DuckDB / perdix':>24}"
          f"{'perdix, a process':>20}")
    for name in arguments.queries.split(","):
        conditions = QUERIES[name]
        statement = f"select count(*) from lineitem where {sql(conditions)}"
        ours, theirs = [], []
        for _ in range(arguments.rounds):
            expected, of_duckdb = median_of(
                repeat, lambda: database.execute(statement).fetchone()[0])
            theirs.append(of_duckdb)
            ours.append(perdix.milliseconds(conditions, repeat))
        found, process = median_of(repeat, lambda: perdix.count(conditions))
        wrong += found != expected
        ratios = [their / our for our, their in zip(ours, theirs)]
        print(f"{name:6}{found:>12,}{statistics.median(ours):>15.2f} ms"
              f"{statistics.median(theirs):>15.2f} ms"
              f"{f'{statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})':>24}"
              f"{process:>17.1f} ms"
              f"{'' if found == expected else f'   WRONG: {expected:,} are right'}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("perdix", help="path of the tool")
    parser.add_argument("--scale", default="1", help="TPC-H's scale factor")
    parser.add_argument("--repeat", type=int, default=5, help="of each query; medians are shown")
    parser.add_argument("--rounds", type=int, default=3,
                        help="of --repeat queries each, by either; medians of their ratios")
    parser.add_argument("--queries", default=",".join(QUERIES), help="which")
    parser.add_argument("--tpchgen", default="tpchgen-cli", help="path of tpchgen-cli")
    parser.add_argument("--folder", default="/dev/shm", help="for all files")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.folder, prefix="perdix-tpch-") as folder:
        csv = Path(folder) / "lineitem.csv"
        subprocess.run([arguments.tpchgen, "csv", "-s", arguments.scale, "--tables", "lineitem",
                        "--output-dir", folder], check=True, stderr=subprocess.DEVNULL)
        perdix = Perdix(arguments.perdix, Path(folder))
        _, milliseconds = timed(lambda: perdix.build(csv))
        facts = perdix.info()
        plain = facts["rows"] * len(COLUMNS) * 4
        print(f"{facts['rows']:,} rows of {len(COLUMNS)} columns; built from CSV in "
              f"{milliseconds / 1e3:.1f} s; lists {facts['elf_bytes'] / plain:.2f} of the columns "
              f"at 4 bytes, the pool's blocks {facts['pm_bytes'] / plain:.2f}")
        wrong = compare(perdix, load_duckdb(csv), arguments)
        killed = perdix.kill_a_compact(milliseconds / 1e3 / 10)
        found, opening = timed(lambda: perdix.count(POINT))
        again, usual = timed(lambda: perdix.count(POINT))
        wrong += found != again
        print(f"a point after a compact was {'killed' if killed else 'made'}: {opening:.1f} ms, "
              f"then {usual:.1f} ms")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
