"""Images of pools: what a server with the module would have after a crash now.

The module makes a write durable before it replies. So a copy of the pool, taken while no client
writes, must open as the data that the server shows. The server is stopped while its pool is
copied, since threads of the module may write to the pool at any time. Here `perdix check` examines
the copy, a second server of the same kind opens it, and the states of both are compared: the keys
of all databases with their types, values, times of expiry (those of fields of hashes, too), and the
groups of streams.

What changes between the reading of the data and the copy makes a difference that is none, so a
difference counts only when the server shows the same before and after the copy.
"""

import contextlib
import os
import shutil
import signal
import socket
import socketserver
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 20  # seconds for a reply, and for a start
TRIES = 4  # copies of a pool whose server goes on writing
MOST_KEYS = 50_000  # a database with more is compared by one digest of all
LONGEST_NAME = 65_531  # of a key that the module keeps
BATCH = 500  # commands that are sent together


class Refused(Exception):
    """An error reply."""


class Connection:
    """A client that sends what it is told and nothing else, so that the suites notice little."""

    def __init__(self, address):
        family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
        self.socket = socket.socket(family)
        self.socket.settimeout(PATIENCE)
        try:
            self.socket.connect(address)
        except OSError:
            self.socket.close()
            raise
        self.file = self.socket.makefile("rb")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()
        self.socket.close()

    def call(self, *command):
        return self.pipeline([command])[0]

    def pipeline(self, commands):
        """The replies to commands. An error reply is raised when all of its batch are read."""
        replies = []
        for start in range(0, len(commands), BATCH):
            batch = commands[start : start + BATCH]
            self.socket.sendall(b"".join(map(encoded, batch)))
            replies += [self.reply() for _ in batch]
        for reply in replies:
            if isinstance(reply, Refused):
                raise reply
        return replies

    def reply(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest
        if kind == b"-":
            return Refused(rest.decode(errors="replace"))
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return None if rest == b"-1" else [self.reply() for _ in range(int(rest))]
        raise ConnectionError(f"no reply of RESP2: {line!r}")


def encoded(command):
    words = [word if isinstance(word, bytes) else str(word).encode() for word in command]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)


def info(connection, section):
    lines = connection.call("INFO", section).decode().splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def without_times(reply):
    """XINFO STREAM without how long ago something was seen, which reads change."""
    if not isinstance(reply, list):
        return reply
    times = (b"seen-time", b"active-time", b"idle", b"inactive")
    pairs = list(zip(reply[::2], reply[1::2]))
    if pairs and len(reply) % 2 == 0 and all(isinstance(name, bytes) for name, _ in pairs):
        return [(name, without_times(value)) for name, value in pairs if name not in times]
    return [without_times(part) for part in reply]


def fields_expire(connection, hashes):
    """For each hash the times when its fields expire. Servers that have none: nothing."""
    times = {}
    for key in hashes:
        fields = connection.call("HKEYS", key)
        if not fields:
            continue
        try:
            reply = connection.call("HPEXPIRETIME", key, "FIELDS", len(fields), *fields)
        except Refused as refused:
            if "unknown command" not in str(refused):
                raise
            return {}
        times[key] = sorted(pair for pair in zip(fields, reply) if pair[1] >= 0)
    return times


def database(connection, number):
    """The keys of a database, each with what is compared of it."""
    connection.call("SELECT", number)
    keys = connection.call("KEYS", "*")
    if len(keys) > MOST_KEYS:
        return {b"(%d keys)" % len(keys): ("all", connection.call("DEBUG", "DIGEST"))}
    keys = [key for key in keys if len(key) <= LONGEST_NAME]
    types = connection.pipeline([("TYPE", key) for key in keys])
    expiry = connection.pipeline([("PEXPIRETIME", key) for key in keys])
    digests = connection.pipeline([("DEBUG", "DIGEST-VALUE", key) for key in keys])
    hashes = [key for key, kind in zip(keys, types) if kind == b"hash"]
    streams = [key for key, kind in zip(keys, types) if kind == b"stream"]
    full = connection.pipeline([("XINFO", "STREAM", key, "FULL", "COUNT", 0) for key in streams])
    more = {key: without_times(reply) for key, reply in zip(streams, full)}
    more |= fields_expire(connection, hashes)
    return {
        key: (kind, expires, digest[0], more.get(key))
        for key, kind, expires, digest in zip(keys, types, expiry, digests)
    }


def state(connection):
    """All keys of a server, by number of database and name."""
    numbers = [int(name[2:]) for name in info(connection, "keyspace") if name.startswith("db")]
    return {
        (number, key): value
        for number in numbers
        for key, value in database(connection, number).items()
    }


def difference(shown, kept, is_none=lambda place: False):
    """What the state of an image lacks, has besides and has otherwise; empty if nothing.

    `is_none` tells of a key whose digests differ whether that does not count.
    """
    parts = {
        "not in the image": [key for key in shown if key not in kept],
        "only in the image": [key for key in kept if key not in shown],
    }
    names = ("type", "time of expiry", "value", "groups or fields' times")
    for key in shown.keys() & kept.keys():
        for name, one, other in zip(names, shown[key], kept[key]):
            if one != other and not (name == "value" and is_none(key)):
                parts.setdefault(f"another {name} in the image", []).append(key)
    return "; ".join(f"{what}: {listed(keys)}" for what, keys in parts.items() if keys)


def counts_alike(one, other, place):
    """Whether two servers have the same HyperLogLog, which PFCOUNT gives its result to keep."""

    def value(connection):
        connection.call("SELECT", place[0])
        text = connection.call("GET", place[1])
        return text[:8] + text[16:] if text.startswith(b"HYLL") else text

    try:
        return value(one) == value(other)
    except Refused:  # no string
        return False


def listed(keys):
    words = [f"db{number} {key.decode(errors='backslashreplace')[:60]}" for number, key in keys[:3]]
    more = [f"{len(keys) - 3} more"] if len(keys) > 3 else []
    return ", ".join(words + more)


@dataclass
class Live:
    """A server of the suite that runs."""

    pid: int
    port: int
    folder: Path

    @property
    def pool(self):
        return self.folder / "perdix.pool"

    def is_stopped(self):
        """Every thread is: a signal stops them one after another."""
        tasks = Path(f"/proc/{self.pid}/task").glob("*/stat")
        return all(task.read_text().rsplit(")", 1)[1].split()[0] in "TtZX" for task in tasks)

    @contextlib.contextmanager
    def halted(self):
        """The server does nothing meanwhile."""
        os.kill(self.pid, signal.SIGSTOP)
        try:
            while not self.is_stopped():
                time.sleep(0.0005)
            yield
        finally:
            os.kill(self.pid, signal.SIGCONT)

    def connect(self):
        return Connection(("127.0.0.1", self.port))


@dataclass
class Verdict:
    status: str  # same, differs, or none: not compared
    detail: str = ""


class Images:
    """Compares images. `scratch` is a folder on the file system of the pools."""

    def __init__(self, program, module, tool, scratch):
        self.program = program
        self.module = module
        self.tool = tool
        self.scratch = Path(scratch)

    def compare(self, live):
        """Never raises: what can't be compared is a verdict with the reason."""
        try:
            return self.compared(live)
        except (OSError, Refused) as error:
            return Verdict("none", f"{type(error).__name__}: {error}")

    def compared(self, live):
        if live.is_stopped():
            return Verdict("none", "the server is stopped or has ended")
        if not live.pool.exists():
            return Verdict("none", "the server has no pool")
        with live.connect() as connection:
            if info(connection, "cluster").get("cluster_enabled") == "1":
                return Verdict("none", "the server is a node of a cluster")
            found = ""
            for _ in range(TRIES):
                before = state(connection)
                found = self.differs(before, live, connection)
                if not found:
                    return Verdict("same", str(len(before)))
                if before == state(connection):
                    return Verdict("differs", found)
        return Verdict("none", f"the server goes on writing: {found}")

    def differs(self, shown, live, connection):
        databases = connection.call("CONFIG", "GET", "databases")
        self.scratch.mkdir(parents=True, exist_ok=True)
        try:
            with live.halted():
                self.copy(live.pool, self.scratch / "pool")
            problem = self.problem()
            if problem:
                return problem
            return self.opened(
                lambda image: difference(
                    shown, state(image), lambda place: counts_alike(connection, image, place)),
                databases[1])
        finally:
            shutil.rmtree(self.scratch)

    def copy(self, pool, image):
        subprocess.run(["cp", "--sparse=always", pool, image], check=True)

    def problem(self):
        """What `perdix check` finds, without which no copy of a pool that is open can be opened."""
        check = [self.tool, "check", self.scratch / "pool"]
        done = subprocess.run(check, capture_output=True, text=True, errors="replace")
        return f"perdix check: {done.stdout} {done.stderr}" if done.returncode else ""

    def opened(self, use, databases=b"16"):
        """What `use` returns for a server that runs with the image; or why none does."""
        address = str(self.scratch / "socket")
        command = [
            *(self.program, "--port", "0", "--unixsocket", address, "--dir", self.scratch),
            *("--save", "", "--appendonly", "no", "--databases", databases.decode()),
            *("--enable-debug-command", "yes", "--logfile", self.scratch / "log"),
            *("--loadmodule", self.module, "path", self.scratch / "pool", "mode", "keyspace"),
        ]
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL)
        try:
            with self.await_start(process, address) as image:
                return use(image)
        except ChildProcessError:
            return f"no server starts with the image: {self.words_of_the_module()}"
        finally:
            process.kill()
            process.wait()

    def words_of_the_module(self):
        log = (self.scratch / "log").read_text(errors="replace").strip().splitlines()
        return " ".join(line for line in log if "<perdix>" in line) or " ".join(log[-2:])

    def await_start(self, process, address):
        """A connection to a server that has started. A server that ends is a ChildProcessError."""
        end = time.monotonic() + PATIENCE
        while process.poll() is None:
            try:
                connection = Connection(address)
                connection.call("PING")
                return connection
            except (Refused, OSError) as error:
                if time.monotonic() > end:
                    raise TimeoutError(f"the image's server does not answer: {error}") from error
            time.sleep(0.005)
        raise ChildProcessError


class Service:
    """Compares images for a suite that asks, a line for each, and tells `record` the verdicts."""

    def __init__(self, images, record):
        def handle(request):
            words = request.rfile.readline().decode().rstrip("\n").split("\t")
            file, test, pid, port, folder = words
            record(file, test, images.compare(Live(int(pid), int(port), Path(folder))))
            request.wfile.write(b"done\n")

        handler = type("Request", (socketserver.StreamRequestHandler,), {"handle": handle})
        self.server = socketserver.TCPServer(("127.0.0.1", 0), handler)
        self.port = self.server.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
