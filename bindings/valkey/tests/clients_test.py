"""Clients that others have written: redis-benchmark, valkey-cli, and YCSB through Jedis."""

import re
import subprocess

import ycsb
from servers import SERVERS, ServerTest, unittest

KEYSPACE = ["mode", "keyspace"]
CLI = SERVERS / "valkey-8" / "valkey-cli"  # speaks to all servers


def run(*words):
    """What a command prints. It must succeed."""
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise AssertionError(f"{words} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


class BenchmarkTest(ServerTest):
    """redis-benchmark of Debian's redis-tools."""

    def benchmark(self, server, *words):
        output = run("redis-benchmark", "-p", server.port, "-P", 16, "-c", 20, "-q", *words)
        self.assertNotIn("rror", output)
        self.assertRegex(output, r"requests per second")

    def assert_kept(self, server):
        digest = server.digest()
        server.restart()
        self.assertEqual(server.digest(), digest)

    def test_tables(self):
        server = self.server()
        put = ["PX.PUT", "t", "key:__rand_int__", "__data__"]
        self.benchmark(server, "-n", 20000, "-r", 1000, "-d", 100, *put)
        self.benchmark(server, "-n", 20000, "-r", 1000, "PX.GET", "t", "key:__rand_int__")
        self.benchmark(server, "-n", 5000, "-r", 100, "PX.INCRBY", "n", "key:__rand_int__", 1)
        self.benchmark(server, "-n", 1000, "-r", 1000, "PX.DEL", "t", "key:__rand_int__")
        px = server.client.execute_command
        counters = px("PX.RANGE", "n", "-", "+")
        total = sum(int(count) for count in counters[1::2])
        self.assertTrue(5000 <= total < 5000 + 16 * 20, total)  # each client completes its pipeline
        fields = px("PX.RANGE", "t", "-", "+", "NOVALUES")
        self.assertEqual(len(fields), px("PX.LEN", "t"))
        self.assertTrue(200 < len(fields) <= 1000, len(fields))
        self.assertTrue(all(re.fullmatch(rb"key:\d{12}", field) for field in fields))
        self.assert_kept(server)

    def test_keyspace(self):
        server = self.server(arguments=KEYSPACE)
        types = "set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,mset"
        self.benchmark(server, "-n", 2000, "-r", 200, "-t", types)
        self.assertEqual(server.info("undurable_keys"), 0)
        self.assertGreater(server.client.dbsize(), 200)
        self.assert_kept(server)

    def test_command_line(self):
        server = self.server()
        for words, answer in (
            (("PX.PUT", "t", "a", "1", "b", "2"), "OK"), (("PX.GET", "t", "b"), "2"),
            (("PX.RANGE", "t", "-", "+"), "a\n1\nb\n2"), (("PX.LEN", "t"), "2"),
        ):
            self.assertEqual(run(CLI, "-p", server.port, *words).strip(), answer)


class YcsbTest(ServerTest):
    RECORDS, OPERATIONS = 1000, 1000

    def setUp(self):
        if why := ycsb.missing():
            self.skipTest(why)
        super().setUp()

    def phase(self, server, mode, phase, workload):
        """How often each operation succeeded. None may fail."""
        counts, _ = ycsb.run_phase(
            server.port, mode, phase, workload,
            recordcount=self.records, operationcount=self.OPERATIONS, fieldlength=20,
        )
        return counts

    def run_all(self, mode, workloads, count_records):
        server = self.server(arguments=["mode", mode])
        self.records = self.RECORDS
        loaded = self.phase(server, mode, "-load", "a")
        self.assertEqual(loaded, {"INSERT": self.RECORDS})
        for name in workloads:
            done = self.phase(server, mode, "-t", name)
            self.records += done.pop("INSERT", 0)
            self.assertEqual(count_records(server), self.records, name)
            self.assertGreater(sum(done.values()), 0)
        server.restart()
        self.assertEqual(count_records(server), self.records)

    def test_tables(self):
        self.run_all(
            "tables", "abcdef",
            lambda server: server.client.execute_command("PX.LEN", "usertable"),
        )

    def test_keyspace(self):
        """Native strings have no order, so without the scans of workload E."""
        self.run_all("keyspace", "abcdf", lambda server: server.client.dbsize())


if __name__ == "__main__":
    unittest.main()
