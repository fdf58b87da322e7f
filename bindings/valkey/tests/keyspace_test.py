"""The mode `keyspace`: unmodified clients, all native types, every acknowledged write."""

import random
import threading
import time

from servers import ServerTest, kills, redis, seed, unittest, wait_for

KEYSPACE = ["mode", "keyspace"]


class KeyspaceTest(ServerTest):
    def fill(self, client):
        """A value of each type, and a change of each that is made in place."""
        client.set("s1", "hello")
        client.set("s2", "world", ex=1000)
        client.set("long", "x" * 1000)
        client.append("long", "y")
        client.setrange("long", 3, "zzz")
        client.incr("n")
        client.incrbyfloat("f", 1.5)
        client.hset("h", mapping={"a": 1, "b": 2})
        client.hincrby("h", "a", 41)
        client.hdel("h", "b")
        client.zadd("z", {"one": 1, "two": 2})
        client.zincrby("z", 5, "one")
        client.rpush("l", "a", "b", "c", "d")
        client.lpop("l")
        client.lset("l", 0, "B")
        client.sadd("t", "x", "y", "z")
        client.spop("t")
        client.sadd("ints", 1, 2, 3)
        client.xadd("st", {"f": "v"}, id="1-1")
        client.xgroup_create("st", "g", "0")
        client.pfadd("hll", "a", "b")
        client.setbit("bm", 100, 1)
        client.bitfield("bits").set("u8", 0, 200).execute()
        client.geoadd("geo", (13.36, 38.11, "Palermo"))
        client.set("gone", 1)
        client.delete("gone")
        client.rename("s1", "renamed")
        client.copy("h", "copied")
        client.smove("ints", "other ints", 2)
        client.lmove("l", "other list")
        client.sunionstore("union", "ints", "other ints")
        client.sort("ints", store="sorted", alpha=True)
        client.expire("z", 5000)
        client.persist("s2")
        client.getdel("f")
        client.mset({"m1": "1", "m2": "2"})
        client.execute_command("SELECT", 3)
        client.set("other db", "1")
        client.execute_command("SELECT", 0)
        client.move("m1", 5)

    def assert_kept(self, server):
        digest = server.digest()
        server.restart()
        self.assertEqual(server.digest(), digest)

    def test_all_types(self):
        server = self.server(arguments=KEYSPACE)
        self.fill(server.client)
        ttl = server.client.pttl("z")
        self.assert_kept(server)
        self.assertEqual(server.client.get("s2"), b"world")
        self.assertEqual(server.client.ttl("s2"), -1)
        self.assertTrue(0 < server.client.pttl("z") <= ttl)
        self.assertEqual(server.client.xinfo_groups("st")[0]["name"], b"g")
        self.assert_kept(server)

    def test_tables_too(self):
        server = self.server(arguments=KEYSPACE)
        server.client.execute_command("PX.PUT", "table", "a", "1")
        server.client.set("native", "1")
        self.assert_kept(server)
        server.client.set("table", "native now")
        self.assert_kept(server)

    def test_expiry(self):
        server = self.server(arguments=KEYSPACE)
        server.client.set("soon", "1", px=1)
        server.client.set("later", "1", px=200)
        time.sleep(0.05)
        server.restart()
        self.assertIsNone(server.client.get("soon"))
        wait_for(lambda: server.client.get("later") is None, "a key does not expire")
        server.restart()
        self.assertEqual(server.client.keys(), [])

    def test_expired_while_down(self):
        """Keys whose time is over at a start leave the pool, too."""
        server = self.server(arguments=KEYSPACE)
        server.client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", "0")  # only when it is down
        other = redis.Redis(port=server.port, db=1, protocol=2)
        for client in (server.client, other):
            for i in range(50):
                client.set(f"text{i}", "x" * 100, px=500)
                client.hset(f"hash{i}", "a", 1)
                client.pexpire(f"hash{i}", 500)
            client.set("stays", "1", px=1000000)
        server.kill()
        time.sleep(0.6)
        server.start()
        self.assertEqual(server.info("restored_keys"), 2)
        self.assertEqual(server.info("expired_keys"), 200)
        wait_for(lambda: server.info("committed_keys_total") == 200, "the records stay")
        self.assert_kept(server)
        self.assertEqual(server.client.keys(), [b"stays"])
        self.assertEqual(server.info("restored_keys"), 2)
        self.assertEqual(server.info("expired_keys"), 0)

    def test_clients_while_keys_come_back(self):
        """They are told so, as while the server loads a file."""
        server = self.server(arguments=KEYSPACE, options=["--requirepass", "word"], start=False)
        server.start(wait=False)
        server.client = redis.Redis(port=server.port, protocol=2, password="word")
        wait_for(server.answers, "no start")
        fill = "for i = 1, 10000 do redis.call('SET', ARGV[1] * 10000 + i, i) end"
        for number in range(40):
            server.client.eval(fill, 0, number)
        server.kill()
        server.start(wait=False)
        told = set()
        client = None
        while "400000" not in told:
            client, answer = self.ask(server, client)
            told.add(answer)
        told.discard("")
        self.assertEqual(told, {"400000", "LOADING the keys of the pool are coming back"})

    def ask(self, server, client):
        """The connection and how many keys there are; an empty answer if nobody listens yet."""
        try:
            if client is None:
                client = redis.Connection(port=server.port, protocol=2, password="word", retry=None)
                client.connect()
            client.send_command("DBSIZE")
            return client, str(client.read_response())
        except redis.BusyLoadingError as error:
            return client, f"LOADING {error}"
        except (redis.ConnectionError, OSError):
            return None, ""

    def test_flush_and_swap(self):
        server = self.server(arguments=KEYSPACE)
        self.fill(server.client)
        server.client.swapdb(0, 3)
        self.assert_kept(server)
        server.client.flushdb()
        server.client.set("after", "1")
        self.assert_kept(server)
        server.client.flushall(asynchronous=True)
        self.assertEqual(server.client.dbsize(), 0)
        self.assert_kept(server)

    def test_blocked_clients(self):
        server = self.server(arguments=KEYSPACE)
        popper = threading.Thread(
            target=lambda: redis.Redis(port=server.port, protocol=2).blmove("from", "to", 10)
        )
        popper.start()
        wait_for(lambda: server.client.info("clients")["blocked_clients"] == 1, "no client waits")
        server.client.rpush("from", "a", "b")
        popper.join()
        self.assertEqual(server.client.lrange("to", 0, -1), [b"a"])
        self.assert_kept(server)

    def test_scripts_and_transactions(self):
        server = self.server(arguments=KEYSPACE)
        server.client.eval("for i = 1, 50 do redis.call('SET', 'k' .. i, i) end", 0)
        with server.client.pipeline() as pipeline:
            pipeline.set("a", 1)
            pipeline.lpush("list", 1, 2, 3)
            pipeline.delete("k1")
            pipeline.execute()
        self.assert_kept(server)

    def test_a_transaction_that_pauses_clients(self):
        """With an append-only file or a replica: the server has something to propagate."""
        server = self.server(arguments=KEYSPACE, options=["--appendonly", "yes"])
        with server.client.pipeline() as pipeline:
            pipeline.rpush("list", "a")
            pipeline.client_pause(100000, all=False)
            pipeline.set("text", 1)
            self.assertEqual(pipeline.execute(), [1, True, True])
        self.assertTrue(server.client.ping())
        server.restart()
        self.assertEqual(server.client.lrange("list", 0, -1), [b"a"])
        self.assertEqual(server.client.get("text"), b"1")

    def test_kills_whole_or_not_at_all(self):
        """Each transaction and script writes one number to all its keys."""
        random_number = random.Random(seed())
        server = self.server(arguments=KEYSPACE)
        keys = [f"k{i}" for i in range(8)]
        acknowledged = {"transaction": 0, "script": 0, "command": 0}
        for _ in range(kills(8)):
            killer = threading.Timer(random_number.uniform(0.02, 0.4), server.process.kill)
            killer.start()
            self.write_units(server, keys, acknowledged)
            server.process.wait()
            server.start()
            for unit, least in acknowledged.items():
                found = {int(v or 0) for v in server.client.mget([f"{unit}:{k}" for k in keys])}
                self.assertEqual(len(found), 1, f"a {unit} was applied in part")
                self.assertIn(found.pop(), (least, least + 1), unit)
                acknowledged[unit] = int(server.client.get(f"{unit}:k0") or 0)

    def write_units(self, server, keys, acknowledged):
        client = server.client
        try:
            while True:
                number = acknowledged["transaction"] + 1
                with client.pipeline() as pipeline:
                    for key in keys:
                        pipeline.set(f"transaction:{key}", number)
                    pipeline.execute()
                acknowledged["transaction"] = number
                number = acknowledged["script"] + 1
                client.eval(
                    "for _, k in ipairs(KEYS) do redis.call('SET', k, ARGV[1]) end",
                    len(keys), *[f"script:{key}" for key in keys], number,
                )
                acknowledged["script"] = number
                number = acknowledged["command"] + 1
                client.mset({f"command:{key}": number for key in keys})
                acknowledged["command"] = number
        except (redis.RedisError, OSError):
            return

    def test_a_unit_is_one_change_though_the_routine_is_due(self):
        """The server's routine comes between a unit that takes long and the end of its turn."""
        client = self.server(arguments=KEYSPACE, options=["--hz", "10"]).client
        client.set("k", 0)
        for number in range(1, 4):
            before = client.info("perdix")["perdix_commits_total"]
            with client.pipeline() as pipeline:
                pipeline.flushdb()
                pipeline.set("k", number)
                pipeline.execute_command("DEBUG", "SLEEP", "0.15")  # longer than 1 / hz
                pipeline.execute()
            self.assertEqual(client.info("perdix")["perdix_commits_total"], before + 1)

    def test_kills_of_units_with_flushes(self):
        """Each transaction and script empties one database and fills two, which change places."""
        random_number = random.Random(seed())
        server = self.server(arguments=KEYSPACE)
        keys = [f"k{i}" for i in range(4)]
        told = 0
        for _ in range(kills(6)):
            killer = threading.Timer(random_number.uniform(0.02, 0.4), server.process.kill)
            killer.start()
            told = self.flush_and_fill(server, keys, told)
            server.process.wait()
            server.start()
            found = [self.content(server, database) for database in (0, 1)]
            number = int(found[0].get(b"k0", 0))
            self.assertIn(number, (told, told + 1))
            for content in found:
                expected = {key.encode(): str(number).encode() for key in keys} if number else {}
                self.assertEqual(content, expected, "a unit was applied in part")
            told = number

    def content(self, server, database):
        client = redis.Redis(port=server.port, db=database, protocol=2)
        return {key: client.get(key) for key in client.keys()}

    def test_changes_of_other_databases(self):
        """MOVE and COPY store a key in another database than the one of the client."""
        server = self.server(arguments=KEYSPACE)
        for execute in (self.one_by_one, self.as_transaction, self.as_script):
            for source, target in ((0, 1), (1, 0)):
                client = redis.Redis(port=server.port, db=source, protocol=2)
                client.flushall()
                client.mset({"moved": 1, "copied": 2})
                # COPY is the last: Valkey 8.1 leaves the client where the copy is.
                copy = ["COPY copied copy DB", target]
                execute(client, ["MOVE moved", target], ["SET own", 3], copy)
                server.restart()
                own, other = (self.content(server, database) for database in (source, target))
                self.assertEqual(own, {b"copied": b"2", b"own": b"3"}, execute.__name__)
                self.assertEqual(other, {b"moved": b"1", b"copy": b"2"}, execute.__name__)

    def one_by_one(self, client, *commands):
        for words, argument in commands:
            client.execute_command(*words.split(), argument)

    def as_transaction(self, client, *commands):
        with client.pipeline() as pipeline:
            self.one_by_one(pipeline, *commands)
            pipeline.execute()

    def as_script(self, client, *commands):
        calls = (str([*words.split(), str(argument)])[1:-1] for words, argument in commands)
        client.eval(" ".join(f"redis.call({call})" for call in calls), 0)

    def flush_and_fill(self, server, keys, told):
        """Returns the number of the last unit that was acknowledged."""
        client = server.connect()
        script = """
            redis.call('SELECT', 1) redis.call('FLUSHDB')
            for _, k in ipairs(KEYS) do redis.call('SET', k, ARGV[1]) end
            redis.call('SELECT', 0) redis.call('SET', 'gone', 1) redis.call('FLUSHDB')
            for _, k in ipairs(KEYS) do redis.call('SET', k, ARGV[1]) end
            redis.call('SWAPDB', 0, 1)"""
        try:
            while True:
                if told % 2:
                    client.eval(script, len(keys), *keys, told + 1)
                else:
                    with client.pipeline() as pipeline:
                        for database in (1, 0):
                            pipeline.execute_command("SELECT", database)
                            pipeline.set("gone", 1)
                            pipeline.flushdb()
                            for key in keys:
                                pipeline.set(key, told + 1)
                        pipeline.swapdb(0, 1)
                        pipeline.execute()
                told += 1
        except (redis.RedisError, OSError):
            return told

    def test_kills_under_load(self):
        """Several clients with pipelines; each key has one writer, which knows what it was told."""
        number = seed()
        server = self.server(arguments=KEYSPACE)
        expected = {}
        for kill in range(kills(6)):
            self.load_until_killed(server, number + kill, expected)
            server.start()
            for key, (told, asked) in expected.items():
                value = int(server.client.get(key) or 0)
                self.assertTrue(told <= value <= asked, (key, told, value, asked))
                expected[key] = (value, value)

    def load_until_killed(self, server, number, expected):
        killer = threading.Timer(random.Random(number).uniform(0.1, 0.8), server.process.kill)
        writers = [
            threading.Thread(target=self.count_up, args=(server.port, f"w{i}", expected))
            for i in range(8)
        ]
        for thread in (killer, *writers):
            thread.start()
        for thread in writers:
            thread.join()
        server.process.wait()

    def count_up(self, port, name, expected):
        """Each key of a writer counts up. What was asked for and not answered may have happened."""
        no_retry = redis.retry.Retry(redis.backoff.NoBackoff(), 0)  # a killed server is final
        client = redis.Redis(port=port, protocol=2, retry=no_retry)
        keys = [f"{name}:{i}" for i in range(16)]
        try:
            while True:
                with client.pipeline(transaction=False) as pipeline:
                    for key in keys:
                        told, asked = expected.get(key, (0, 0))
                        expected[key] = (told, asked + 1)
                        pipeline.incr(key)
                    for key, value in zip(keys, pipeline.execute()):
                        expected[key] = (value, expected[key][1])
        except (redis.RedisError, OSError):
            return

    def test_replica_keeps_native_keys(self):
        primary = self.server("primary", arguments=KEYSPACE)
        self.fill(primary.client)
        replica = self.server("replica", arguments=KEYSPACE)
        replica.client.set("stale", "1")
        replica.follow(primary)
        for i in range(100):
            primary.client.incr("counter")
        primary.client.execute_command("WAIT", 1, 60000)
        self.assertEqual(replica.digest(), primary.digest())
        self.assert_kept(replica)

    def test_into_a_new_pool(self):
        """A server with data gets the module: what its file has is durable from then on."""
        server = self.server(arguments=KEYSPACE, module=False)
        self.fill(server.client)
        server.client.save()
        server.kill()
        server.module = True
        server.start()
        (server.folder / "dump.rdb").unlink()
        self.assert_kept(server)

    def test_older_file_beside_the_pool(self):
        server = self.server(arguments=KEYSPACE)
        self.fill(server.client)
        server.client.save()
        server.client.set("s2", "newer")
        server.client.delete("h")
        self.assert_kept(server)
        self.assertEqual(server.client.get("s2"), b"newer")

    def test_consumer_groups(self):
        """The server tells of no event when a group's pending entries change."""
        server = self.server(arguments=KEYSPACE)
        client = server.client
        for i in range(1, 7):
            client.xadd("st", {"f": "v"}, id=f"1-{i}")
        client.xgroup_create("st", "g", "0")
        client.xreadgroup("g", "alice", {"st": ">"}, count=4)
        self.assert_kept_groups(server)
        client.xack("st", "g", "1-1")
        self.assert_kept_groups(server)
        client.xclaim("st", "g", "bob", 0, ["1-2"])
        self.assert_kept_groups(server)
        with client.pipeline() as pipeline:
            pipeline.set("other", 1)
            pipeline.xack("st", "g", "1-3")
            pipeline.execute()
        self.assert_kept_groups(server)
        client.eval("redis.call('XACK', KEYS[1], 'g', '1-4')", 1, "st")
        self.assert_kept_groups(server)
        client.xreadgroup("g", "alice", {"st": ">"}, noack=True)
        self.assert_kept_groups(server)

    def assert_kept_groups(self, server, stream="st", group="g"):
        def groups():
            pending = server.client.xpending_range(stream, group, "-", "+", 10)
            entries = [(entry["message_id"], entry["consumer"]) for entry in pending]
            return entries, server.client.xinfo_groups(stream)[0]["last-delivered-id"]

        before = groups()
        server.restart()
        self.assertEqual(groups(), before)
        return before[0]

    def test_blocked_readers(self):
        """An entry that a blocked reader is given is a change without an event, too."""
        server = self.server(arguments=KEYSPACE)
        for group in ("g", "STREAMS", "block"):
            for add in (self.one_by_one, self.as_transaction, self.as_script):
                for stream in ("st", "other"):
                    server.client.flushall()
                    server.client.xgroup_create("st", group, mkstream=True)
                    server.client.xgroup_create("other", group, mkstream=True)
                    reader = self.blocked_reader(server, group)
                    add(server.client, ["SET a", 1], [f"XADD {stream} * f", 1], ["SET b", 1])
                    reader.join()
                    self.assertEqual(len(self.assert_kept_groups(server, stream, group)), 1)

    def test_blocked_readers_and_exchanged_databases(self):
        """The entry is in the stream of another database, which takes the place of the reader's."""
        server = self.server(arguments=KEYSPACE)
        other = redis.Redis(port=server.port, db=1, protocol=2)
        for client in (server.client, other):
            for stream in ("st", "other"):
                client.xgroup_create(stream, "g", mkstream=True)
                client.xgroup_createconsumer(stream, "g", "alice")  # or an event tells of her
        other.xadd("st", {"f": "v"})
        reader = self.blocked_reader(server, "g")
        server.client.swapdb(0, 1)
        reader.join()
        self.assertEqual(len(self.assert_kept_groups(server)), 1)

    def blocked_reader(self, server, group):
        """A consumer that waits for an entry of two streams and ends when it has one."""
        client = server.connect()
        words = ("XREADGROUP", "GROUP", group, "alice", "BLOCK", 0, "STREAMS", "st", "other")
        reader = threading.Thread(target=lambda: client.execute_command(*words, ">", ">"))
        reader.start()
        wait_for(lambda: server.client.info("clients")["blocked_clients"] == 1, "no client waits")
        return reader


if __name__ == "__main__":
    unittest.main()
