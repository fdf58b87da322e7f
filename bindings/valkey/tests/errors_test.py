"""What goes wrong is an error reply or a line in the log, and never the end of a server."""

import os
import random
import subprocess

from servers import KIND, ServerTest, redis, unittest, wait_for

KEYSPACE = ["mode", "keyspace"]


class ErrorsTest(ServerTest):
    def test_pool_in_use(self):
        first = self.server("first")
        second = self.server("second", start=False)
        second.pool = first.pool
        self.refuses_to_start(second, str(first.process.pid))
        self.assertTrue(first.client.ping())

    def test_foreign_file(self):
        server = self.server(start=False)
        server.pool.write_bytes(b"no pool" * 10000)
        self.refuses_to_start(server, "pool")
        self.assertEqual(server.pool.read_bytes()[:7], b"no pool")

    def test_refuses_to_serve_without_all_keys(self):
        """What it can't read a later write would destroy."""
        server = self.server(arguments=KEYSPACE)
        server.client.set("text", "1")
        server.client.rpush("queue", *[f"job{i}" for i in range(50)])
        server.client.execute_command("SELECT", 3)
        server.client.rpush("other", *[f"task{i}" for i in range(50)])
        server.client.execute_command("SELECT", 0)
        digest = server.digest()
        dump = server.client.dump("queue")
        version = dump[:-10] + b"\xff\xff" + dump[-8:]  # of a server that is much newer
        never = b"\xff" * 8
        for old, new, why in (
            (dump, version, "version or checksum"),
            (b"\x03" + never + dump, b"\x09" + never + dump, "unknown type 9"),
        ):
            server.kill()
            server.rewrite(old, new)
            self.refuses_to_start(server, "the key 'queue' of database 0 can't be read")
            self.assertIn(why, server.log())
            self.assertIn("`unreadable skip`", server.log())
            server.arguments = [*KEYSPACE, "unreadable", "skip"]
            for _ in range(2):
                server.start()
                self.assertEqual(server.client.keys(), [b"text"])
                self.assertEqual(server.info("unreadable_keys"), 1)
                server.kill()
            server.arguments = KEYSPACE
            server.rewrite(new, old)
            server.start()
            self.assertEqual(server.digest(), digest)

    def test_refuses_to_serve_without_all_tables(self):
        server = self.server()
        for i in range(2):
            server.client.execute_command("PX.PUT", f"table{i}", "a", "1")
        server.kill()
        record, unknown = (b"\x01" + b"\xff" * 8 + bytes([i]) + bytes(7) for i in (1, 9))
        server.rewrite(record, unknown)
        self.refuses_to_start(server, "the pool has no table 9")
        server.arguments = ["unreadable", "skip"]
        server.start()
        self.assertEqual(server.client.keys(), [b"table1"])
        server.kill()
        server.rewrite(unknown, record)
        server.arguments = []
        server.start()
        self.assertEqual(server.client.execute_command("PX.GET", "table0", "a"), b"1")

    def test_bad_arguments(self):
        for arguments, text in (
            (["durability", "always"], "automatic, process, power"),
            (["engine", "unheard-of"], "engine"),
            (["technique", "c"], "none, b, bo, boc"),
            (["unreadable", "maybe"], "refuse, skip"),
            (["partial", "maybe"], "refuse, serve"),
            (["colour", "red"], "no argument"),
            (["mode"], "pairs"),
        ):
            server = self.server("-".join(arguments), arguments, start=False)
            self.refuses_to_start(server, text)

    def test_max_size_is_shown(self):
        for arguments in ([], ["max-size", "32mb"]):
            server = self.server("-".join(["server", *arguments]), arguments)
            shown = server.client.config_get("perdix.max-size")["perdix.max-size"]
            self.assertEqual(int(shown), server.info("pool_max_size_bytes"))

    def test_damaged_table(self):
        server = self.server()
        px = server.client.execute_command
        for engine in ("sptree", "nbtree", "elimda", "cceh"):
            px("PX.CREATE", engine, "ENGINE", engine)
            for i in range(2000):
                px("PX.PUT", engine, f"f{i}", "v" * 50)
        server.client.shutdown()
        server.process.wait()
        size = os.path.getsize(server.pool)
        with open(server.pool, "r+b") as pool:  # behind the superblocks and the allocator's start
            for place in range(1 << 20, size, 1 << 16):
                pool.seek(place)
                pool.write(b"\xa5" * 512)
        server.start(wait=False)
        try:
            wait_for(lambda: server.process.poll() is not None or server.client.ping(), "nothing")
        except (redis.RedisError, OSError, TimeoutError):
            pass
        if server.alive():
            self.try_everything(server)
        else:
            self.assertGreater(server.process.returncode, 0, server.log())

    def try_everything(self, server):
        """Each answer is right, wrong or an error: the bytes are damaged. The server lives."""
        for engine in ("sptree", "nbtree", "elimda", "cceh"):
            for command in (
                ("PX.GET", engine, "f1"), ("PX.PUT", engine, "new", "1"), ("PX.DEL", engine, "f2"),
                ("PX.LEN", engine), ("PX.INFO", engine), ("PX.RANGE", engine, "-", "+"),
                ("PX.SCAN", engine, "0", "COUNT", "5000"), ("DUMP", engine), ("UNLINK", engine),
            ):
                try:
                    server.client.execute_command(*command)
                except redis.ResponseError:
                    pass
                self.assertTrue(server.client.ping(), command)

    def test_full_pool_of_tables(self):
        server = self.server(arguments=["max-size", "32mb"])
        px = server.client.execute_command
        written = 0
        with self.assertRaises(redis.ResponseError) as caught:
            while True:
                px("PX.PUT", "t", f"f{written}", "x" * 10000)
                written += 1
        self.assertTrue(str(caught.exception).startswith("PXFULL"), caught.exception)
        self.assertGreater(written, 500)
        for i in range(written):
            self.assertEqual(px("PX.GET", "t", f"f{i}"), b"x" * 10000)
        px("PX.DEL", "t", *[f"f{i}" for i in range(100)])
        px("PX.PUT", "t", "again", "1")
        server.restart()
        self.assertEqual(server.client.execute_command("PX.LEN", "t"), written - 99)

    def fill(self, client):
        """Writes native keys until the pool is full. Returns how many were acknowledged."""
        written = 0
        with self.assertRaises(redis.ResponseError) as caught:
            while True:
                client.set(f"k{written}", "x" * 10000)
                written += 1
        self.assertTrue(str(caught.exception).startswith("PXFULL"), caught.exception)
        return written

    def test_full_pool_of_native_keys(self):
        server = self.server(arguments=[*KEYSPACE, "max-size", "64mb"])
        client = server.client
        written = self.fill(client)
        self.assertEqual(server.info("refuses_writes"), 1)
        self.assertEqual(client.get("k0"), b"x" * 10000)
        with self.assertRaises(redis.ResponseError):
            client.lpush("list", "1")
        self.assertEqual(server.info("undurable_keys"), 0)
        digest = server.digest()
        server.restart()
        self.assertEqual(server.digest(), digest)
        for i in range(written // 2):
            server.client.delete(f"k{i}")
        wait_for(lambda: server.info("refuses_writes") == 0, "the refusal does not end")
        server.client.set("again", "1")
        server.restart()
        self.assertEqual(server.client.get("again"), b"1")

    def refused(self, error, command, *words):
        """The text of the refusal."""
        with self.assertRaises(redis.ResponseError) as caught:
            command(*words)
        self.assertIn(error, str(caught.exception))
        return str(caught.exception)

    def test_full_pool_refuses_units_whole(self):
        server = self.server(arguments=[*KEYSPACE, "max-size", "64mb"])
        client = server.client
        client.rpush("queue", "old")
        client.xadd("stream", {"a": 1})
        client.function_load("#!lua name=l\nredis.register_function('f', function() end)")
        self.fill(client)
        digest = server.digest()
        command = client.client().execute_command  # of one connection
        self.assertEqual(command("MULTI"), b"OK")
        self.assertEqual(command("DEL", "queue"), b"QUEUED")
        self.refused("PXFULL", command, "RPUSH", "queue", "new")
        self.refused("PXFULL", client.set, "other", "1")  # of another client
        self.refused("Transaction discarded", command, "EXEC")
        script = "redis.call('DEL', 'queue') return redis.call('RPUSH', 'queue', 'new')"
        for words in (
            ("EVAL", script, 0), ("EVALSHA", client.script_load(script), 0), ("FCALL", "f", 0),
            ("XGROUP", "CREATE", "stream", "g", "0"),
        ):
            error = self.refused("PXFULL", client.execute_command, *words)
            self.assertTrue(error.startswith("PXFULL"), error)
        self.assertEqual(client.eval_ro("return redis.call('LLEN', 'queue')", 0), 1)
        self.assertEqual(server.digest(), digest)
        server.restart()
        self.assertEqual(server.digest(), digest)

    def test_full_pool_knows_renamed_commands(self):
        server = self.server(
            arguments=[*KEYSPACE, "max-size", "64mb"],
            options=["--rename-command", "RPUSH", "fill", "--rename-command", "DEL", "RPUSH"],
        )
        command = server.client.execute_command
        command("fill", "queue", "old")
        self.fill(server.client)
        self.refused("PXFULL", command, "FILL", "queue", "new")
        self.assertEqual(command("RPUSH", "queue"), 1)  # which is DEL

    def test_renamed_commands_that_the_module_needs(self):
        """Without them it would acknowledge what it can't keep, so it does not start."""
        for mode, commands in (
            ("keyspace", ("DUMP", "RESTORE", "GETEX", "SET", "COMMAND", "CLIENT")),
            ("tables", ("COMMAND", "CLIENT")),
        ):
            for command in commands:
                for name in ("", "renamed"):
                    self.refuses_name(mode, command, name)
        for command in ("XACK", "XREADGROUP", "EXEC"):
            self.refuses_name("keyspace", command, "renamed")
        server = self.server("disabled", KEYSPACE, ["--rename-command", "XACK", ""])
        self.assertTrue(server.client.ping())

    def refuses_name(self, mode, command, name):
        options = ["--rename-command", command, name]
        server = self.server(f"{mode}-{command}-{name}", ["mode", mode], options, start=False)
        self.refuses_to_start(server, f"disables the command '{command.lower()}'")
        self.assertFalse(server.pool.exists())

    def test_oversize_refuses_units_whole(self):
        arguments = [*KEYSPACE, "max-value", "1mb", "oversize", "refuse"]
        client = self.server(arguments=arguments).client
        large = "x" * (2 << 20)
        client.rpush("queue", "old")
        command = client.client().execute_command
        command("MULTI")
        command("DEL", "queue")
        self.refused("PXSIZE", command, "SET", "k", large)
        self.refused("Transaction discarded", command, "EXEC")
        script = "redis.call('DEL', KEYS[1]) return redis.call('SET', KEYS[1], ARGV[1])"
        self.refused("PXSIZE", client.eval, script, 1, "queue", large)
        self.assertEqual(client.lrange("queue", 0, -1), [b"old"])
        grown = "redis.call('DEL', 'k') redis.call('SET', 'k', string.rep('x', ARGV[1]))"
        client.eval(grown, 0, 2 << 20)  # not known before: it goes on as a whole
        self.assertEqual(client.strlen("k"), 2 << 20)

    def test_oversize_refuses_growth(self):
        """Whatever the command, the value that the pool has counts."""
        server = self.server(arguments=[*KEYSPACE, "max-value", "1mb", "oversize", "refuse"])
        client = server.client
        half = random.Random(1).randbytes(600 << 10)  # the server's compression gains nothing
        grow = {
            "string": lambda: client.append("string", half),
            "range": lambda: client.setrange("range", 0, half),
            "hash": lambda: client.hset("hash", half[:9], half),
            "list": lambda: client.rpush("list", half),
            "set": lambda: client.sadd("set", half),
            "zset": lambda: client.zadd("zset", {half: 1}),
            "stream": lambda: client.xadd("stream", {"a": half}),
        }
        for name, command in grow.items():
            command()
            size = client.memory_usage(name)
            half = half[::-1]
            if name != "range":  # replaces what is there, which the module can't know
                self.refused("PXSIZE the value would be larger", command)
            self.assertEqual(client.memory_usage(name), size)
        client.set("string", half)  # replaces it
        client.lpop("list")
        grow["list"]()
        other = redis.Redis(port=server.port, db=1, protocol=2)
        if KIND == "redis-7":
            self.refused("PXSIZE", other.append, "string", half)
        else:
            other.append("string", half)
        client.rpush("small", 1)
        digest = server.digest()
        server.restart()
        self.assertEqual(server.digest(), digest)

    def test_oversize(self):
        server = self.server(arguments=[*KEYSPACE, "max-value", "1mb"])
        large = "x" * (2 << 20)
        server.client.set("large", large)
        self.assertIn("perdix.max-value", server.log())
        server.client.config_set("perdix.oversize", "refuse")

        def refused():
            try:
                server.client.set("larger", large)
                return False
            except redis.ResponseError as error:
                return "PXSIZE" in str(error)

        wait_for(refused, "a large value is not refused")
        server.client.set("small", "1")
        server.restart()
        self.assertEqual(len(server.client.get("large")), len(large))

    def test_no_space_on_the_device(self):
        """A file system of a few megabytes, where the machine lets us have one."""
        folder = self.folder / "small"
        folder.mkdir()
        mount = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", folder], capture_output=True
        )
        if mount.returncode != 0:
            self.skipTest("no rights to mount")
        try:
            server = self.server(start=False)
            server.pool = folder / "pool"
            server.start()
            with self.assertRaises(redis.ResponseError) as caught:
                for i in range(100000):
                    server.client.execute_command("PX.PUT", "t", f"f{i}", "x" * 10000)
            self.assertTrue(str(caught.exception).startswith("PXFULL"), caught.exception)
            self.assertEqual(len(server.client.execute_command("PX.GET", "t", "f0")), 10000)
            server.kill()
        finally:
            subprocess.run(["umount", "-l", folder], check=False)

    def test_loaded_into_a_running_server(self):
        server = self.server(module=False, options=["--enable-module-command", "yes"])
        server.client.set("native", "1")
        server.module = True
        module = server.command()[-3:]
        server.client.execute_command("MODULE", "LOAD", module[0], *module[1:])
        server.client.execute_command("PX.PUT", "t", "a", "1")
        with self.assertRaises(redis.ResponseError):
            server.client.execute_command("MODULE", "UNLOAD", "perdix")
        server.restart()
        self.assertEqual(server.client.execute_command("PX.GET", "t", "a"), b"1")

    def test_running_server_refuses_a_used_pool(self):
        """A load that fails leaves a server that was running as it was, whatever the reason."""
        first = self.server("first")
        first.client.execute_command("PX.PUT", "t", "a", "1")
        server = self.server(module=False, options=["--enable-module-command", "yes"])
        server.client.set("native", "1")
        server.pool, server.module = first.pool, True
        module = server.command()[-3:]
        for round_number in range(3):
            with self.assertRaises(redis.ResponseError):
                server.client.execute_command("MODULE", "LOAD", module[0], *module[1:])
            self.assertEqual(server.client.get("native"), b"1")
            if round_number == 0:  # in use at first, then free, and with keys
                first.kill()
        self.assertIn("keys", server.log())
        first.start()
        self.assertEqual(first.client.execute_command("PX.GET", "t", "a"), b"1")


if __name__ == "__main__":
    unittest.main()
