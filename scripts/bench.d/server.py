"""A server under load: its start, what it uses, what it answers, its end."""

import json
import os
import pathlib
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BENCH = ROOT / "scripts" / "bench.d"
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
# On a disk, and not in TMPDIR, which may be memory, where a flush costs nothing.
FOLDER = TARGET / "bench"
TICK = os.sysconf("SC_CLK_TCK")
# Where Debian puts servers.
os.environ["PATH"] += ":/usr/sbin"
PORTS = iter(range(18_200, 18_600))

# name, path, connections, kind
WORKS = [
    ("list of 20, 1 connection", "/v1/pets", 1, "read"),
    ("list of 20, 64 connections", "/v1/pets", 64, "read"),
    ("list of 100 filtered, 64 connections", "/v1/pets?limit=100&status=sold", 64, "read"),
    ("one pet by id, 64 connections", "/v1/pets/5000", 64, "read"),
    ("mixed 9:1, 64 connections", "/v1/pets", 64, "mix"),
    ("create, flushed, 1 connection", "/v1/pets", 1, "create"),
    ("create, flushed, 64 connections", "/v1/pets", 64, "create"),
    ("create, flushed, 256 connections", "/v1/pets", 256, "create"),
    ("change, flushed, 64 connections", "/v1/pets/1", 64, "change"),
]


def say(text):
    print(text, file=sys.stderr, flush=True)


def run(*words, **options):
    subprocess.run([str(word) for word in words], check=True, **options)


def install(program, package):
    """Installs a Debian package if its program is missing."""
    if not shutil.which(program):
        root = [] if os.geteuid() == 0 else ["sudo"]
        run(*root, "apt-get", "install", "-qqy", "--no-install-recommends", package, stdout=sys.stderr)


def build(*features):
    """This version's executable, with these features in addition to the default ones."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    kind = subprocess.run(["stat", "-f", "-c", "%T", FOLDER], check=True, capture_output=True, text=True).stdout.strip()
    if kind == "tmpfs":
        sys.exit(f"{FOLDER} is in memory, where a flush costs nothing: set CARGO_TARGET_DIR to a folder on a disk")
    run("cargo", "build", "--quiet", "--locked", "--release", "--features", ",".join(features), cwd=ROOT)
    return TARGET / "release" / "petstore"


def remove_database(path):
    for old in path.parent.glob(path.name + "*"):
        old.unlink()


def make_database(program, path, pets):
    """A database made by a petstore itself, with so many pets. Returns a key to it."""
    remove_database(path)
    words = [program, "key", "add", "bench", "--database", path]
    # Another commit may not know the flag.
    knows_create = "--create" in subprocess.run([program, "key", "--help"], capture_output=True, text=True).stdout
    words += ["--create"] if knows_create else []
    key = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    with sqlite3.connect(path) as database:
        database.execute(
            """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
               INSERT INTO pets (name, category_id, status)
               SELECT 'animal number ' || i, i % 100,
                      CASE i % 4 WHEN 0 THEN 'available' WHEN 1 THEN 'pending' WHEN 2 THEN 'sold' END FROM n""",
            (pets,),
        )
    database.close()
    return key


def count(database):
    connection = sqlite3.connect(database)
    try:
        return connection.execute("SELECT count(*) FROM pets").fetchone()[0]
    finally:
        connection.close()


def expected(database, path):
    """What a read must answer, straight from the database."""
    connection = sqlite3.connect(database)
    if path.startswith("/v1/pets/"):
        where, single = f"WHERE id = {path.rpartition('/')[2]}", True
    elif "status=sold" in path:
        where, single = "WHERE status = 'sold' ORDER BY id LIMIT 100", False
    else:
        where, single = "ORDER BY id LIMIT 20", False
    rows = connection.execute(f"SELECT id, name, category_id, status FROM pets {where}").fetchall()
    connection.close()
    pets = [{k: v for k, v in zip(("id", "name", "categoryId", "status"), row) if v is not None} for row in rows]
    return pets[0] if single else pets


class Server:
    """One server, from its start to its end. One without a database is static: it sends the same list always."""

    def __init__(self, name, command, port, key, database=None, environment=None):
        self.name, self.port, self.key, self.database = name, port, key, database
        self.changes_pets = True
        started = time.monotonic()
        log = open(FOLDER / f"{name}.log", "w")
        self.process = subprocess.Popen(
            [str(word) for word in command],
            stdout=log, stderr=log, start_new_session=True, env={**os.environ, **(environment or {})},
        )
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() - started > 60:
                sys.exit(f"{name} did not start; see {log.name}")
            time.sleep(0.0005)
        self.start_ms = (time.monotonic() - started) * 1000

    def answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(self.request("/v1/pets?limit=1", "Connection: close\r\n").encode())
                return connection.recv(4096).startswith(b"HTTP/1.1 200")
        except OSError:
            return False

    def request(self, path, fields=""):
        return f"GET {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {self.key}\r\n{fields}\r\n"

    def response(self, path):
        """The body of one response."""
        url = f"http://127.0.0.1:{self.port}{path}"
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {self.key}"})
        with urllib.request.urlopen(request) as response:
            return response.read()

    def create(self, body):
        """Adds one pet on a new connection."""
        fields = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v1/pets", body, fields)
        with urllib.request.urlopen(request) as response:
            return response.read()

    def takes(self, work):
        """Whether the server can do this work."""
        name, _, _, kind = work
        if kind == "change" and not self.changes_pets:
            return False
        return self.database is not None or kind == "read" and "list of 20" in name

    def check(self, path):
        """Ends everything if the body is not what stands in the database."""
        if self.database and json.loads(self.response(path)) != expected(self.database, path):
            sys.exit(f"{self.name}: {path}: a wrong body")

    def tree(self):
        """The process and its children, and theirs."""
        found, rest = [], [self.process.pid]
        while rest:
            pid = rest.pop()
            found.append(pid)
            for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
                try:
                    rest += [int(child) for child in task.read_text().split()]
                except FileNotFoundError:
                    pass  # A thread that has just ended.
        return found

    def cpu_seconds(self):
        """User and system time, from the operating system's accounting."""
        fields = [pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self.tree()]
        return sum(int(f[11]) for f in fields) / TICK, sum(int(f[12]) for f in fields) / TICK

    def resident_mib(self):
        pages = sum(int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self.tree())
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def load(self, path, connections, kind, seconds, check_bodies=False, prefix=()):
        """One run of the load generator. Every response must be a 2xx, no socket may fail, and every create
        must be in the database. `prefix` comes before the load generator's own words."""
        rows = count(self.database) if self.database and kind == "create" else 0
        before = self.cpu_seconds()
        result = self.generate(path, connections, kind, seconds, check_bodies, prefix)
        after = self.cpu_seconds()
        requests = result["requests"]
        if self.database and kind == "change" and expected(self.database, path).get("status") not in ("sold", "pending"):
            sys.exit(f"{self.name}: acknowledged changes are missing")
        if self.database and kind == "create" and count(self.database) - rows < requests:
            sys.exit(f"{self.name}: acknowledged pets are missing")
        result["user"] = (after[0] - before[0]) / requests * 1e6
        result["system"] = (after[1] - before[1]) / requests * 1e6
        return result

    def generate(self, path, connections, kind, seconds, check_bodies, prefix):
        words = [*prefix, "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s"]
        words += ["-s", str(BENCH / "load.lua"), f"http://127.0.0.1:{self.port}{path}"]
        told = {**os.environ, "KIND": kind, "KEY": self.key, "CHECK": "1" if check_bodies else "0"}
        out = subprocess.run(words, check=True, capture_output=True, text=True, env=told).stdout
        result = json.loads(out.strip().splitlines()[-1])
        wrong = {what: result[what] for what in ("status", "connect", "read", "write", "timeout", "body") if result[what]}
        if wrong or not result["requests"]:
            sys.exit(f"{self.name}: {path}: not every response was right: {wrong}")
        return {
            "rate": result["requests"] / (result["duration"] / 1e6),
            "p50": result["p50"] / 1000,
            "p99": result["p99"] / 1000,
            "requests": result["requests"],
        }

    def stop(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)


class Redis(Server):
    """Redis, each of whose SETs is flushed before its reply; by redis-benchmark, as wrk speaks HTTP only."""

    def answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(4096).startswith(b"+PONG")
        except OSError:
            return False

    def takes(self, work):
        return work[3] == "create"

    def generate(self, path, connections, kind, seconds, check_bodies, prefix):
        # It takes a number of requests and no time: as many as fit, by the rate of a short run before.
        rate, _ = self.set(connections, connections * 100)
        requests = max(int(rate * seconds), 100)
        rate, latency = self.set(connections, requests)
        # The short run's requests count for the processor time as well.
        return {"rate": rate, "requests": requests + connections * 100, **latency}

    def set(self, connections, requests):
        words = ["redis-benchmark", "-p", self.port, "-c", connections, "-n", requests, "-r", 1_000_000, "-d", 50]
        words += ["-t", "set", "--csv"]
        out = subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True).stdout
        names, values = ([field.strip('"') for field in line.split(",")] for line in out.strip().splitlines()[-2:])
        told = dict(zip(names, values))
        return float(told["rps"]), {"p50": float(told["p50_latency_ms"]), "p99": float(told["p99_latency_ms"])}


def petstore(program, database, key, name="petstore", prefix=()):
    """A petstore that has just started."""
    port = next(PORTS)
    words = [*prefix, program, "--listen", f"127.0.0.1:{port}", "--database", database]
    # Another commit may not know the flag.
    can_change = "--experimental" in subprocess.run([program, "--help"], capture_output=True, text=True).stdout
    words += ["--experimental"] if can_change else []
    server = Server(name, words, port, key, database)
    server.changes_pets = can_change
    return server
