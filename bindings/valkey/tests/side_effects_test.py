"""What clients and operators see beside the data is as without the module, but for what the README
lists: each test compares a server with the module with one that has none."""

from servers import ServerTest, redis, unittest, wait_for

KEYSPACE = ["mode", "keyspace"]
OWN_READS = ("getex", "dump")  # by which the module reads values


class SideEffectsTest(ServerTest):
    def both(self, options=()):
        """A server without the module, and one with it."""
        plain = self.server("plain", options=options, module=False)
        return plain, self.server("with", KEYSPACE, options)

    def write(self, client):
        """Writes, and removes, values of each kind of record."""
        for i in range(20):
            client.set("text", i)
            client.set("long", "x" * (100 + i))
            client.hset("hash", f"f{i}", i)
            client.rpush("list", i)
            client.set("gone", i)
            client.delete("gone", "never")
        client.expire("list", 1000)
        client.rename("long", "renamed")
        client.copy("hash", "copied")

    def test_statistics(self):
        """The module's own reads count as those of a client, and nothing else does."""
        found = []
        for server in self.both(["--notify-keyspace-events", "KEAm"]):
            missed = server.connect().pubsub()
            missed.psubscribe("__key*__:keymiss")
            server.client.config_resetstat()
            self.write(server.client)
            calls = server.client.info("commandstats")
            stats = server.client.info("stats")
            own = sum(calls.pop(f"cmdstat_{name}", {"calls": 0})["calls"] for name in OWN_READS)
            misses = self.messages(server, missed, "__keyevent@0__:keymiss")
            found.append((
                {name: entry["calls"] for name, entry in calls.items()},
                stats["keyspace_hits"] - own, stats["keyspace_misses"], misses,
            ))
        self.assertEqual(*found)

    def messages(self, server, pubsub, channel):
        """What was published before a last message of ours."""
        server.client.publish(channel, "the end")
        found = []
        while not found or found[-1] != b"the end":
            message = pubsub.get_message(ignore_subscribe_messages=True, timeout=60)
            if message:
                found.append(message["data"])
        return found

    def test_frequency(self):
        """Each touch of a key counts once."""
        options = ["--maxmemory-policy", "allkeys-lfu", "--lfu-log-factor", 0]
        found = []
        for server in self.both([*options, "--lfu-decay-time", 0]):
            self.write(server.client)
            names = sorted(server.client.keys())
            found.append([(name, server.client.object("FREQ", name)) for name in names])
        self.assertEqual(*found)

    def test_age(self):
        found = []
        for server in self.both():
            client = server.client
            client.set("text", 1)
            client.rpush("list", 1)
            for name in ("text", "list"):
                old = f"old {name}"
                client.execute_command("RESTORE", old, 0, client.dump(name), "IDLETIME", 999)
                found.append(client.object("IDLETIME", old))
        # Valkey 9.1 sets another age than a module gives: there a key with the module is as new.
        version = server.client.info("server").get("valkey_version", "0.0")
        least = 0 if tuple(map(int, version.split(".")[:2])) >= (9, 1) else 999
        self.assertEqual([age for age in found[:2] if not 999 <= age < 1999], [])
        self.assertEqual([age for age in found[2:] if not least <= age < 1999], [])

    def test_expired(self):
        """A key that is written with a time in the past is there until the server removes it."""
        found = []
        for server in self.both():
            client = server.client
            try:
                client.execute_command("DEBUG", "SET-ACTIVE-EXPIRE", 0)
                client.execute_command("MSETEX", 1, "k", "v", "PXAT", 1)
            except redis.ResponseError as error:
                self.skipTest(f"the server has no such command: {error}")
            found.append(client.dbsize())
            server.client.set("after", 1)
            self.assertIsNone(client.get("k"))
        self.assertEqual(found, [1, 1])

    def test_tracking(self):
        """A client hears of keys that it has read, and not of strings that it has only written."""
        found = []
        for server in self.both():
            listener, number = self.listener(server)
            client = server.client.client()  # one connection
            client.execute_command("CLIENT", "TRACKING", "ON", "REDIRECT", number)
            for key in ("written", "read", "end"):
                client.set(key, 1)
            client.get("read")
            client.get("end")
            for key in ("written", "read", "end"):
                server.client.set(key, 2)
            found.append(self.invalidated(listener))
        self.assertEqual(*found)
        self.assertEqual(found[0], [b"read", b"end"])

    def listener(self, server):
        """A connection that is told what other ones are to forget, and its number."""
        connection = server.connect().connection_pool.get_connection()
        connection.send_command("CLIENT", "ID")
        number = connection.read_response()
        connection.send_command("SUBSCRIBE", "__redis__:invalidate")
        connection.read_response()
        return connection, number

    def invalidated(self, listener):
        found = []
        while not found or found[-1] != b"end":
            found += listener.read_response()[2]
        return found

    def test_watched_tables(self):
        """A change of a table ends the transaction of a client that watches it."""
        server = self.server()
        with server.client.pipeline() as pipeline:
            pipeline.watch("t")
            server.client.execute_command("PX.PUT", "t", "a", "1")
            pipeline.multi()
            pipeline.set("k", 1)
            with self.assertRaises(redis.WatchError):
                pipeline.execute()

    def test_start(self):
        """What gives the keys back is no client's command."""
        server = self.server(arguments=KEYSPACE, options=["--slowlog-log-slower-than", "0"])
        self.write(server.client)
        server.restart()
        calls = server.client.info("commandstats")
        self.assertEqual([name for name in calls if name in ("cmdstat_set", "cmdstat_restore")], [])
        slow = server.client.execute_command("SLOWLOG", "GET", 100)
        self.assertEqual([entry for entry in slow if b"RESTORE" in str(entry).encode()], [])
        wait_for(lambda: server.info("undurable_keys") == 0, "keys wait")


if __name__ == "__main__":
    unittest.main()
