"""Compares one machine with a cluster: the same executable on a file, and on three nodes of rqlite on this machine."""

import functools
import json
import shutil
import statistics
import subprocess
import time
import urllib.request

from server import FOLDER, PORTS, ROOT, WORKS, Server, build, install, make_database, petstore, run, say

PETS = 10_000
# All reads of a batch share one question to the cluster, so it takes more clients than `WORKS` has to use it up.
CROWDED = [
    ("list of 20, 256 connections", "/v1/pets", 256, "read"),
    ("one pet by id, 256 connections", "/v1/pets/5000", 256, "read"),
]
HOSTS = [f"127.18.0.{i}" for i in (1, 2, 3)]


@functools.cache
def rqlited():
    """The program that RQLITED names, or the one of npm."""
    words = [ROOT / "scripts" / "test.d" / "rqlited"]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


@functools.cache
def address():
    """The address of the nodes. Old ones write their version to the standard error."""
    version = subprocess.run([rqlited(), "-version"], capture_output=True, text=True)
    is_old = (version.stdout + version.stderr).startswith("rqlited 8")
    return f"rqlite://{','.join(HOSTS)}/" + ("?allow-old" if is_old else "")


class Nodes:
    """Three nodes with empty folders."""

    def __init__(self):
        folder = FOLDER / "rqlite"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        join = ",".join(f"{host}:4002" for host in HOSTS)
        self.processes = []
        for host in HOSTS:
            words = [rqlited(), "-node-id", host, "-http-addr", f"{host}:4001", "-raft-addr", f"{host}:4002"]
            words += ["-bootstrap-expect", "3", "-join", join, "-join-interval", "100ms", str(folder / host)]
            log = open(folder / f"{host}.log", "w")
            self.processes.append(subprocess.Popen(words, stdout=log, stderr=log))
        for host in HOSTS:
            while not self.is_ready(host):
                time.sleep(0.1)

    def is_ready(self, host):
        try:
            return urllib.request.urlopen(f"http://{host}:4001/readyz", timeout=2).status == 200
        except OSError:
            return False

    def count(self):
        body = json.dumps([["SELECT count(*) FROM pets"]]).encode()
        request = urllib.request.Request(f"http://{HOSTS[0]}:4001/db/query?level=strong", body)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request) as response:
            return json.load(response)["results"][0]["values"][0][0]

    def stop(self):
        for process in self.processes:
            process.kill()
            process.wait()


class Clustered(Server):
    """A petstore on the nodes."""

    def __init__(self, program, key, nodes):
        port = next(PORTS)
        super().__init__("cluster", [program, "--listen", f"127.0.0.1:{port}", "--database", address()], port, key)
        self.nodes = nodes

    def load(self, path, connections, kind, seconds, **options):
        rows = self.nodes.count() if kind == "create" else 0
        result = super().load(path, connections, kind, seconds, **options)
        if kind == "create" and self.nodes.count() - rows < result["requests"]:
            raise SystemExit("cluster: acknowledged pets are missing")
        return result


def fill(program, database):
    """Copies the pets and adds a key, as an operator moves from a file to a cluster."""
    pets = FOLDER / "pets.ndjson"
    with open(pets, "w") as out:
        run(program, "export", "--database", database, stdout=out)
    run(program, "import", "--keep-ids", pets, "--database", address(), stdout=subprocess.DEVNULL)
    words = [program, "key", "add", "bench", "--database", address()]
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()


def main(rounds, seconds, only):
    install("wrk", "wrk")
    program = build("cluster")
    database = FOLDER / "one-machine.db"
    key = make_database(program, database, PETS)
    nodes, servers = Nodes(), []
    try:
        servers.append(petstore(program, database, key, "one machine"))
        servers.append(Clustered(program, fill(program, database), nodes))
        results = {}
        for title, path, connections, kind in (work for work in [*WORKS, *CROWDED] if only in work[0] and work[3] != "change"):
            if kind == "read" and servers[0].response(path) != servers[1].response(path):
                raise SystemExit(f"{path}: the two answer differently")
            runs = results[title] = {server.name: [] for server in servers}
            for turn in range(rounds):
                for server in servers[:: -1 if turn % 2 else 1]:
                    loaded = server.load(path, connections, kind, seconds)
                    runs[server.name].append(loaded)
                    say(f"  {title}: {server.name}: {loaded['rate']:.0f}/s, p99 {loaded['p99']:.1f} ms")
    finally:
        for server in servers:
            server.stop()
        nodes.stop()
    print("| work | one machine, requests/s | cluster, requests/s | ratio | p99 of the cluster, ms |")
    print("|---|--:|--:|--:|--:|")
    for title, runs in results.items():
        rates = [statistics.median(run["rate"] for run in of) for of in runs.values()]
        slowest = statistics.median(run["p99"] for run in runs["cluster"])
        print(f"| {title} | {rates[0]:,.0f} | {rates[1]:,.0f} | {rates[1] / rates[0]:.2f} | {slowest:.1f} |")
