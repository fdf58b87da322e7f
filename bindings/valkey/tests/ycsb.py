"""Runs YCSB (Cooper et al. 2010) with the class of bindings/valkey/ycsb, by Jedis."""

import os
import re
import shutil
import subprocess

from servers import SERVERS

YCSB = SERVERS / "ycsb"  # bindings/valkey/fetch builds it where the machine has Java and Maven
WORKLOADS = {
    "a": {"read": 0.5, "update": 0.5},
    "b": {"read": 0.95, "update": 0.05},
    "c": {"read": 1},
    "d": {"read": 0.95, "insert": 0.05, "distribution": "latest"},
    "e": {"scan": 0.95, "insert": 0.05},
    "f": {"read": 0.5, "readmodifywrite": 0.5},
}


def missing():
    """Why YCSB can't run here; empty if it can."""
    if not (YCSB / "lib").is_dir():
        return f"no YCSB in {YCSB}: the set-up builds it where java and mvn are there"
    return "" if shutil.which("java") else "no java on this machine"


def run_phase(port, mode, phase, workload, **properties):
    """Runs "-load" or "-t" of a workload against a server; `mode`: tables, or keyspace for native
    strings. Returns (how often each operation succeeded, operations per second). Raises
    AssertionError if one failed."""
    mix = dict(WORKLOADS[workload])
    settings = {
        "workload": "site.ycsb.workloads.CoreWorkload", "maxscanlength": 20,
        "requestdistribution": mix.pop("distribution", "zipfian"), "perdix.port": port,
        "perdix.mode": mode, **properties,
        **{f"{name}proportion": mix.get(name, 0)
           for name in ("read", "update", "insert", "scan", "readmodifywrite")},
    }
    words = [word for name, value in settings.items() for word in ("-p", f"{name}={value}")]
    command = ["java", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
               "-cp", f"{YCSB}/lib/*{os.pathsep}{YCSB}/perdix-ycsb-0.1.0.jar",
               "site.ycsb.Client", phase, "-db", "perdix.ServerDb", "-threads", "4", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    output = done.stdout + done.stderr
    returned = re.findall(r"^\[([A-Z-]+)\], Return=(\w+), (\d+)$", output, re.MULTILINE)
    if done.returncode != 0 or {status for _, status, _ in returned} != {"OK"}:
        raise AssertionError(output)
    rate = re.search(r"^\[OVERALL\], Throughput\(ops/sec\), ([\d.]+)$", output, re.MULTILINE)
    return {operation: int(count) for operation, _, count in returned}, float(rate[1])
