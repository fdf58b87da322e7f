"""Clients that others have written: redis-benchmark, valkey-cli, and YCSB through Jedis."""

import os
import re
import shutil
import subprocess

from servers import SERVERS, ServerTest, unittest

KEYSPACE = ["mode", "keyspace"]
CLI = SERVERS / "valkey-8" / "valkey-cli"  # speaks to all servers
YCSB = SERVERS / "ycsb"  # bindings/valkey/fetch builds it where the machine has Java and Maven


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
    WORKLOADS = {
        "a": {"read": 0.5, "update": 0.5},
        "b": {"read": 0.95, "update": 0.05},
        "c": {"read": 1},
        "d": {"read": 0.95, "insert": 0.05, "distribution": "latest"},
        "e": {"scan": 0.95, "insert": 0.05},
        "f": {"read": 0.5, "readmodifywrite": 0.5},
    }

    def setUp(self):
        if not (YCSB / "lib").is_dir():
            self.skipTest(f"no YCSB in {YCSB}: the set-up builds it where java and mvn are there")
        if shutil.which("java") is None:
            self.skipTest("no java on this machine")
        super().setUp()

    def ycsb(self, server, mode, phase, workload):
        """Runs a phase, and returns how often each operation succeeded. None may fail."""
        mix = dict(workload)
        distribution = mix.pop("distribution", "zipfian")
        properties = {
            "workload": "site.ycsb.workloads.CoreWorkload", "recordcount": self.records,
            "operationcount": self.OPERATIONS, "fieldlength": 20, "maxscanlength": 20,
            "requestdistribution": distribution, "perdix.port": server.port, "perdix.mode": mode,
            **{f"{name}proportion": mix.get(name, 0)
               for name in ("read", "update", "insert", "scan", "readmodifywrite")},
        }
        words = [word for name, value in properties.items() for word in ("-p", f"{name}={value}")]
        output = run("java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                     "-cp", f"{YCSB}/lib/*{os.pathsep}{YCSB}/perdix-ycsb-0.1.0.jar",
                     "site.ycsb.Client", phase, "-db", "perdix.ServerDb", "-threads", 4, *words)
        returned = re.findall(r"^\[([A-Z-]+)\], Return=(\w+), (\d+)$", output, re.MULTILINE)
        self.assertTrue(returned, output)
        self.assertEqual({status for _, status, _ in returned}, {"OK"}, output)
        return {operation: int(count) for operation, _, count in returned}

    def run_all(self, mode, workloads, count_records):
        server = self.server(arguments=["mode", mode])
        self.records = self.RECORDS
        loaded = self.ycsb(server, mode, "-load", self.WORKLOADS["a"])
        self.assertEqual(loaded, {"INSERT": self.RECORDS})
        for name in workloads:
            done = self.ycsb(server, mode, "-t", self.WORKLOADS[name])
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
