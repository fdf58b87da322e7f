"""Replicas: full synchronisation under writes, partial synchronisation, promotion."""

import random
import threading

from servers import PATIENCE, ServerTest, redis, seed, unittest, wait_for

KEYSPACE = ["mode", "keyspace"]


class Load:
    """Writes to a server from a thread until stop()."""

    def __init__(self, server, number):
        self.client = redis.Redis(port=server.port, protocol=2)
        self.random = random.Random(number)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        number = 0
        while not self.ended.is_set():
            number += 1
            with self.client.pipeline(transaction=False) as pipeline:
                for _ in range(20):
                    self.write(pipeline, f"f{self.random.randrange(3000)}", number)
                pipeline.execute(raise_on_error=False)

    def write(self, pipeline, field, number):
        kind = self.random.random()
        if kind < 0.6:
            pipeline.execute_command("PX.PUT", "t", field, f"value {number}")
        elif kind < 0.8:
            pipeline.execute_command("PX.DEL", "t", field)
        elif kind < 0.95:
            pipeline.execute_command("PX.INCRBY", "counters", field, "1")
        elif kind < 0.97:
            pipeline.execute_command("PX.PUT", "short-lived", field, "1")
        else:
            pipeline.execute_command("UNLINK", "short-lived")

    def stop(self):
        self.ended.set()
        self.thread.join()


class ReplicationTest(ServerTest):
    def setUp(self):
        super().setUp()
        self.primary = self.server("primary")
        self.px = self.primary.client.execute_command
        for i in range(3000):
            self.px("PX.PUT", "t", f"f{i}", "x" * 100)

    def assert_same(self, *replicas):
        for replica in replicas:
            self.primary.client.execute_command("WAIT", len(replicas), 60000)
            wait_for(lambda r=replica: r.digest() == self.primary.digest(), "a replica differs")

    def test_full_synchronisation_under_writes(self):
        number = seed()
        replica = self.server("replica")
        replica.client.execute_command("PX.PUT", "stale", "a", "1")
        replica.client.execute_command("PX.PUT", "t", "stale", "1")
        load = Load(self.primary, number)
        try:
            replica.follow(self.primary)
        finally:
            load.stop()
        self.assert_same(replica)
        self.assertEqual(replica.client.exists("stale"), 0)
        with self.assertRaises(redis.exceptions.ReadOnlyError):
            replica.client.execute_command("PX.PUT", "t", "a", "1")
        digest = replica.digest()
        replica.restart()  # alone: from its own pool
        self.assertEqual(replica.digest(), digest)

    def test_partial_synchronisation(self):
        replica = self.server("replica")
        replica.follow(self.primary)
        self.assert_same(replica)
        full = self.primary.client.info("stats")["sync_full"]
        self.primary.client.execute_command("CLIENT", "KILL", "TYPE", "replica")
        for i in range(100):
            self.px("PX.PUT", "t", f"while away {i}", "1")
        replica.await_link()
        self.assert_same(replica)
        self.assertEqual(self.primary.client.info("stats")["sync_full"], full)

    def test_promotion(self):
        replica = self.server("replica")
        replica.follow(self.primary)
        for i in range(100):
            self.px("PX.PUT", "acknowledged", f"{i}", "1")
        self.assertEqual(self.primary.client.execute_command("WAIT", 1, 60000), 1)
        self.primary.kill()
        replica.client.replicaof("NO", "ONE")
        self.assertEqual(replica.client.execute_command("PX.LEN", "acknowledged"), 100)
        replica.client.execute_command("PX.PUT", "acknowledged", "after", "1")
        replica.restart()
        self.assertEqual(replica.client.execute_command("PX.LEN", "acknowledged"), 101)
        self.primary.start()  # the old primary comes back as a replica
        self.primary.follow(replica)
        wait_for(lambda: self.primary.digest() == replica.digest(), "the old primary differs")

    def test_two_replicas_and_changes_of_keys(self):
        replicas = [self.server(f"replica{i}") for i in range(2)]
        for replica in replicas:
            replica.follow(self.primary)
        client = self.primary.client
        self.px("PX.CREATE", "numbers", "ENGINE", "elimda", "KEYS", "u64", "VALUES", "u64")
        self.px("PX.INCRBY", "numbers", "1", "7")
        client.rename("t", "renamed")
        client.copy("numbers", "copy")
        client.config_set("perdix.engine", "nbtree")
        self.px("PX.PUT", "other engine", "a", "1")
        client.swapdb(0, 1)
        self.assert_same(*replicas)
        for replica in replicas:
            digest = replica.digest()
            replica.restart()
            self.assertEqual(replica.digest(), digest)

    def test_replica_kept_by_wait(self):
        """A write that WAIT counted is durable on the replica."""
        replica = self.server("replica")
        replica.follow(self.primary)
        for i in range(50):
            self.px("PX.PUT", f"table {i % 7}", f"{i}", "1")
            self.assertEqual(self.primary.client.execute_command("WAIT", 1, 60000), 1)
            if i % 10 == 9:
                replica.restart()
                names = replica.client.keys("table *")
                pairs = sum(replica.client.execute_command("PX.LEN", name) for name in names)
                self.assertEqual(pairs, i + 1)
                replica.follow(self.primary)

    def test_place_in_the_stream(self):
        """The file of a full synchronisation, or of a backup, is older than the pool beside it."""
        primary = self.server("native", KEYSPACE)
        options = ["--replicaof", f"127.0.0.1 {primary.port}"]
        replica = self.server("replica", KEYSPACE, options)
        replica.await_link()
        for server in (replica, primary):
            server.client.save()
            self.count_on(primary)
            digest = primary.digest()
            server.restart()
            replica.await_link()
            self.count_on(primary)
            self.assertNotEqual(primary.digest(), digest)
            self.assertEqual(replica.digest(), primary.digest())

    def test_reload_keeps_the_place(self):
        """DEBUG RELOAD is no start."""
        primary = self.server("native", KEYSPACE)
        replica = self.server("replica", KEYSPACE)
        for server in (primary, replica):
            server.client.set("a", 1)
            server.restart()  # with a pool that has been used
        replica.follow(primary)
        full = primary.client.info("stats")["sync_full"]
        for server in (replica, primary):
            server.client.execute_command("DEBUG", "RELOAD")
        primary.client.set("b", 1)
        primary.client.execute_command("WAIT", 1, 60000)
        replica.await_link()
        self.assertEqual(primary.client.info("stats")["sync_full"], full)
        self.assertEqual(replica.digest(), primary.digest())

    def test_place_that_the_server_does_not_forget(self):
        primary = self.server("native", KEYSPACE)
        options = ["--replicaof", f"127.0.0.1 {primary.port}", "--rename-command", "REPLICAOF", ""]
        replica = self.server("replica", KEYSPACE, options)
        replica.await_link()
        self.count_on(primary)
        replica.kill()
        self.refuses_to_start(replica, "remove the file, since the pool is newer")
        (replica.folder / "dump.rdb").unlink()
        self.assertTrue(replica.start().client.ping())

    def count_on(self, primary):
        for i in range(10):
            primary.client.incr("number")
            primary.client.rpush("list", i)
        self.assertEqual(primary.client.execute_command("WAIT", 1, 60000), 1)


class CutOffTest(ServerTest):
    """A replica that is killed in the middle of a full synchronisation has a part of the keys."""

    # In the mode `tables` keys of the server's own are between them, which the pool has not.
    FILL = """
        local value = string.rep('x', 1000)
        for i = 1, 20000 do redis.call('SET', 'native' .. i, value) end
        for i = 1, 300 do redis.call('PX.PUT', 'table' .. i, 'a', i) end"""
    MODES = ("keyspace", "tables")

    def prepare(self, mode="keyspace", load="on-empty-db"):
        """A primary with keys, and a replica that is about to take them, slowly."""
        self.primary = self.server(f"primary-{mode}", ["mode", mode], ["--rdbcompression", "no"])
        self.primary.client.eval(self.FILL, 0)
        self.follows = ["--replicaof", f"127.0.0.1 {self.primary.port}"]
        self.slowly = ["--key-load-delay", 500, "--loading-process-events-interval-bytes", 1024]
        self.slowly += ["--repl-diskless-load", load]
        options = [*self.follows, *self.slowly]
        self.replica = self.server(f"replica-{mode}", ["mode", mode], options, start=False)

    def start_and_await_part(self):
        self.replica.start(wait=False)
        wait_for(lambda: self.replica.info("committed_keys_total") > 0, "no keys arrive")
        self.assertEqual(self.replica.client.info("persistence")["loading"], 1)
        self.assertEqual(self.replica.info("partial"), 1)

    def cut_off(self):
        self.start_and_await_part()
        self.replica.kill()
        self.replica.options = self.follows
        if self.replica.arguments == ["mode", "tables"]:
            script = "for _, k in ipairs(redis.call('KEYS', 'native*')) do redis.call('DEL', k) end"
            self.primary.client.eval(script, 0)
        self.digest = self.primary.digest()

    def test_waits_for_its_primary(self):
        for mode in self.MODES:
            self.prepare(mode)
            self.cut_off()
            self.primary.kill()
            for _ in range(2):
                self.replica.start()
                self.assertEqual(self.replica.client.dbsize(), 0)
                self.assertEqual(self.replica.info("partial"), 1)
                self.replica.kill()
            self.replica.options = []
            self.refuses_to_start(self.replica, "the pool has a part of a primary's keys")
            self.assertIn("`partial serve`", self.replica.log())
            self.replica.options = self.follows
            self.replica.start()
            self.primary.start()
            self.assert_whole()

    def assert_whole(self):
        """With the primary, and alone."""
        self.replica.await_link()
        self.assertEqual(self.replica.digest(), self.digest)
        self.assertEqual(self.replica.info("partial"), 0)
        self.replica.options = []
        self.replica.restart()
        self.assertEqual(self.replica.digest(), self.digest)

    def test_killed_again_and_again(self):
        self.prepare()
        for _ in range(3):
            self.start_and_await_part()
            self.replica.kill()
        self.digest = self.primary.digest()
        self.replica.options = self.follows
        self.replica.start()
        self.assert_whole()

    def test_is_not_promoted(self):
        self.prepare()
        self.cut_off()
        self.primary.kill()
        self.replica.start()
        with self.assertRaises((redis.RedisError, OSError)):
            self.replica.connect().execute_command("REPLICAOF", "NO", "ONE")
        self.assertEqual(self.replica.process.wait(PATIENCE), 1)
        self.assertIn("was promoted before its primary had sent all keys", self.replica.log())

    def test_override(self):
        for mode in self.MODES:
            self.prepare(mode)
            self.cut_off()
            self.replica.options, arguments = [], self.replica.arguments
            self.replica.arguments = [*arguments, "partial", "serve"]
            self.replica.start()
            keys = self.replica.client.dbsize()
            self.assertTrue(0 < keys < self.primary.client.dbsize(), keys)
            wait_for(lambda: self.replica.info("partial") == 0, "the mark stays")
            self.replica.arguments = arguments
            self.replica.restart()
            self.assertEqual(self.replica.client.dbsize(), keys)

    def test_does_not_take_its_file(self):
        """It may be of any age. It has a place in the stream, too, which is of no use then."""
        for mode in self.MODES:
            self.prepare(mode, load="disabled")
            self.cut_off()
            self.replica.start()
            self.assert_whole()

    def test_does_not_take_its_file_alone(self):
        """Its primary comes later."""
        for mode in self.MODES:
            self.prepare(mode, load="disabled")
            self.cut_off()
            self.primary.kill()
            self.replica.start()
            kept = 0 if mode == "keyspace" else 20000  # native keys that no pool has
            self.assertEqual(self.replica.client.dbsize(), kept)
            self.assertEqual(self.replica.info("partial"), 1)
            self.primary.start()
            self.assert_whole()

    def test_empty_file_with_a_place(self):
        """What a synchronisation with an empty primary has left."""
        self.prepare(load="disabled")
        self.primary.client.flushall()
        self.replica.options = self.follows
        self.replica.start()
        self.replica.await_link()
        self.replica.kill()
        self.primary.client.eval(self.FILL, 0)
        self.replica.options = [*self.follows, *self.slowly, "--repl-diskless-load", "on-empty-db"]
        self.cut_off()
        self.primary.kill()
        self.replica.start()
        self.assertEqual(self.replica.client.dbsize(), 0)
        self.assertEqual(self.replica.info("partial"), 1)
        self.primary.start()
        self.assert_whole()

    def test_does_not_take_an_empty_file(self):
        self.prepare()
        self.replica.options += ["--appendonly", "yes"]
        self.cut_off()
        self.primary.kill()
        self.replica.options += ["--appendonly", "yes"]
        self.replica.start()
        self.assertEqual(self.replica.client.dbsize(), 0)
        self.assertEqual(self.replica.info("partial"), 1)
        self.primary.start()
        self.replica.await_link()
        self.assertEqual(self.replica.info("partial"), 0)
        self.assertEqual(self.replica.digest(), self.digest)

    def test_promotion_of_what_is_there(self):
        """A server that was not restarted has what its pool has, as it would without the module."""
        self.prepare()
        self.start_and_await_part()
        self.primary.kill()
        wait_for(self.replica.answers, "the load does not end")
        self.assertEqual(self.replica.info("partial"), 1)
        self.replica.client.replicaof("NO", "ONE")
        self.replica.client.set("own", 1)
        self.assertEqual(self.replica.info("partial"), 0)
        digest = self.replica.digest()
        self.replica.options = []
        self.replica.restart()
        self.assertEqual(self.replica.digest(), digest)



if __name__ == "__main__":
    unittest.main()
