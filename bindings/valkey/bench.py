#!/usr/bin/env python3
"""The module beside the server's own SET and GET, in one run: medians of rounds that alternate.

    bindings/valkey/bench.py [--server redis-7] [--rounds 5] [--requests 200000] [--keys 1000000]
                             [--restart-keys 0] [--failovers 0] [--ycsb 0]
                             [--folder /dev/shm]

`--restart-keys N` also measures how long a server takes from its start after `kill -9` to its first
right answer, with N pairs in a table, and with as many native keys in an AOF and in an RDB file.
`--failovers N` says how long a cluster of three primaries and three replicas needs until a replica
has taken over from a primary that was killed, N times with the module and without it in turns.
`--ycsb N` runs YCSB's workloads A and C with N records and as many operations, one round.
Uses redis-benchmark of Debian's redis-tools, 50 clients, values of 100 bytes.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "tests"))

CLIENTS, PIPELINE, VALUE = 50, 16, 100

NATIVE_SET = ["SET", "key:__rand_int__", "x" * VALUE]
NATIVE_GET = ["GET", "key:__rand_int__"]
TABLE_PUT = ["PX.PUT", "table", "key:__rand_int__", "x" * VALUE]
TABLE_GET = ["PX.GET", "table", "key:__rand_int__"]

# Name, whether the module is loaded, its arguments, options of the server, commands.
SYSTEMS = [
    ("native, no persistence", False, [], [], {"SET": NATIVE_SET, "GET": NATIVE_GET}),
    ("table", True, [], [], {"SET": TABLE_PUT, "GET": TABLE_GET}),
    ("durable keyspace", True, ["mode", "keyspace"], [], {"SET": NATIVE_SET, "GET": NATIVE_GET}),
    (
        *("native, AOF everysec", False, []),
        ["--appendonly", "yes", "--appendfsync", "everysec"],
        {"SET": NATIVE_SET, "GET": NATIVE_GET},
    ),
]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--server", default="redis-7")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=200000)
    parser.add_argument("--keys", type=int, default=1000000)
    parser.add_argument("--restart-keys", type=int, default=0)
    parser.add_argument("--failovers", type=int, default=0)
    parser.add_argument("--ycsb", type=int, default=0)
    parser.add_argument("--folder", default="/dev/shm")
    return parser.parse_args()


def requests_per_second(server, options, command):
    """What redis-benchmark says of one command."""
    words = ["redis-benchmark", "-p", server.port, "-c", CLIENTS, "-P", PIPELINE, "--csv"]
    words += ["-n", options.requests, "-r", options.keys, *command]
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=True)
    return float(done.stdout.strip().splitlines()[-1].split('","')[1].strip('"'))


def measure(options, folder, servers):
    """Requests per second of each system and command, by round."""
    found = {}
    for number in range(options.rounds):
        for name, module, arguments, more, commands in SYSTEMS:
            place = f"{number}-{name.replace(' ', '-')}"
            server = servers.Server(folder, place, arguments, more, module).start()
            for command, words in commands.items():
                rate = requests_per_second(server, options, words)
                found.setdefault((name, command), []).append(rate)
            server.kill()
            shutil.rmtree(server.folder)
    return {key: statistics.median(rates) for key, rates in found.items()}


def print_rates(options, rates):
    base = {command: rates[(SYSTEMS[0][0], command)] for command in ("SET", "GET")}
    print(f"\n{options.server}, {options.rounds} rounds, medians, requests/s, pipeline {PIPELINE}, "
          f"{CLIENTS} clients, {VALUE}-byte values, {options.keys} keys, in {options.folder}\n")
    print("| | SET | of native | GET | of native |\n|---|---|---|---|---|")
    for name, *_ in SYSTEMS:
        cells = []
        for command in ("SET", "GET"):
            rate = rates[(name, command)]
            cells += [f"{rate:,.0f}", f"{rate / base[command]:.2f}"]
        print(f"| {name} | {' | '.join(cells)} |")
    ratio = rates[("durable keyspace", "SET")] / rates[("native, AOF everysec", "SET")]
    print(f"\ndurable keyspace SET is {ratio:.2f} times native SET with AOF everysec")


def encoded(words):
    """A command in the server's protocol."""
    parts = [word.encode() for word in words]
    lengths = b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
    return b"*%d\r\n%s" % (len(parts), lengths)


def load(server, count, command):
    """Writes numbered keys by redis-cli's mass insertion."""
    step = 10000
    cli = ["redis-cli", "-p", str(server.port), "--pipe"]
    with subprocess.Popen(cli, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as pipe:
        for start in range(0, count, step):
            numbers = range(start, min(start + step, count))
            pipe.stdin.write(b"".join(encoded(command(i)) for i in numbers))
        pipe.stdin.close()
    if pipe.wait() != 0:
        raise RuntimeError("the server did not take all keys")


def first_answer(server, question, servers):
    """Seconds from the start of a killed server to its first right answer."""
    server.kill()
    begin = time.monotonic()
    server.start(wait=False)
    while True:
        try:
            if server.client.execute_command(*question) is not None:
                return time.monotonic() - begin
        except (servers.redis.RedisError, OSError):
            pass
        time.sleep(0.0005)


def measure_restarts(options, folder, servers):
    count = options.restart_keys
    value = "x" * VALUE
    last = f"key:{count - 1}"

    def native(i):
        return ("SET", f"key:{i}", value)

    kinds = [
        ("table", True, [], lambda i: ("PX.PUT", "table", f"key:{i}", value),
         ("PX.GET", "table", last)),
        ("AOF", False, ["--appendonly", "yes"], native, ("GET", last)),
        ("RDB", False, [], native, ("GET", last)),
    ]
    print(f"\nfirst answer after kill -9, {count} pairs\n")
    for name, module, more, command, question in kinds:
        server = servers.Server(folder, f"restart-{name}", [], more, module).start()
        load(server, count, command)
        if name == "RDB":
            server.client.save()
        times = [first_answer(server, question, servers) for _ in range(3)]
        print(f"{name}: {statistics.median(times) * 1000:.0f} ms", flush=True)
        server.kill()
        shutil.rmtree(server.folder)


def measure_failovers(options, folder):
    import cluster  # which needs the environment, too

    seconds = {True: [], False: []}
    for number in range(options.failovers):
        for module, found in seconds.items():
            place = os.path.join(folder, f"cluster-{number}-{module}")
            nodes = cluster.start(place, module)
            found.append(cluster.take_over(nodes))
            for node in nodes:
                node.kill()
            shutil.rmtree(place)
    print(f"\nfailover of 3 + 3 nodes, node timeout {cluster.NODE_TIMEOUT} ms, seconds\n")
    for module, found in seconds.items():
        times = " ".join(f"{one:.1f}" for one in sorted(found))
        print(f"{'with' if module else 'without'} the module: median "
              f"{statistics.median(found):.1f} ({times})")


def measure_ycsb(options, folder, servers):
    import ycsb

    sizes = {"recordcount": options.ycsb, "operationcount": options.ycsb,
             "fieldcount": 1, "fieldlength": VALUE}
    print(f"\nYCSB, {options.ycsb} records, 4 threads, operations/s\n")
    for name, module, arguments, more, _ in SYSTEMS:
        server = servers.Server(folder, f"ycsb-{name.replace(' ', '-')}", arguments, more,
                                module).start()
        mode = "tables" if name == "table" else "keyspace"
        ycsb.run_phase(server.port, mode, "-load", "a", **sizes)
        rates = [ycsb.run_phase(server.port, mode, "-t", workload, **sizes)[1]
                 for workload in ("a", "c")]
        print(f"{name}: A {rates[0]:,.0f}, C {rates[1]:,.0f}", flush=True)
        server.kill()
        shutil.rmtree(server.folder)


def main():
    options = parse()
    os.environ["PERDIX_VALKEY_SERVER"] = options.server
    import servers  # reads the environment

    folder = tempfile.mkdtemp(prefix="perdix-valkey-bench-", dir=options.folder)
    try:
        if options.rounds > 0:
            print_rates(options, measure(options, folder, servers))
        if options.restart_keys:
            measure_restarts(options, folder, servers)
        if options.ycsb:
            measure_ycsb(options, folder, servers)
        if options.failovers:
            measure_failovers(options, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
