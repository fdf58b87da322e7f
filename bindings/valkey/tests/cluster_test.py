"""Cluster: tables and durable keys are sharded, resharded, and fail over with their slots."""

import random
import subprocess
import threading

from servers import KIND, SERVERS, ServerTest, kills, redis, seed, unittest, wait_for

CLI = SERVERS / "valkey-8" / "valkey-cli"  # speaks to all servers
NODE_TIMEOUT = 3000  # milliseconds


class ClusterTest(ServerTest):
    def nodes(self, count, arguments=(), options=()):
        options = [
            *options,
            *("--cluster-enabled", "yes", "--cluster-node-timeout", str(NODE_TIMEOUT)),
            *("--cluster-config-file", "nodes.conf"),
        ]
        return [self.server(f"node{i}", arguments, options) for i in range(count)]

    def cli(self, *words):
        done = subprocess.run(
            [CLI, "--cluster", *map(str, words), "--cluster-yes"], capture_output=True, text=True
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def create(self, count, replicas=0, arguments=()):
        nodes = self.nodes(count, arguments)
        addresses = [f"127.0.0.1:{node.port}" for node in nodes]
        self.cli("create", *addresses, "--cluster-replicas", replicas)
        for node in nodes:
            wait_for(lambda n=node: self.is_up(n), "the cluster does not come up")
        if replicas:
            for node in nodes:
                wait_for(lambda n=node: self.is_linked(n), "a replica gets no link")
        return nodes

    def is_up(self, node):
        return node.client.execute_command("CLUSTER INFO")["cluster_state"] == "ok"

    def is_linked(self, node):
        info = node.client.info("replication")
        if info["role"] == "master":
            return info["connected_slaves"] == 1
        return info["master_link_status"] == "up"

    def is_followed(self, node):
        info = node.client.info("replication")
        replica = info["slave0"]
        return replica["state"] == "online" and replica["offset"] == info["master_repl_offset"]

    def connect(self, node):
        return redis.RedisCluster(host="127.0.0.1", port=node.port, protocol=2)

    def put(self, client, count=100):
        for i in range(count):
            self.assertEqual(client.execute_command("PX.PUT", f"table{i}", "a", f"v{i}"), b"OK")

    def assert_all(self, client, count=100):
        for i in range(count):
            value = client.execute_command("PX.GET", f"table{i}", "a")
            self.assertEqual(value, f"v{i}".encode(), f"table{i}")

    def test_reshard_with_data(self):
        nodes = self.create(3)
        client = self.connect(nodes[0])
        self.put(client)
        client.execute_command("PX.CREATE", "numbers", "ENGINE", "elimda", "KEYS", "u64")
        for i in range(1000):
            client.execute_command("PX.PUT", "numbers", i, i)
        ids = [self.node_id(node) for node in nodes]
        for source, target in ((0, 1), (1, 2), (2, 0)):
            self.cli(
                *("reshard", f"127.0.0.1:{nodes[0].port}", "--cluster-slots", 3000),
                *("--cluster-from", ids[source], "--cluster-to", ids[target]),
            )
        client = self.connect(nodes[0])
        self.assert_all(client)
        self.assertEqual(client.execute_command("PX.LEN", "numbers"), 1000)
        for node in nodes:
            node.restart()
        for node in nodes:
            wait_for(lambda n=node: self.is_up(n), "the cluster does not come back")
        self.assert_all(self.connect(nodes[1]))

    def node_id(self, node):
        return node.client.execute_command("CLUSTER MYID").decode()

    def test_failover(self):
        nodes = self.create(6, replicas=1)
        client = self.connect(nodes[0])
        self.put(client)
        primaries = [n for n in nodes if n.client.info("replication")["role"] == "master"]
        for node in primaries:  # WAIT only counts what its own connection has written
            wait_for(lambda n=node: self.is_followed(n), "a replica does not get all")
        primaries[0].kill()
        others = [node for node in nodes if node is not primaries[0]]
        wait_for(
            lambda: sum(n.client.info("replication")["role"] == "master" for n in others) == 3
            and all(self.is_up(n) for n in others),
            "no replica takes over",
        )
        self.assert_all(self.connect(others[0]))
        primaries[0].start()
        wait_for(lambda: self.is_linked(primaries[0]), "the old primary does not come back")
        self.assertEqual(primaries[0].client.info("replication")["role"], "slave")
        self.put(self.connect(others[0]), 120)
        self.assert_all(self.connect(others[0]), 120)

    def test_durable_keys(self):
        nodes = self.create(3, arguments=["mode", "keyspace"])
        client = self.connect(nodes[0])
        self.put(client)
        for i in range(100):
            client.set(f"string{i}", i)
            client.rpush(f"list{i}", *range(10))
            client.hset(f"hash{i}", "a", i)
        for node in nodes:
            node.kill()
        for node in nodes:
            node.start()
        for node in nodes:
            wait_for(lambda n=node: self.is_up(n), "the cluster does not come back")
        client = self.connect(nodes[0])
        self.assert_all(client)
        for i in range(100):
            self.assertEqual(client.get(f"string{i}"), str(i).encode())
            self.assertEqual(client.llen(f"list{i}"), 10)
            self.assertEqual(client.hget(f"hash{i}", "a"), str(i).encode())

    def test_keys_come_back_after_a_pause(self):
        """A node gives its native keys back, and replicates them, when it may write."""
        nodes = self.create(3, arguments=["mode", "keyspace"])
        self.connect(nodes[0]).rpush("list", *range(50))
        node = next(n for n in nodes if n.client.dbsize() == 1)
        node.kill()
        node.options += ["--appendonly", "yes"]
        node.start()
        node.client.client_pause(100000, all=False)
        wait_for(lambda: self.is_up(node), "the cluster does not come back")
        self.assertEqual(node.client.dbsize(), 0)
        node.client.client_unpause()
        wait_for(lambda: node.client.llen("list") == 50, "the list does not come back")

    def test_refuses_to_serve_without_all_keys(self):
        """A node gives its native keys back when the cluster is up, and ends if it can't."""
        nodes = self.create(3, arguments=["mode", "keyspace"])
        self.connect(nodes[0]).rpush("list", *range(50))
        node = next(n for n in nodes if n.client.dbsize() == 1)
        dump = node.client.dump("list")
        node.kill()
        node.rewrite(dump, dump[:-10] + b"\xff\xff" + dump[-8:])  # of a much newer server
        self.refuses_to_start(node, "the key 'list' of database 0 can't be read")

    @unittest.skipUnless(KIND == "valkey-9", "has one database in a cluster")
    def test_numbered_databases(self):
        """Each key comes back in its own database, and what left all of them stays away."""
        options = ["--cluster-databases", 4]
        node = self.nodes(1, arguments=["mode", "keyspace"], options=options)[0]
        node.client.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16383)
        wait_for(lambda: self.is_up(node), "the cluster does not come up")
        databases = [redis.Redis(port=node.port, db=number, protocol=2) for number in range(4)]
        databases[0].set("user", "a string")
        databases[2].hset("user", "a", "hash")
        databases[3].rpush("queue", 1, 2)
        databases[3].hset("gone", "a", "1")
        slot = node.client.execute_command("CLUSTER KEYSLOT", "gone")
        with databases[0].pipeline() as pipeline:
            pipeline.execute_command("CLUSTER FLUSHSLOT", slot, "SYNC")
            pipeline.execute()
        for _ in range(2):
            node.restart()
            wait_for(lambda: self.is_up(node), "the cluster does not come back")
            found = [{key: db.type(key) for key in db.keys()} for db in databases]
            expected = [{b"user": b"string"}, {}, {b"user": b"hash"}, {b"queue": b"list"}]
            self.assertEqual(found, expected)

    def test_lost_slot(self):
        """Its keys do not come back, also where the server tells nothing of their end."""
        nodes = self.create(3, arguments=["mode", "keyspace"])
        client = self.connect(nodes[0])
        for i in range(20):
            client.set(f"{{a}}string{i}", i)
            client.rpush(f"{{a}}list{i}", i)
            client.execute_command("PX.PUT", f"{{a}}table{i}", "a", i)
        source = next(n for n in nodes if n.client.dbsize() > 0)
        target = next(n for n in nodes if n.client.dbsize() == 0)
        slot = source.client.execute_command("CLUSTER KEYSLOT", "{a}")
        kept = next(k for k in map(str, range(100000)) if self.is_of(source, k, slot))
        source.client.set(kept, "1")
        setslot = ("CLUSTER SETSLOT", slot)
        target.client.execute_command(*setslot, "IMPORTING", self.node_id(source))
        target.client.execute_command(*setslot, "NODE", self.node_id(target))
        target.client.execute_command("CLUSTER BUMPEPOCH")
        wait_for(lambda: source.client.dbsize() == 1, "the node does not lose the slot")
        source.restart()
        wait_for(lambda: self.is_up(source), "the cluster does not come back")
        self.assertEqual(source.info("restored_keys"), 1)
        self.assertEqual(source.client.get(kept), b"1")

    def is_of(self, node, key, but):
        """Whether the node has the slot of a key, which is not the slot `but`."""
        slot = node.client.execute_command("CLUSTER KEYSLOT", key)
        if slot == but:
            return False
        try:
            return node.client.exists(key) == 0
        except redis.ResponseError:
            return False

    def test_replica_restarts(self):
        """Its pool has no values but strings, and its primary has them."""
        primary, replica = self.primary_and_replica()
        primary.client.hset("hash", "a", 1)
        primary.client.set("text", 1)
        wait_for(lambda: self.is_followed(primary), "the replica does not follow")
        for kill in (replica.kill, replica.stop):
            self.assertEqual(replica.info("partial"), 0)
            kill()
            replica.start()
            wait_for(lambda: self.is_linked(replica) and self.is_up(replica), "no link")
            self.assertEqual(replica.digest(), primary.digest())

    def test_promoted_replica_has_all_types(self):
        """It stores what it had in memory only before it acknowledges anything."""
        primary, replica = self.primary_and_replica()
        with primary.client.pipeline(transaction=False) as pipeline:
            for i in range(3000):
                pipeline.hset(f"hash{i}", "a", i)
            pipeline.execute_command("WAIT", 1, 60000)
            self.assertEqual(pipeline.execute()[-1], 1)
        primary.kill()
        replica.client.execute_command("CLUSTER FAILOVER", "TAKEOVER")
        wait_for(lambda: replica.client.rpush("list", 1), "the replica does not take over")
        replica.restart()
        wait_for(lambda: self.is_up(replica), "the cluster does not come back")
        self.assertEqual(replica.client.dbsize(), 3001)

    def primary_and_replica(self):
        primary, replica = self.nodes(2, arguments=["mode", "keyspace"])
        primary.client.execute_command("CLUSTER ADDSLOTSRANGE", 0, 16383)
        replica.client.execute_command("CLUSTER MEET", "127.0.0.1", primary.port)
        follow = ("CLUSTER REPLICATE", self.node_id(primary))
        wait_for(lambda: replica.client.execute_command(*follow), "the nodes do not meet")
        for node in (primary, replica):
            wait_for(lambda n=node: self.is_linked(n) and self.is_up(n), "no link")
        return primary, replica

    def test_kills_of_nodes(self):
        """Nodes without replicas are killed under load and restarted; nothing told is missing."""
        random_number = random.Random(seed())
        nodes = self.create(3, arguments=["mode", "keyspace"])
        expected = {}
        for _ in range(kills(3)):
            stop = threading.Event()
            writers = [
                threading.Thread(target=self.count_up, args=(nodes, f"w{i}", expected, stop))
                for i in range(3)
            ]
            for writer in writers:
                writer.start()
            stop.wait(random_number.uniform(0.2, 1))
            node = random_number.choice(nodes)
            node.kill()
            stop.set()
            for writer in writers:
                writer.join()
            node.start()
            for other in nodes:
                wait_for(lambda n=other: self.is_up(n), "the cluster does not come back")
            self.assert_told(self.connect(nodes[0]), expected)

    def count_up(self, nodes, name, expected, stop):
        """What was asked for and not answered may have happened."""
        try:
            client = self.connect(nodes[0])
            number = 0
            while not stop.is_set():
                number += 1
                for key, words in (
                    (f"{name}:{number % 50}", ("INCR",)),
                    (f"{name}:table:{number % 5}", ("PX.INCRBY", "n", "1")),
                ):
                    told, asked = expected.get(key, (0, 0))
                    expected[key] = (told, asked + 1)
                    value = client.execute_command(words[0], key, *words[1:])
                    expected[key] = (value, value)
        except (redis.RedisError, OSError):
            return

    def assert_told(self, client, expected):
        for key, (told, asked) in expected.items():
            table = ":table:" in key
            value = client.execute_command("PX.GET", key, "n") if table else client.get(key)
            self.assertTrue(told <= int(value or 0) <= asked, (key, told, value, asked))
            expected[key] = (int(value or 0), int(value or 0))

    def test_writes_during_reshard(self):
        nodes = self.create(3)
        stop = threading.Event()
        written = {}

        def write():
            client = self.connect(nodes[0])
            number = 0
            while not stop.is_set():
                number += 1
                key = f"table{number % 200}"
                client.execute_command("PX.PUT", key, "a", number)
                written[key] = number

        writer = threading.Thread(target=write)
        writer.start()
        try:
            self.cli(
                *("reshard", f"127.0.0.1:{nodes[0].port}", "--cluster-slots", 2000),
                *("--cluster-from", self.node_id(nodes[0]), "--cluster-to", self.node_id(nodes[1])),
            )
        finally:
            stop.set()
            writer.join()
        client = self.connect(nodes[2])
        for key, number in written.items():
            self.assertEqual(client.execute_command("PX.GET", key, "a"), str(number).encode())


if __name__ == "__main__":
    unittest.main()
