#!/usr/bin/env python3
"""Two minutes with the module: a table of 663,473 words is killed with its server and answers
again, beside an append-only file and an RDB file of the same words; then a node of a cluster is
killed and its replica takes over.

    make demo-valkey
"""

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "tests"))
import servers  # noqa: E402: only found by the line above
import cluster  # noqa: E402
from bench import first_answer, load  # noqa: E402

WORDS = Path("/usr/share/dict/american-english-insane")


def restart_by(name, folder, words, module, options, command, question):
    """Loads the words, kills the server, and says when it answers again."""
    server = servers.Server(folder, name, [], options, module).start()
    begin = time.monotonic()
    load(server, len(words), lambda i: command(words[i], str(i)))
    loaded = time.monotonic() - begin
    if name == "RDB":
        server.client.save()
    seconds = first_answer(server, question, servers)
    answer = f"first answer after kill -9: {seconds * 1000:7.1f} ms"
    print(f"  {name:5}  loaded in {loaded:5.1f} s, {answer}", flush=True)
    return server


def show_restarts(folder, words):
    print(f"{len(words):,} words, killed and restarted:")
    last = words[-1]
    table = restart_by(
        "table", folder, words, True, [],
        lambda word, number: ("PX.PUT", "words", word, number), ("PX.GET", "words", last),
    )
    ask = table.client.execute_command
    print(f"         {ask('PX.LEN', 'words'):,} words are there; from 'perd' on:",
          b" ".join(ask("PX.RANGE", "words", "[perd", "+", "LIMIT", 4, "NOVALUES")).decode())
    table.kill()
    for name, options in (("AOF", ["--appendonly", "yes"]), ("RDB", [])):
        restart_by(
            name, folder, words, False, options,
            lambda word, number: ("SET", word, number), ("GET", last),
        ).kill()


def show_failover(folder):
    print("a cluster of three primaries and three replicas:")
    nodes = cluster.start(folder)
    client = servers.redis.RedisCluster(host="127.0.0.1", port=nodes[0].port, protocol=2)
    for i in range(300):
        client.execute_command("PX.PUT", f"table{i}", "number", i)
    time.sleep(1)  # replication is asynchronous
    seconds = cluster.take_over(nodes)
    print(f"  a primary was killed; its replica took over after {seconds:.1f} s")
    others = [node for node in nodes if node.alive()]
    client = servers.redis.RedisCluster(host="127.0.0.1", port=others[0].port, protocol=2)
    there = sum(client.execute_command("PX.GET", f"table{i}", "number") is not None
                for i in range(300))
    print(f"  {there} of 300 tables answer")
    for node in others:
        node.kill()
    return there


def main():
    words = sorted(set(WORDS.read_bytes().split(b"\n")) - {b""})
    words = [word.decode() for word in words]
    folder = tempfile.mkdtemp(prefix="perdix-valkey-demo-", dir=os.environ.get("TMPDIR"))
    try:
        show_restarts(folder, words)
        sys.exit(0 if show_failover(folder) == 300 else 1)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
