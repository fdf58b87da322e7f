"""Real servers with the module, for the tests: started in temporary folders, killed, restarted.

The environment says where they are (CMakeLists.txt sets it):

    PERDIX_VALKEY_SERVERS   the folder that bindings/valkey/fetch has filled
    PERDIX_VALKEY_MODULE    perdix.so
    PERDIX_VALKEY_SERVER    which server: redis-7, valkey-8 or valkey-9
    PERDIX_VALKEY_PRELOAD   a library that is loaded before the server: a sanitizer's (optional)
    PERDIX_FAILING_DEVICE   a library that makes a device fail: failing_device.cc

What is missing is an error, not a test that is left out.
"""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SERVERS = Path(os.environ.get("PERDIX_VALKEY_SERVERS", ROOT / "build/valkey-servers"))
BUILT = ROOT / "build/valkey/bindings/valkey/perdix.so"
MODULE = Path(os.environ.get("PERDIX_VALKEY_MODULE", BUILT))
KIND = os.environ.get("PERDIX_VALKEY_SERVER", "redis-7")
PRELOAD = os.environ.get("PERDIX_VALKEY_PRELOAD", "")
BUILT_DEVICE = ROOT / "build/valkey/bindings/valkey/failing_device.so"
FAILING_DEVICE = os.environ.get("PERDIX_FAILING_DEVICE", str(BUILT_DEVICE))

sys.path.insert(0, str(SERVERS / "python"))
import redis  # noqa: E402: only there after the line above

PATIENCE = 60  # seconds that something may take on a busy machine before it counts as never


def program():
    """The server under test."""
    names = {"redis-7": "redis-server", "valkey-8": "valkey-server", "valkey-9": "valkey-server"}
    path = SERVERS / KIND / names[KIND]
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: run scripts/setup valkey")
    return path


def wait_for(condition, what):
    """Waits until condition() is true. What it raises while a server starts counts as false."""
    end = time.monotonic() + PATIENCE
    error = None
    while time.monotonic() < end:
        try:
            if condition():
                return
        except (redis.RedisError, OSError) as problem:
            error = problem
        time.sleep(0.01)
    raise TimeoutError(f"{what}; last error: {error}")


def free_port():
    """A port that is free now, and whose bus port of a cluster is free too."""
    while True:
        port = random.randrange(20000, 30000)
        try:
            for number in (port, port + 10000):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", number))
            return port
        except OSError:
            continue


class Server:
    """One server with the module. Its folder and pool outlive kill() and stop()."""

    def __init__(self, folder, name, arguments=(), options=(), module=True):
        self.folder = Path(folder) / name
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        self.pool = self.folder / "pool"
        self.arguments = list(arguments)
        self.options = list(options)
        self.module = module
        self.device_can_fail = False
        self.process = None
        self.client = None

    def command(self):
        command = [
            program(),
            *("--port", self.port, "--bind", "127.0.0.1", "--dir", self.folder),
            *("--logfile", self.folder / "log", "--save", "", "--appendonly", "no"),
            *("--repl-diskless-sync-delay", "0", "--enable-debug-command", "yes"),
            *self.options,
        ]
        if self.module:
            command += ["--loadmodule", MODULE, "path", self.pool, *self.arguments]
        return [str(word) for word in command]

    def environment(self):
        """That of the tests, and the libraries that come before the server's."""
        libraries = [FAILING_DEVICE, PRELOAD] if self.device_can_fail or PRELOAD else []
        return {
            **os.environ,
            "LD_PRELOAD": " ".join(filter(None, libraries)),
            "PERDIX_FAILING_POOL": str(self.pool),
        }

    def fail_device(self, how):
        """From now on the pool's device fails: `eio` or `enospc` (failing_device.cc)."""
        Path(f"{self.pool}.{how}").touch()

    def repair_device(self):
        for how in ("eio", "enospc"):
            Path(f"{self.pool}.{how}").unlink(missing_ok=True)

    def connect(self):
        """Another connection, which does not send a command twice when it is closed."""
        once = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
        return redis.Redis(port=self.port, protocol=2, socket_timeout=PATIENCE, retry=once)

    def start(self, wait=True):
        with open(self.folder / "errors", "ab") as errors:
            self.process = subprocess.Popen(
                self.command(), stdout=subprocess.DEVNULL, stderr=errors, env=self.environment()
            )
        self.client = redis.Redis(port=self.port, protocol=2, socket_timeout=PATIENCE)
        if wait:
            wait_for(self.answers, f"{self.folder.name} does not start: {self.log()[-2000:]}")
            maps = Path(f"/proc/{self.process.pid}/maps").read_text()
            if PRELOAD not in maps:
                raise AssertionError(f"the server runs without {PRELOAD}")
        return self

    def answers(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the server ended: {self.log()[-3000:]}")
        try:
            return self.client.ping()
        except redis.BusyLoadingError:
            return False

    def kill(self):
        """As kill -9."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.client.close()

    def stop(self):
        """As an operator."""
        self.process.terminate()
        self.process.wait(PATIENCE)
        self.client.close()

    def rewrite(self, old, new):
        """Replaces bytes in the pool. The server does not run."""
        pool = self.pool.read_bytes()
        if old not in pool:
            raise AssertionError("the pool does not have these bytes")
        self.pool.write_bytes(pool.replace(old, new))

    def restart(self, kill=True):
        self.kill() if kill else self.stop()
        return self.start()

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def log(self):
        """The server's log, and what a sanitizer has reported."""
        paths = [self.folder / name for name in ("log", "errors")]
        return "".join(path.read_text(errors="replace") for path in paths if path.exists())

    def info(self, field):
        """A field of the module's INFO."""
        return self.client.info("perdix")["perdix_" + field]

    def follow(self, primary):
        """Makes this server a replica, and waits for the full synchronisation."""
        self.client.replicaof("127.0.0.1", primary.port)
        self.await_link()

    def await_link(self):
        wait_for(
            lambda: self.client.info("replication")["master_link_status"] == "up",
            f"{self.folder.name} gets no link to its primary",
        )

    def digest(self):
        """A sum of all keys and values of all databases, tables' contents included."""
        return self.client.execute_command("DEBUG", "DIGEST")


class ServerTest(unittest.TestCase):
    """A test with servers, which end with it."""

    def setUp(self):
        shm = Path("/dev/shm")
        memory = shm if shm.is_dir() else None
        self.folder = Path(tempfile.mkdtemp(prefix="perdix-valkey-", dir=memory))
        self.servers = []
        self.addCleanup(self.end_servers)  # also where a setUp() fails

    def end_servers(self):
        logs = {server: server.log() for server in self.servers}
        signs = ("crashed by signal", "Sanitizer", "runtime error:")
        crashed = [s for s in logs if any(sign in logs[s] for sign in signs)]
        result = self._outcome.result  # has what failed already: Python 3.11 and later
        failed = crashed or any(test is self for test, _ in result.failures + result.errors)
        for server in self.servers:
            if failed:
                print(f"--- {server.folder.name}\n{server.log()[-3000:]}", file=sys.stderr)
            if server.alive():
                server.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.assertEqual(crashed, [], "a server has crashed")

    def refuses_to_start(self, server, text):
        server.start(wait=False)
        server.process.wait(PATIENCE)
        self.assertIn(text, server.log())
        self.assertGreater(server.process.returncode, 0)  # no signal

    def server(self, name="server", arguments=(), options=(), start=True, module=True):
        server = Server(self.folder, name, arguments, options, module)
        self.servers.append(server)
        return server.start() if start else server


def seed():
    """The seed of a test: printed, and taken from PERDIX_SEED to replay."""
    value = int(os.environ.get("PERDIX_SEED", time.time_ns() % 1000000))
    print(f"PERDIX_SEED={value}", file=sys.stderr)
    return value


def kills(default):
    """How often a test kills: PERDIX_KILLS makes a campaign of it."""
    return int(os.environ.get("PERDIX_KILLS", default))
