"""Tables survive what a server meets: kill -9, restarts, RDB and AOF, forks."""

import random
import threading
import time

from servers import ServerTest, kills, redis, seed, unittest, wait_for


class PersistenceTest(ServerTest):
    def fill(self, server, count=300):
        px = server.client.execute_command
        px("PX.CREATE", "hash", "ENGINE", "elimda")
        px("PX.CREATE", "numbers", "ENGINE", "nbtree", "KEYS", "u64", "VALUES", "u64")
        for i in range(count):
            px("PX.PUT", "words", f"w{i}", f"v{i}")
            px("PX.PUT", "hash", f"h{i}", f"v{i}" * 20)
            px("PX.PUT", "numbers", i, i * i)
        px("PX.DEL", "words", "w0", "w1")
        server.client.pexpire("hash", 10_000_000)
        px("SELECT", 2)
        px("PX.PUT", "elsewhere", "a", "1")
        px("SELECT", 0)

    def test_kill(self):
        server = self.server()
        self.fill(server)
        digest = server.digest()
        for _ in range(3):
            server.restart()
            self.assertEqual(server.digest(), digest)
            self.assertGreater(server.client.pttl("hash"), 9_000_000)
            self.assertEqual(server.client.execute_command("PX.LEN", "words"), 298)
        server.restart(kill=False)
        self.assertEqual(server.digest(), digest)
        self.assertEqual(server.info("pool_was_clean"), 1)

    def test_durability_power(self):
        server = self.server(arguments=["durability", "power", "mode", "keyspace"])
        self.fill(server, 30)
        server.client.rpush("native", "a", "b")
        digest = server.digest()
        self.assertEqual(server.info("pool_durability"), "power")
        server.restart()
        self.assertEqual(server.digest(), digest)

    def test_changes_of_keys(self):
        """RENAME, COPY, MOVE, SWAPDB, PERSIST, DEL and overwriting are as durable as a write."""
        server = self.server()
        self.fill(server)
        client = server.client
        client.rename("words", "renamed")
        client.copy("numbers", "copy")
        client.move("numbers", 3)
        client.persist("hash")
        client.execute_command("PX.PUT", "gone", "a", "1")
        client.delete("gone")
        client.execute_command("PX.PUT", "overwritten", "a", "1")
        client.set("overwritten", "native")
        client.swapdb(0, 2)
        digest = server.digest()
        server.restart()
        names = {name for name in server.client.keys()}
        self.assertEqual(names, {b"elsewhere"})
        other = redis.Redis(port=server.port, db=2, protocol=2)
        self.assertEqual(set(other.keys()), {b"renamed", b"copy", b"hash"})
        self.assertEqual(other.ttl("hash"), -1)
        other.set("overwritten", "native")  # native keys are not kept in this mode
        self.assertEqual(server.digest(), digest)

    def test_flush(self):
        server = self.server()
        self.fill(server)
        for flush in ("FLUSHALL", "FLUSHALL ASYNC", "FLUSHDB"):
            server.client.execute_command(flush)
            server.client.execute_command("PX.PUT", "after", "a", flush)
            server.restart()
            self.assertEqual(server.client.keys(), [b"after"])
            self.assertEqual(server.client.execute_command("PX.GET", "after", "a"), flush.encode())
        wait_for(lambda: server.info("drops_waiting") == 0, "what was flushed is not dropped")

    def test_dropped_tables_free_their_space(self):
        server = self.server()
        px = server.client.execute_command
        for round_number in range(4):
            for i in range(200):
                px("PX.PUT", "t", f"{i}", "x" * 10000)
            if round_number == 0:
                first = server.info("pool_allocated_bytes")
            px("UNLINK", "t")
            wait_for(lambda: server.info("drops_waiting") == 0, "the table is not dropped")
        self.assertLess(server.info("pool_allocated_bytes"), first)
        server.restart()
        self.assertEqual(server.info("tables"), 0)

    def test_kill_at_random(self):
        """What was acknowledged is there; what was being written may be."""
        random_number = random.Random(seed())
        server = self.server()
        expected = {}
        for _ in range(kills(5)):
            unsure = self.write_until_killed(server, random_number, expected)
            server.start()
            px = server.client.execute_command
            for field, value in expected.items():
                found = px("PX.GET", "t", field)
                if field in unsure:
                    self.assertIn(found, (value, unsure[field]))
                    expected[field] = found
                else:
                    self.assertEqual(found, value)

    def write_until_killed(self, server, random_number, expected):
        """Writes one by one. Returns what the write that was not answered may have left."""
        killer = threading.Timer(random_number.uniform(0.05, 0.5), server.process.kill)
        killer.start()
        number = 0
        while True:
            field = f"f{random_number.randrange(200)}"
            number += 1
            value = f"{number}-{random_number.random()}".encode()
            try:
                server.client.execute_command("PX.PUT", "t", field, value)
            except (redis.RedisError, OSError):
                server.process.wait()
                expected.setdefault(field)
                return {field: value}
            expected[field] = value

    def test_background_save_under_load(self):
        """The forked child gets the tables from a thread of the parent, which goes on writing."""
        server = self.server()
        self.fill(server, 2000)
        stop = threading.Event()
        writer = threading.Thread(target=self.write_until, args=(server.port, stop))
        writer.start()
        try:
            for _ in range(3):
                self.save(server)
        finally:
            stop.set()
            writer.join()
        self.assertEqual(server.client.info("persistence")["rdb_last_bgsave_status"], "ok")

    def save(self, server):
        before = server.client.lastsave()
        while server.client.lastsave() == before:
            try:
                server.client.bgsave()
            except redis.ResponseError:
                pass
            wait_for(
                lambda: not server.client.info("persistence")["rdb_bgsave_in_progress"],
                "BGSAVE does not end",
            )
            time.sleep(0.2)  # lastsave has a resolution of a second

    def write_until(self, port, stop):
        client = redis.Redis(port=port, protocol=2)
        number = 0
        while not stop.is_set():
            number += 1
            client.execute_command("PX.PUT", "words", f"w{number % 3000}", f"new{number}")
            client.execute_command("PX.DEL", "hash", f"h{number % 2000}")

    def test_rdb_into_a_new_pool(self):
        """A backup comes back into a new pool; a pool that was used knows better than a file."""
        server = self.server()
        self.fill(server)
        server.client.save()
        digest = server.digest()
        server.kill()
        server.pool.unlink()
        server.start()
        self.assertEqual(server.digest(), digest)
        server.restart()  # from the pool now; the file is still there
        self.assertEqual(server.digest(), digest)
        server.client.execute_command("PX.PUT", "words", "newer", "1")
        server.client.delete("numbers")
        newer = server.digest()
        server.restart()
        self.assertEqual(server.digest(), newer)

    def test_shutdown_with_a_file(self):
        """The server saves before the module closes the pool."""
        server = self.server()
        self.fill(server)
        digest = server.digest()
        server.client.shutdown(save=True)
        server.process.wait()
        server.pool.unlink()
        server.start()
        self.assertEqual(server.digest(), digest)

    def test_append_only_file(self):
        """An append-only file beside the module neither undoes nor repeats what the pool has."""
        server = self.server(options=["--appendonly", "yes", "--appendfsync", "no"])
        self.fill(server)
        server.client.execute_command("PX.INCRBY", "counter", "n", "5")
        server.client.set("native", "1")
        digest = server.digest()
        server.restart()
        self.assertEqual(server.digest(), digest)
        server.client.bgrewriteaof()
        wait_for(
            lambda: not server.client.info("persistence")["aof_rewrite_in_progress"]
            and not server.client.info("persistence")["aof_rewrite_scheduled"],
            "the rewrite does not end",
        )
        self.assertEqual(server.client.info("persistence")["aof_last_bgrewrite_status"], "ok")
        server.restart()
        self.assertEqual(server.digest(), digest)

    def test_debug_reload(self):
        server = self.server()
        self.fill(server)
        digest = server.digest()
        server.client.execute_command("DEBUG", "RELOAD")
        self.assertEqual(server.digest(), digest)
        server.restart()
        self.assertEqual(server.digest(), digest)


if __name__ == "__main__":
    unittest.main()
