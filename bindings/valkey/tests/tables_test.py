"""The commands of tables, as clients see them."""

import unittest

from servers import KIND, ServerTest, redis


ORDERED = ("sptree", "nbtree", "fastfair", "tips:btree", "tips:art", "tips:bst", "tips:lfbst")
HASHED = ("elimda", "cceh", "tips:hash", "tips:clht", "tips:lfhash")


class TablesTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.a = self.server()
        self.px = self.a.client.execute_command

    def refuses(self, text, *command):
        with self.assertRaises(redis.ResponseError) as caught:
            self.px(*command)
        self.assertIn(text, str(caught.exception))

    def test_put_and_get(self):
        self.assertEqual(self.px("PX.PUT", "t", "a", "1", "b", "2"), b"OK")
        self.assertEqual(self.px("PX.GET", "t", "a"), b"1")
        self.assertIsNone(self.px("PX.GET", "t", "c"))
        self.assertIsNone(self.px("PX.GET", "absent", "c"))
        self.assertEqual(self.px("PX.MGET", "t", "a", "c", "b"), [b"1", None, b"2"])
        self.assertEqual(self.px("PX.MGET", "absent", "a"), [None])
        self.assertEqual(self.px("PX.LEN", "t"), 2)
        self.assertEqual(self.px("PX.LEN", "absent"), 0)
        self.assertEqual(self.px("PX.EXISTS", "t", "a", "a", "c"), 2)
        self.assertEqual(self.px("PX.DEL", "t", "a", "c"), 1)
        self.assertEqual(self.px("PX.DEL", "absent", "a"), 0)
        self.assertEqual(self.px("PX.LEN", "t"), 1)
        self.assertEqual(self.a.client.type("t"), b"perdixtbl")

    def test_any_bytes(self):
        field, value = bytes(range(256)), bytes(reversed(range(256))) * 1000
        self.px("PX.PUT", "t", field, value)
        self.px("PX.PUT", "t", "", "")
        self.assertEqual(self.px("PX.GET", "t", field), value)
        self.assertEqual(self.px("PX.GET", "t", ""), b"")
        self.assertEqual(self.px("PX.RANGE", "t", "-", "+"), [b"", b"", field, value])

    def test_insert_and_compare(self):
        self.assertEqual(self.px("PX.INSERT", "t", "a", "1"), 1)
        self.assertEqual(self.px("PX.INSERT", "t", "a", "2"), 0)
        self.assertEqual(self.px("PX.CAS", "t", "a", "2", "3"), 0)
        self.assertEqual(self.px("PX.CAS", "t", "a", "1", "3"), 1)
        self.assertEqual(self.px("PX.CAS", "t", "b", "", "3"), 0)
        self.assertEqual(self.px("PX.GET", "t", "a"), b"3")

    def test_increment(self):
        self.assertEqual(self.px("PX.INCRBY", "t", "n", "5"), 5)
        self.assertEqual(self.px("PX.INCRBY", "t", "n", "-7"), -2)
        self.px("PX.PUT", "t", "word", "x")
        self.refuses("not an integer", "PX.INCRBY", "t", "word", "1")
        self.refuses("not an integer", "PX.INCRBY", "t", "n", "one")
        self.px("PX.PUT", "t", "n", "9223372036854775807")
        self.refuses("overflow", "PX.INCRBY", "t", "n", "1")

    def test_numbers(self):
        self.px("PX.CREATE", "n", "KEYS", "u64", "VALUES", "u64")
        self.px("PX.PUT", "n", "18446744073709551615", "0", "9", "1", "10", "2")
        self.assertEqual(
            self.px("PX.RANGE", "n", "-", "+"),
            [b"9", b"1", b"10", b"2", b"18446744073709551615", b"0"],
        )
        self.assertEqual(self.px("PX.RANGE", "n", "(9", "[10"), [b"10", b"2"])
        self.assertEqual(self.px("PX.INCRBY", "n", "9", "41"), 42)
        self.refuses("overflow", "PX.INCRBY", "n", "9", "-43")
        self.refuses("numbers", "PX.PUT", "n", "nine", "1")
        self.refuses("numbers", "PX.GET", "n", "18446744073709551616")

    def test_ranges(self):
        fields = [f"{i:03}" for i in range(100)]
        for field in fields:
            self.px("PX.PUT", "t", field, "v" + field)

        def shown(*command):
            return [field.decode() for field in self.px(*command, "NOVALUES")]

        self.assertEqual(shown("PX.RANGE", "t", "-", "+"), fields)
        self.assertEqual(shown("PX.RANGE", "t", "[010", "(013"), ["010", "011", "012"])
        self.assertEqual(shown("PX.RANGE", "t", "(010", "[013"), ["011", "012", "013"])
        self.assertEqual(shown("PX.RANGE", "t", "[0105", "+", "LIMIT", "2"), ["011", "012"])
        self.assertEqual(shown("PX.RANGE", "t", "+", "-"), [])
        self.assertEqual(shown("PX.RANGE", "t", "-", "+", "LIMIT", "0"), [])
        self.assertEqual(shown("PX.REVRANGE", "t", "+", "-"), fields[::-1])
        self.assertEqual(shown("PX.REVRANGE", "t", "[013", "(010"), ["013", "012", "011"])
        self.assertEqual(shown("PX.REVRANGE", "t", "(013", "[010"), ["012", "011", "010"])
        self.assertEqual(shown("PX.REVRANGE", "t", "+", "-", "LIMIT", "1"), ["099"])
        self.assertEqual(self.px("PX.RANGE", "t", "[007", "[007"), [b"007", b"v007"])
        self.assertEqual(self.px("PX.RANGE", "absent", "-", "+"), [])
        self.refuses("not valid string range", "PX.RANGE", "t", "a", "+")
        self.refuses("syntax", "PX.RANGE", "t", "-", "+", "LIMIT")

    def test_every_engine(self):
        for engine in ORDERED + HASHED:
            with self.subTest(engine=engine):
                self.px("PX.CREATE", engine, "ENGINE", engine)
                pairs = {f"f{i}".encode(): f"v{i}".encode() for i in range(500)}
                for field, value in pairs.items():
                    self.px("PX.PUT", engine, field, value)
                self.assertEqual(self.px("PX.LEN", engine), 500)
                self.assertEqual(self.scan(engine, 7), pairs)
                description = self.px("PX.INFO", engine)
                self.assertEqual(description[description.index(b"engine") + 1], engine.encode())
                if engine in HASHED:
                    self.refuses("no order", "PX.RANGE", engine, "-", "+")
                else:
                    fields = self.px("PX.RANGE", engine, "-", "+", "NOVALUES")
                    self.assertEqual(fields, sorted(pairs))

    def scan(self, key, count, *options):
        """All pairs that a scan shows; none may come twice."""
        shown = {}
        cursor = b"0"
        while True:
            cursor, flat = self.px("PX.SCAN", key, cursor, "COUNT", count, *options)
            for field, value in zip(flat[::2], flat[1::2]):
                self.assertNotIn(field, shown)
                shown[field] = value
            if cursor == b"0":
                return shown

    def test_scan_survives_changes(self):
        for engine in ("sptree", "elimda"):
            with self.subTest(engine=engine):
                self.px("PX.CREATE", engine, "ENGINE", engine)
                for i in range(1000):
                    self.px("PX.PUT", engine, f"{i:04}", "stays" if i % 2 else "goes")
                shown = set()
                cursor, step = b"0", 0
                while True:
                    cursor, flat = self.px("PX.SCAN", engine, cursor, "COUNT", 20)
                    shown.update(flat[::2])
                    if cursor == b"0":
                        break
                    for i in range(0, 1000, 2):
                        if i // 2 % 25 == step % 25:
                            self.px("PX.DEL", engine, f"{i:04}")
                    self.px("PX.PUT", engine, f"new{step}", "new")
                    step += 1
                self.assertLessEqual({f"{i:04}".encode() for i in range(1, 1000, 2)}, shown)

    def test_scan_patterns(self):
        for field in ("apple", "apricot", "banana", "a*b"):
            self.px("PX.PUT", "t", field, "1")
        self.assertEqual(set(self.scan("t", 2, "MATCH", "ap*")), {b"apple", b"apricot"})
        self.assertEqual(set(self.scan("t", 2, "MATCH", "[^a]*")), {b"banana"})
        self.assertEqual(set(self.scan("t", 2, "MATCH", "a\\*?")), {b"a*b"})
        fruit = {b"apple", b"apricot", b"banana"}
        self.assertEqual(set(self.scan("t", 2, "MATCH", "*[m-p]*")), fruit)
        self.assertEqual(self.scan("absent", 2), {})
        self.refuses("cursor", "PX.SCAN", "t", "17")
        self.refuses("syntax", "PX.SCAN", "t", "0", "COUNT", "0")

    def test_create(self):
        self.px("PX.CREATE", "t", "ENGINE", "nbtree")
        self.px("PX.CREATE", "t", "ENGINE", "nbtree")
        self.refuses("engine nbtree", "PX.CREATE", "t", "ENGINE", "sptree")
        self.refuses("unheard-of", "PX.CREATE", "other", "ENGINE", "unheard-of")
        self.refuses("elf", "PX.CREATE", "other", "ENGINE", "elf")
        self.assertEqual(self.a.client.exists("other"), 0)
        self.assertEqual(self.px("PX.CREATE", "other"), b"OK")

    def test_wrong_type(self):
        self.a.client.set("s", "1")
        self.refuses("WRONGTYPE", "PX.PUT", "s", "a", "1")
        for command in ("PX.GET", "PX.MGET", "PX.DEL", "PX.EXISTS"):
            self.refuses("WRONGTYPE", command, "s", "a")
        self.px("PX.PUT", "t", "a", "1")
        self.refuses("WRONGTYPE", "GET", "t")
        self.refuses("wrong number", "PX.PUT", "t", "a")
        self.refuses("wrong number", "PX.PUT", "t", "a", "1", "b")
        self.refuses("wrong number", "PX.GET", "t")

    def test_too_large(self):
        self.refuses("PXSIZE", "PX.PUT", "t", b"k" * 65536, "1")
        self.assertEqual(self.px("PX.PUT", "t", b"k" * 65535, "1"), b"OK")

    def test_generic_commands(self):
        client = self.a.client
        self.px("PX.PUT", "t", "a", "1")
        self.assertTrue(client.copy("t", "copy"))
        self.px("PX.PUT", "t", "a", "2")
        self.assertEqual(self.px("PX.GET", "copy", "a"), b"1")
        dumped = client.dump("t")
        client.restore("restored", 0, dumped)
        self.assertEqual(self.px("PX.GET", "restored", "a"), b"2")
        self.assertGreater(client.memory_usage("t"), 0)
        client.rename("restored", "renamed")
        self.assertEqual(self.px("PX.GET", "renamed", "a"), b"2")
        client.move("renamed", 3)
        self.assertEqual(client.exists("renamed"), 0)
        client.unlink("t")
        self.assertIsNone(self.px("PX.GET", "t", "a"))
        client.set("copy", "native now")
        self.assertEqual(client.get("copy"), b"native now")
        self.assertEqual(client.dbsize(), 1)

    def test_expiry(self):
        self.px("PX.PUT", "t", "a", "1")
        self.a.client.pexpire("t", 1)
        while self.a.client.exists("t"):
            pass
        self.assertIsNone(self.px("PX.GET", "t", "a"))

    def test_what_clients_are_told(self):
        self.a.client.response_callbacks.clear()
        docs = self.px("COMMAND", "DOCS", "px.put")
        documented = dict(zip(docs[1][::2], docs[1][1::2]))
        self.assertEqual(documented[b"summary"], b"Sets values of fields, durably")
        self.assertIn(b"arguments", documented)
        told = self.px("COMMAND", "INFO", "px.put")[0]
        name, arity, flags, first, last, step, categories, *_ = told
        self.assertEqual((name, arity, first, last, step), (b"px.put", -4, 1, 1, 1))
        self.assertIn(b"write", flags)
        if KIND != "redis-7":  # which lets no module say so
            self.assertIn(b"@write", categories)
        self.assertNotIn(b"denyoom", flags)
        self.assertEqual(self.px("COMMAND", "GETKEYS", "PX.MGET", "t", "a", "b"), [b"t"])
        keys = self.px("COMMAND", "GETKEYSANDFLAGS", "PX.GET", "t", "a")
        self.assertEqual(keys, [[b"t", [b"RO", b"access"]]])

    def test_access_control(self):
        # Redis 7.0 puts the commands of modules into no categories.
        reads = ["+px.get"] if KIND == "redis-7" else ["+@read"]
        self.px("ACL", "SETUSER", "reader", "on", ">secret", "~t*", "+@connection", *reads)
        self.px("PX.PUT", "t", "a", "1")
        reader = redis.Redis(port=self.a.port, username="reader", password="secret", protocol=2)
        self.assertEqual(reader.execute_command("PX.GET", "t", "a"), b"1")
        for command in (("PX.PUT", "t", "a", "2"), ("PX.GET", "other", "a")):
            with self.assertRaises(redis.exceptions.NoPermissionError):
                reader.execute_command(*command)

    def test_keyspace_events(self):
        self.a.client.config_set("notify-keyspace-events", "KEA")
        listener = self.a.client.pubsub()
        listener.psubscribe("__keyspace@0__:t")
        self.px("PX.PUT", "t", "a", "1")
        self.px("PX.INCRBY", "t", "a", "1")
        self.px("PX.CAS", "t", "a", "2", "3")
        self.px("PX.DEL", "t", "a")
        events = []
        while len(events) < 5:
            message = listener.get_message(timeout=10)
            self.assertIsNotNone(message, events)
            if message["type"] == "pmessage":
                events.append(message["data"])
        self.assertEqual(events, [b"px.create", b"px.put", b"px.incrby", b"px.cas", b"px.del"])

    def test_transactions_and_watch(self):
        client = self.a.client
        with client.pipeline() as pipeline:
            pipeline.execute_command("PX.PUT", "t", "a", "1")
            pipeline.execute_command("PX.GET", "t", "a")
            self.assertEqual(pipeline.execute(), [b"OK", b"1"])
        with client.pipeline() as pipeline:
            pipeline.watch("t")
            self.px("PX.PUT", "t", "a", "2")
            pipeline.multi()
            pipeline.execute_command("PX.PUT", "t", "a", "3")
            with self.assertRaises(redis.WatchError):
                pipeline.execute()
        script = "return redis.call('PX.INCRBY', KEYS[1], ARGV[1], 5)"
        self.assertEqual(client.eval(script, 1, "t", "a"), 7)

    def test_settings(self):
        client = self.a.client
        self.assertEqual(client.config_get("perdix.engine")["perdix.engine"], "sptree")
        client.config_set("perdix.engine", "nbtree")
        self.px("PX.PUT", "t", "a", "1")
        self.assertIn(b"nbtree", self.px("PX.INFO", "t"))
        self.refuses("engine", "CONFIG", "SET", "perdix.engine", "unheard-of")
        self.refuses("immutable", "CONFIG", "SET", "perdix.path", "/elsewhere")
        client.config_set("perdix.dram-budget", "64mb")
        self.assertEqual(client.config_get("perdix.dram-budget")["perdix.dram-budget"], "67108864")
        self.px("PX.PUT", "without", "a", "1")  # nbtree has no such option
        for engine in ("sptree", "cceh", "tips:hash"):
            self.px("PX.CREATE", engine, "ENGINE", engine)
            self.px("PX.PUT", engine, "a", "1")
            self.assertEqual(self.px("PX.GET", engine, "a"), b"1")

    def dram_bytes(self, key):
        words = self.px("PX.INFO", key)
        return dict(zip(words[::2], words[1::2]))[b"dram_bytes"]

    def test_technique(self):
        """Buffers are DRAM that a table has beside what it has without them."""
        client = self.a.client
        self.refuses("technique", "CONFIG", "SET", "perdix.technique", "c")
        client.config_set("perdix.dram-budget", "1mb")
        for engine in ("cceh", "fastfair", "skiplist"):
            for technique in ("none", "b", "bo", "boc"):
                client.config_set("perdix.technique", technique)
                self.assertEqual(
                    client.config_get("perdix.technique")["perdix.technique"], technique
                )
                key = f"{engine}-{technique}"
                self.px("PX.CREATE", key, "ENGINE", engine)
                for i in range(100):
                    self.px("PX.PUT", key, f"f{i}", f"v{i}")
                self.assertEqual(self.px("PX.GET", key, "f99"), b"v99")
                plain = self.dram_bytes(f"{engine}-none")
                if technique != "none":
                    self.assertGreater(self.dram_bytes(key), plain, key)
        for engine in ("sptree", "nbtree"):  # they need none, or have no buffers
            self.px("PX.CREATE", engine, "ENGINE", engine)
            self.px("PX.PUT", engine, "a", "1")

    def test_technique_may_differ_at_each_start(self):
        server = self.server("techniques")
        for starts, technique in enumerate(("b", "none", "boc"), 1):
            server.arguments = ["engine", "cceh", "dram-budget", "1mb", "technique", technique]
            server.restart()
            for i in range(50):
                server.client.execute_command("PX.PUT", "t", f"{technique}{i}", "1")
            self.assertEqual(server.client.execute_command("PX.LEN", "t"), 50 * starts)

    def test_info(self):
        self.px("PX.PUT", "t", "a", "1")
        self.assertEqual(self.a.info("tables"), 1)
        self.assertEqual(self.a.info("mode"), "tables")
        self.assertEqual(self.a.info("pool_durability"), "process")
        self.assertGreater(self.a.info("pool_size_bytes"), 0)

    def test_access_control(self):
        """By categories, which Redis 7.0 does not have for commands of modules."""
        client = self.a.client
        client.execute_command("PX.PUT", "t", "a", "1")
        for rules, reads, writes in (
            ("-@all +@read", KIND != "redis-7", False),
            ("+@all -@write", True, KIND == "redis-7"),
            ("-@all +px.get", True, False),
            ("+@all -px.put", True, False),
        ):
            client.execute_command("ACL", "SETUSER", "u", "reset", "~*", *rules.split())
            for words, allowed in (("px.get t a", reads), ("px.put t a 1", writes)):
                answer = client.execute_command("ACL", "DRYRUN", "u", *words.split())
                self.assertEqual(answer == b"OK", allowed, (rules, words, answer))


if __name__ == "__main__":
    print(f"server: {KIND}")
    unittest.main()
