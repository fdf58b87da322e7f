"""A device that is full or fails: writes get an error, reads go on, what was told is kept.

Full devices and broken ones are made by failing_device.cc, which is loaded before the server.
"""

import os

from servers import PATIENCE, ServerTest, redis, unittest, wait_for

KEYSPACE = ["mode", "keyspace"]
POWER = ["durability", "power"]  # only then the module waits for the device
VALUE = "x" * 10000


class DeviceTest(ServerTest):
    def failing_server(self, arguments):
        server = self.server(arguments=arguments, start=False)
        server.device_can_fail = True
        return server.start()

    def assert_refused(self, prefix, command, *words):
        with self.assertRaises(redis.ResponseError) as caught:
            command(*words)
        self.assertTrue(str(caught.exception).startswith(prefix), caught.exception)

    def write_until_refused(self, write):
        """Returns how many writes were acknowledged, and the error."""
        for number in range(100000):
            try:
                write(number)
            except redis.ResponseError as error:
                return number, str(error)
        raise AssertionError("no write is refused")

    # --- A file that goes

    def test_native_keys_without_the_file(self):
        """The server would go on in a file that the next start does not find."""
        server = self.server(arguments=KEYSPACE)
        server.client.set("k", "1")
        self.lose_file(server)
        self.assert_refused("PXIO the pool's file", server.client.set, "k", "2")
        self.assert_refused("PXIO the pool's file", server.client.delete, "k")
        self.assertEqual(server.client.get("k"), b"1")
        server.client.save()  # the way out: a new pool takes it
        server.restart()
        self.assertEqual(server.client.get("k"), b"1")

    def test_tables_without_the_file(self):
        server = self.server()
        px = server.client.execute_command
        px("PX.PUT", "t", "a", "1")
        self.lose_file(server, replace=True)
        for words in (("PX.PUT", "t", "a", "2"), ("PX.DEL", "t", "a"), ("PX.CREATE", "new")):
            self.assert_refused("PXIO the pool's file", px, *words)
        with self.assertRaises(redis.ConnectionError):
            server.connect().delete("t")
        server.kill()
        (server.folder / "away").rename(server.pool)
        server.start()
        self.assertEqual(server.client.execute_command("PX.GET", "t", "a"), b"1")

    def lose_file(self, server, replace=False):
        server.pool.rename(server.folder / "away")
        if replace:
            server.pool.write_bytes((server.folder / "away").read_bytes())
        wait_for(lambda: server.info("device_failed") == 1, "the loss is not noticed")

    # --- A device that fails

    def test_tables_on_a_broken_device(self):
        server = self.failing_server(POWER)
        client = server.client
        for i in range(100):
            client.execute_command("PX.PUT", "t", f"f{i}", i)
        client.set("native", "1")
        server.fail_device("eio")
        self.assert_refused("PXIO", client.execute_command, "PX.PUT", "t", "f0", "new")
        for words in (("PX.PUT", "t", "f1", "new"), ("PX.DEL", "t", "f2"), ("PX.GET", "t", "f3"),
                      ("PX.CREATE", "other"), ("PX.LEN", "t"), ("PX.RANGE", "t", "-", "+"),
                      ("PX.INCRBY", "t", "f4", "1"), ("PX.CAS", "t", "f5", "5", "6")):
            self.assert_refused("PXIO", client.execute_command, *words)
        self.assertEqual(client.get("native"), b"1")  # no concern of the pool's in this mode
        client.set("native", "2")
        self.assertEqual(server.info("device_failed"), 1)
        self.assert_back(server)

    def assert_back(self, server):
        """The device works again, and a restart shows all that was acknowledged."""
        server.repair_device()
        server.restart()
        px = server.client.execute_command
        self.assertIn(px("PX.GET", "t", "f0"), (b"0", b"new"))
        for i in range(1, 100):
            self.assertEqual(px("PX.GET", "t", f"f{i}"), str(i).encode())
        px("PX.PUT", "t", "after", "1")
        server.restart()
        self.assertEqual(server.client.execute_command("PX.LEN", "t"), 101)

    def test_key_of_a_table_on_a_broken_device(self):
        """What the pool did not take is not acknowledged: the connection is closed instead."""
        for words, gone in ((("DEL", "t"), True), (("RENAME", "t", "u"), True),
                            (("FLUSHALL",), True), (("PEXPIRE", "t", "99999"), False)):
            server = self.failing_server(POWER)
            server.client.execute_command("PX.PUT", "t", "a", "1")
            server.fail_device("eio")
            with self.assertRaises(redis.ConnectionError):
                server.connect().execute_command(*words)
            self.assertTrue(server.connect().ping())
            server.repair_device()
            server.restart()
            px = server.client.execute_command  # the command is there whole or not at all
            if words[0] == "RENAME" and px("PX.GET", "u", "a") is not None:
                self.assertEqual(px("PX.GET", "u", "a"), b"1")
                self.assertEqual(server.client.exists("t"), 0)
            elif not gone or server.client.exists("t"):
                self.assertEqual(px("PX.GET", "t", "a"), b"1", words)
            server.kill()
            server.pool.unlink()

    def test_native_keys_on_a_broken_device(self):
        server = self.failing_server([*POWER, *KEYSPACE])
        client = server.connect()
        for i in range(50):
            client.set(f"k{i}", i)
        client.rpush("list", "a", "b")
        client.set("soon", "1", px=300)
        server.fail_device("eio")
        with self.assertRaises(redis.ConnectionError):
            client.set("k0", "new")
        client = server.connect()
        for words in (("SET", "k1", "new"), ("DEL", "k2"), ("LPOP", "list"), ("FLUSHALL",),
                      ("EXPIRE", "k3", "100"), ("RENAME", "k4", "k5"), ("PX.PUT", "t", "a", "1")):
            self.assert_refused("PXIO", client.execute_command, *words)
        with self.assertRaises(redis.ResponseError):
            client.eval("redis.call('SET', 'k6', 'new')", 0)
        self.assertEqual(client.get("k1"), b"1")
        self.assertEqual(client.lrange("list", 0, -1), [b"a", b"b"])
        wait_for(lambda: client.get("soon") is None, "a key does not expire")
        self.assertEqual(client.get("k2"), b"2")
        self.assertEqual(server.info("device_failed"), 1)
        self.assertEqual(server.info("client_closings_total"), 1)
        server.repair_device()
        server.restart()
        self.assertIn(server.client.get("k0"), (b"0", b"new"))
        for i in range(1, 50):
            self.assertEqual(server.client.get(f"k{i}"), str(i).encode())
        self.assertEqual(server.client.llen("list"), 2)
        server.client.set("after", "1")
        server.restart()
        self.assertEqual(server.client.get("after"), b"1")

    def test_transaction_on_a_broken_device(self):
        server = self.failing_server([*POWER, *KEYSPACE])
        client = server.connect()
        client.mset({"a": "old", "b": "old"})
        server.fail_device("eio")
        with self.assertRaises(redis.ConnectionError):
            with client.pipeline() as pipeline:
                pipeline.set("a", "new")
                pipeline.set("b", "new")
                pipeline.execute()
        server.repair_device()
        server.restart()
        self.assertIn(server.client.mget("a", "b"), ([b"old", b"old"], [b"new", b"new"]))

    def test_start_on_a_broken_device(self):
        server = self.server(arguments=POWER, start=False)
        server.device_can_fail = True
        server.fail_device("eio")
        server.start(wait=False)
        server.process.wait(PATIENCE)
        self.assertGreater(server.process.returncode, 0, server.log())  # no signal
        server.repair_device()
        server.start()
        server.client.execute_command("PX.PUT", "t", "a", "1")

    # --- A device that does not give a page

    def losing_server(self, arguments=()):
        server = self.server(arguments=arguments)
        for i in range(2000):
            server.client.execute_command("PX.PUT", "t", f"f{i}", VALUE)
        server.client.set("native", "1")
        return server

    def lose_pages(self, server):
        """Cuts the pool's file: the kernel has no pages for what was behind. Returns it whole."""
        whole = server.pool.read_bytes()
        os.truncate(server.pool, 1 << 20)
        return whole

    def assert_back_with_pages(self, server, whole):
        server.kill()
        with open(server.pool, "r+b") as file:
            file.write(whole)
        server.start()
        px = server.client.execute_command
        self.assertEqual(px("PX.LEN", "t"), 2000)
        for i in range(0, 2000, 100):
            self.assertEqual(px("PX.GET", "t", f"f{i}"), VALUE.encode())

    def test_tables_that_lost_pages(self):
        server = self.losing_server()
        client = server.client
        whole = self.lose_pages(server)
        for words in (("PX.RANGE", "t", "-", "+"), ("PX.GET", "t", "f1"), ("PX.DEL", "t", "f2"),
                      ("PX.PUT", "t", "f1", "new"), ("PX.LEN", "t"), ("PX.CREATE", "other")):
            self.assert_refused("PXIO", client.execute_command, *words)
        self.assertEqual(client.get("native"), b"1")
        client.set("native", "2")
        self.assert_back_with_pages(server, whole)

    def test_native_keys_that_lost_pages(self):
        server = self.losing_server(KEYSPACE)
        whole = self.lose_pages(server)
        with self.assertRaises(redis.ConnectionError):
            server.connect().set("native", "2")
        client = server.connect()
        self.assertEqual(client.get("native"), b"2")
        self.assert_refused("PXIO", client.set, "native", "3")
        self.assert_back_with_pages(server, whole)
        self.assertIn(server.client.get("native"), (b"1", b"2"))

    def test_growth_of_what_lost_its_page(self):
        """The filter of `oversize refuse` reads the pool before the server executes a command."""
        server = self.losing_server([*KEYSPACE, "oversize", "refuse"])
        whole = self.lose_pages(server)
        with self.assertRaises(redis.RedisError):
            server.connect().append("native", "2")
        self.assert_refused("PXIO", server.connect().set, "native", "3")
        self.assert_back_with_pages(server, whole)

    # --- A full device

    def test_tables_on_a_full_device(self):
        server = self.failing_server([])
        px = server.client.execute_command
        px("PX.PUT", "t", "first", "1")
        server.fail_device("enospc")
        written, error = self.write_until_refused(lambda i: px("PX.PUT", "t", f"f{i}", VALUE))
        self.assertTrue(error.startswith("PXFULL"), error)
        for i in range(written):
            self.assertEqual(px("PX.GET", "t", f"f{i}"), VALUE.encode())
        px("PX.DEL", "t", *[f"f{i}" for i in range(written // 2)])
        px("PX.PUT", "t", "again", "1")
        server.repair_device()
        px("PX.MGET", "t", "first", "again")
        for i in range(2 * written):
            px("PX.PUT", "t", f"g{i}", VALUE)
        length = px("PX.LEN", "t")
        server.restart()
        self.assertEqual(server.client.execute_command("PX.LEN", "t"), length)

    def test_native_keys_on_a_full_device(self):
        server = self.failing_server(KEYSPACE)
        client = server.client
        server.fail_device("enospc")
        written, error = self.write_until_refused(lambda i: client.set(f"k{i}", VALUE))
        self.assertTrue(error.startswith("PXFULL"), error)
        self.assertEqual(client.get("k0"), VALUE.encode())
        client.delete("k0")
        self.assertEqual(server.info("undurable_keys"), 0)
        digest = server.digest()
        server.restart()
        self.assertEqual(server.digest(), digest)
        server.repair_device()
        wait_for(lambda: server.info("refuses_writes") == 0, "the refusal does not end")
        server.client.set("after", VALUE)
        server.restart()
        self.assertEqual(server.client.get("after"), VALUE.encode())
        self.assertEqual(server.client.dbsize(), written)

    def test_value_beyond_the_reserve(self):
        """A write that does not fit at all is not acknowledged, and becomes durable later."""
        server = self.server(arguments=[*KEYSPACE, "max-size", "64mb"])
        server.client.set("small", "old")
        with self.assertRaises(redis.ConnectionError):
            server.connect().set("large", "x" * (70 << 20))
        self.assertEqual(server.info("undurable_keys"), 1)
        self.assert_refused("PXFULL", server.client.set, "small", "new")
        self.assertEqual(server.client.get("small"), b"old")
        server.client.delete("large")
        wait_for(lambda: server.info("refuses_writes") == 0, "the refusal does not end")
        self.assertEqual(server.info("undurable_keys"), 0)
        server.client.set("small", "new")
        self.assert_kept(server)

    def test_transaction_beyond_the_reserve(self):
        """Its batch fits into the pool, its values do not: none of them is there later."""
        server = self.server(arguments=[*KEYSPACE, "max-size", "96mb"])
        client = server.client
        old, new = {f"k{i}": "old" for i in range(8)}, {f"k{i}": "x" * (6 << 20) for i in range(8)}
        client.mset(old)
        digest = server.digest()
        with self.assertRaises(redis.ConnectionError):
            server.connect().mset(new)
        self.assertEqual(server.info("undurable_keys"), 8)
        server.kill()
        server.start()
        self.assertEqual(server.digest(), digest)
        with self.assertRaises(redis.ConnectionError):
            server.connect().mset(new)
        server.client.delete("k0")  # acknowledged: the batch must not bring it back
        server.restart()
        self.assertEqual(server.client.mget(*old), [None] + 7 * [b"old"])

    def assert_kept(self, server):
        digest = server.digest()
        server.restart()
        self.assertEqual(server.digest(), digest)


if __name__ == "__main__":
    unittest.main()
