"""Replicas: full synchronisation under writes, partial synchronisation, promotion."""

import random
import threading

from servers import ServerTest, redis, seed, unittest, wait_for


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


if __name__ == "__main__":
    unittest.main()
