#!/usr/bin/env python3
"""Two minutes with the module: a table of 663,473 words is killed with its server and answers
again, beside an append-only file and an RDB file of the same words; then a node of a cluster is
killed and its replica takes over.

    make demo-valkey
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "tests"))
import servers  # noqa: E402: only found by the line above
from bench import first_answer, load  # noqa: E402

WORDS = Path("/usr/share/dict/american-english-insane")
NODE_TIMEOUT = 1500  # milliseconds


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


def start_cluster(folder):
    """Three primaries with a replica each."""
    options = ["--cluster-enabled", "yes", "--cluster-node-timeout", str(NODE_TIMEOUT)]
    nodes = [servers.Server(folder, f"node{i}", [], options).start() for i in range(6)]
    cli = servers.SERVERS / "valkey-8" / "valkey-cli"
    addresses = [f"127.0.0.1:{node.port}" for node in nodes]
    create = [cli, "--cluster", "create", *addresses, "--cluster-replicas", "1", "--cluster-yes"]
    subprocess.run(create, check=True, capture_output=True)
    for node in nodes:
        servers.wait_for(lambda n=node: is_up(n), "the cluster does not come up")
        servers.wait_for(lambda n=node: has_link(n), "a replica gets no link")
    return nodes


def is_up(node):
    return node.client.execute_command("CLUSTER INFO")["cluster_state"] == "ok"


def has_link(node):
    info = node.client.info("replication")
    if info["role"] == "master":
        return info["connected_slaves"] == 1
    return info["master_link_status"] == "up"


def primaries(nodes):
    return [n for n in nodes if n.alive() and n.client.info("replication")["role"] == "master"]


def show_failover(folder):
    print("a cluster of three primaries and three replicas:")
    nodes = start_cluster(folder)
    client = servers.redis.RedisCluster(host="127.0.0.1", port=nodes[0].port, protocol=2)
    for i in range(300):
        client.execute_command("PX.PUT", f"table{i}", "number", i)
    time.sleep(1)  # replication is asynchronous
    victim = primaries(nodes)[0]
    begin = time.monotonic()
    victim.kill()
    others = [node for node in nodes if node is not victim]
    servers.wait_for(
        lambda: len(primaries(others)) == 3 and all(is_up(node) for node in others),
        "no replica takes over",
    )
    print(f"  a primary was killed; its replica took over after {time.monotonic() - begin:.1f} s")
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
