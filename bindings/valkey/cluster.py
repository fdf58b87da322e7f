"""A cluster of three primaries with a replica each, for demo.py and bench.py."""

import subprocess
import time

import servers

NODE_TIMEOUT = 1500  # milliseconds


def start(folder, module=True):
    """The nodes, when all are up and linked. `module`: whether they have it."""
    options = ["--cluster-enabled", "yes", "--cluster-node-timeout", str(NODE_TIMEOUT)]
    nodes = [servers.Server(folder, f"node{i}", [], options, module).start() for i in range(6)]
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


def take_over(nodes):
    """Kills a primary. Returns after how many seconds the cluster is whole again."""
    victim = primaries(nodes)[0]
    begin = time.monotonic()
    victim.kill()
    others = [node for node in nodes if node is not victim]
    servers.wait_for(
        lambda: len(primaries(others)) == 3 and all(is_up(node) for node in others),
        "no replica takes over",
    )
    return time.monotonic() - begin
