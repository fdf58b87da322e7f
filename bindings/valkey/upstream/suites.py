"""The servers' own suites: Debian's source packages, fetched into a folder beside the results.

The newest source package of a server's minor release has the suite for it. Its archive is taken
without Debian's changes, by apt-get, which checks it; apt's settings of the machine stay as they
are.
"""

import re
import shutil
import subprocess
import tarfile
from pathlib import Path

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
RELEASES = ("bookworm", "trixie", "sid")

# The programs of the server's source tree that the suites call, and Debian's name for one that a
# server of bindings/valkey/fetch comes without.
PROGRAMS = {
    "redis": ("redis-server", "redis-cli", "redis-benchmark", "redis-check-aof", "redis-check-rdb"),
    "valkey": ("valkey-server", "valkey-cli", "valkey-benchmark", "valkey-check-aof",
               "valkey-check-rdb"),
}


def package(kind):
    """The name of the source package of a server: redis or valkey."""
    return kind.split("-")[0]


def version(program):
    """The version that a server says it has."""
    words = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return re.search(r"v=([0-9.]+)", words.stdout)[1]


def newest(versions, wanted):
    """Of Debian's versions the newest of the minor release of `wanted`, never newer than it."""

    def numbers(text):
        upstream = re.match(r"(?:\d+:)?([0-9.]+)", text)[1]
        return tuple(int(part) for part in upstream.strip(".").split("."))

    goal = numbers(wanted)
    fitting = [v for v in versions if numbers(v)[:2] == goal[:2] and numbers(v) <= goal]
    if not fitting:
        raise LookupError(f"no source package for {wanted} among {', '.join(versions)}")
    return max(fitting, key=numbers)


def mirror():
    """The address from which this machine has Debian's packages."""
    wanted = ("--format", "$(LABEL) $(REPO_URI)", "Created-By: Packages")
    shown = subprocess.run(["apt-get", "indextargets", *wanted],
                           capture_output=True, text=True, check=True).stdout
    sites = re.findall(r"^Debian (\S+)$", shown, re.MULTILINE)
    if not sites:
        raise LookupError("apt has no packages of Debian, whose source packages have the suites")
    return sites[0]


class Archive:
    """Debian's source packages, with lists of its own in `folder`."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "lists/partial").mkdir(parents=True, exist_ok=True)
        (folder / "cache/archives/partial").mkdir(parents=True, exist_ok=True)
        self.sources = folder / "sources.list"
        self.is_fresh = False

    def options(self):
        settings = {
            "Dir::Etc::sourcelist": self.sources, "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::lists": self.folder / "lists", "Dir::Cache": self.folder / "cache",
            "APT::Sandbox::User": "root",
        }
        return [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]

    def run(self, *command, cwd=None):
        command = [command[0], *self.options(), *command[1:]]
        return subprocess.run(command, check=True, capture_output=True, text=True, cwd=cwd).stdout

    def versions(self, name):
        if not self.is_fresh:
            site = mirror()
            self.sources.write_text("".join(
                f"deb-src [signed-by={KEYRING}] {site} {release} main\n" for release in RELEASES))
            self.run("apt-get", "-q", "update")
            self.is_fresh = True
        shown = self.run("apt-cache", "showsrc", name)
        return re.findall(r"^Version: (\S+)$", shown, re.MULTILINE)

    def fetch(self, name, wanted, target):
        """Unpacks the archive of a version as the folder `target`."""
        chosen = newest(self.versions(name), wanted)
        scratch = target.with_suffix(".part")
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        self.run("apt-get", "-q", "source", "--tar-only", "--download-only", f"{name}={chosen}",
                 cwd=scratch)
        archive = next(scratch.glob("*.orig.tar.*"))
        with tarfile.open(archive) as content:
            content.extractall(scratch, filter="tar")
        unpacked = next(scratch.glob("*/tests/test_helper.tcl")).parents[1]
        unpacked.rename(target)
        shutil.rmtree(scratch)
        (target / "debian-version").write_text(chosen + "\n")


def suite(archive, kind, server, folder):
    """The source of the suite that belongs to `server`, with the programs where it expects them."""
    source = folder / kind / "source"
    if not (source / "debian-version").exists():
        print(f"fetching the suite of {kind}", flush=True)
        archive.fetch(package(kind), version(server), source)
    link_programs(kind, server, source / "src")
    return source


def link_programs(kind, server, src):
    """Puts links to a server and its tools into the folder where the suite looks for them."""
    src.mkdir(exist_ok=True)
    tools = [server.parent, *sorted(server.parent.parent.glob(f"{package(kind)}-*"))]
    for name in PROGRAMS[package(kind)]:
        found = [folder / name for folder in tools if (folder / name).exists()]
        path = str(found[0]) if found else shutil.which(name)
        link = src / name
        link.unlink(missing_ok=True)
        if path:
            link.symlink_to(Path(path).absolute())
