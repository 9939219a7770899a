"""Compares petstore with what people would use instead, and prints a document with tables."""

import json
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import time

from server import BENCH, FOLDER, PORTS, ROOT, Redis, Server, TARGET, WORKS, build, expected, install, make_database, petstore
from server import remove_database, run, say

PEERS = BENCH / "peers"
SMALL, LARGE = 10_000, 10_000_000


def build_peers():
    # They get SQLite as their own packages compile it, not as .cargo/config.toml has it.
    environment = {**os.environ, "CARGO_TARGET_DIR": str(FOLDER / "peers"), "LIBSQLITE3_FLAGS": ""}
    run("cargo", "build", "--quiet", "--locked", "--release", cwd=PEERS, env=environment)
    venv = FOLDER / "venv"
    if not (venv / "bin" / "uvicorn").exists():
        run(sys.executable, "-m", "venv", venv)
        run(venv / "bin" / "pip", "install", "--quiet", "-r", PEERS / "fastapi-sqlite3" / "requirements.txt")


def start_all(program, key, model):
    """Petstore first, then its peers, then what does a part of the work only."""
    port = {name: next(PORTS) for name in ("actix", "axum", "uvicorn", "nginx", "axum static", "tiny_http", "redis")}
    address = {name: f"127.0.0.1:{port[name]}" for name in port}

    def database(name):
        path = FOLDER / f"{name}.db"
        remove_database(path)
        return shutil.copy(model, path)

    release = FOLDER / "peers" / "release"
    path = database("petstore")
    yield petstore(program, path, key)
    path = database("actix-rusqlite")
    words = [release / "peer-actix-rusqlite", address["actix"], path]
    yield Server("actix-rusqlite", words, port["actix"], key, path)
    path = database("axum-sqlx")
    yield Server("axum-sqlx", [release / "peer-axum-sqlx", address["axum"], path], port["axum"], key, path)
    path = database("fastapi-sqlite3")
    words = [FOLDER / "venv" / "bin" / "uvicorn", "app:app", "--app-dir", PEERS / "fastapi-sqlite3"]
    words += ["--port", port["uvicorn"], "--workers", os.cpu_count(), "--no-access-log", "--log-level", "warning"]
    yield Server("fastapi-sqlite3", words, port["uvicorn"], key, path, {"DATABASE": str(path)})

    body = FOLDER / "list-of-20.json"
    body.write_text(json.dumps(expected(model, "/v1/pets"), separators=(",", ":")))
    folder = FOLDER / "nginx"
    folder.mkdir(exist_ok=True)
    (folder / "conf").write_text(NGINX.format(folder=folder, address=address["nginx"], body=body.read_text()))
    yield Server("nginx static", ["nginx", "-e", "stderr", "-c", folder / "conf"], port["nginx"], key)
    yield Server("axum static", [release / "static-axum", address["axum static"], body], port["axum static"], key)
    words = [release / "static-tiny-http", address["tiny_http"], body]
    yield Server("tiny_http static", words, port["tiny_http"], key)
    folder = FOLDER / "redis"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    words = ["redis-server", "--port", port["redis"], "--bind", "127.0.0.1", "--dir", folder, "--save", ""]
    yield Redis("redis, SET", [*words, "--appendonly", "yes", "--appendfsync", "always"], port["redis"], key)


def measure(servers, works, rounds, seconds):
    results = {}
    for work in works:
        name, path, connections, kind = work
        takers = [server for server in servers if server.takes(work)]
        for server in takers:
            server.check(path)
            # Once with every body looked at, which slows wrk down; this also warms up.
            server.load(path, connections, kind, 1, check_bodies=server.database is not None)
        for _ in range(rounds):
            for server in takers:
                result = server.load(path, connections, kind, seconds)
                results.setdefault(name, {}).setdefault(server.name, []).append(result)
                say(f"  {name}: {server.name}: {result['rate']:.0f}/s, p99 {result['p99']:.2f} ms")
    return results


def median(runs, what):
    return statistics.median(result[what] for result in runs)


def print_table(results):
    print("| work | server | requests/s | petstore is | CPU µs (user + system) | p50 ms | p99 ms |")
    print("|---|---|--:|--:|--:|--:|--:|")
    for work, by_server in results.items():
        ours = by_server["petstore"]
        for name, runs in by_server.items():
            # The ratio of each round, as its turns lay side by side.
            ratio = statistics.median(a["rate"] / b["rate"] for a, b in zip(ours, runs))
            print(
                f"| {work if name == 'petstore' else ''} | {name} | {median(runs, 'rate'):,.0f} | "
                f"{'' if name == 'petstore' else f'{ratio:.2f} ×'} | "
                f"{median(runs, 'user'):.0f} + {median(runs, 'system'):.0f} | "
                f"{median(runs, 'p50'):.2f} | {median(runs, 'p99'):.2f} |"
            )


def create_after_pauses(servers, creates):
    """One create every 1.8 s at each server: the time of each, first without a tracer. Then, with strace, the flushes
    and bytes of all that was written to the database and its log, also between the creates."""
    body = b'{"name":"Rex","categoryId":1,"status":"available"}'
    times = {server.name: [] for server in servers}

    def create_at_all(note):
        for turn in range(creates):
            # Who goes first meets a machine that has been idle, so that changes each time.
            first = turn % len(servers)
            for server in servers[first:] + servers[:first]:
                began = time.monotonic()
                server.create(body)
                note(server, (time.monotonic() - began) * 1000)
            time.sleep(1.8)

    create_at_all(lambda server, ms: times[server.name].append(ms))
    traces = {server.name: FOLDER / f"{server.name}.strace" for server in servers}
    tracers = []
    for server in servers:
        words = ["strace", "-f", "-y", "-qq", "-e", "trace=fsync,fdatasync,write,pwrite64", "-o", traces[server.name]]
        words += [word for pid in server.tree() for word in ("-p", str(pid))]
        tracers.append(subprocess.Popen([str(word) for word in words], stderr=subprocess.DEVNULL))
    time.sleep(1)
    create_at_all(lambda server, ms: None)
    for tracer in tracers:
        tracer.terminate()
        tracer.wait()
    print(PAUSES)
    print("| server | p50 ms | flushes a create | KB written a create |")
    print("|---|--:|--:|--:|")
    for server in servers:
        lines = traces[server.name].read_text().splitlines()
        flushes = sum("sync(" in line for line in lines)
        writes = [line for line in lines if f"<{server.database}" in line and "write" in line and " = " in line]
        written = sum(int(line.rpartition(" = ")[2].split()[0]) for line in writes)
        p50 = statistics.median(times[server.name])
        print(f"| {server.name} | {p50:.2f} | {flushes / creates:.1f} | {written / creates / 1000:.1f} |")


def without_http(database, seconds):
    """One pet after the other through the library, in a process of its own, while petstore runs."""
    run("cargo", "build", "--quiet", "--locked", "--release", "--example", "add_pets", cwd=ROOT)
    program = TARGET / "release" / "examples" / "add_pets"
    lines = subprocess.run([program, database, str(seconds)], check=True, capture_output=True, text=True).stdout
    print(WITHOUT_HTTP)
    print("| work | p50 ms | per second |")
    print("|---|--:|--:|")
    for line in lines.splitlines():
        work, p50, rate = line.split()
        print(f"| {work} | {p50} | {int(rate):,} |")


def print_footprint(servers, idle):
    print(FOOTPRINT)
    print("| server | start, ms | resident when idle, MiB | after the load, MiB |")
    print("|---|--:|--:|--:|")
    for server in servers:
        print(f"| {server.name} | {server.start_ms:.1f} | {idle[server.name]:.1f} | {server.resident_mib():.1f} |")


def idle_connections(server, connections):
    """Resident memory with so many clients who say nothing more."""
    clients = []
    try:
        for _ in range(connections):
            clients.append(socket.create_connection(("127.0.0.1", server.port)))
        for client in clients:
            client.sendall(server.request("/v1/pets?limit=1").encode())
        for client in clients:
            client.recv(4096)
        return server.resident_mib()
    finally:
        for client in clients:
            client.close()


def growth(program, rounds, seconds):
    """First and last page and a search by name, in a small and in a very large table, in turns."""
    say("  10 million pets: making the database")
    paths = {SMALL: FOLDER / "small.db", LARGE: FOLDER / "large.db"}
    keys = {size: make_database(program, path, size) for size, path in paths.items()}
    runs, starts = {}, []
    for _ in range(rounds):
        for size, path in paths.items():
            server = petstore(program, path, keys[size], f"petstore-{size}")
            if size == LARGE:
                starts.append(server.start_ms)
            # A thousand different pages, more than a worker keeps, so that the database is asked.
            for page, query in (("first", "after=0"), ("last", f"after={size - 1021}"), ("name", "name=zora&after=0")):
                result = server.load(f"/v1/pets?{query}", 64, "walk", seconds)
                runs.setdefault((page, size), []).append(result)
                say(f"  {page} of {size}: {result['rate']:.0f}/s")
            server.stop()
    print(GROWTH)
    print(f"| pages, 64 connections | {SMALL:,} pets | {LARGE:,} pets | time, large to small |")
    print("|---|--:|--:|--:|")
    for page in ("first", "last", "name"):
        small, large = runs[page, SMALL], runs[page, LARGE]
        ratio = statistics.median(a["rate"] / b["rate"] for a, b in zip(small, large))
        print(f"| {page} | {median(small, 'rate'):,.0f}/s | {median(large, 'rate'):,.0f}/s | {ratio:.2f} × |")
    print(f"\nWith {LARGE:,} pets petstore starts in {statistics.median(starts):.1f} ms.")
    for path in paths.values():
        remove_database(path)


def recording(program, rounds, seconds):
    """Creates and changes with and without a record of changes, in turns."""
    servers = []
    for name in ("off", "on"):
        path = FOLDER / f"{name}.db"
        key = make_database(program, path, SMALL)
        run(program, "changes", "keep", "90d" if name == "on" else "off", "--database", path, stdout=subprocess.DEVNULL)
        servers.append(petstore(program, path, key, name))
    print(RECORDING)
    print("| work | without, CPU µs | with, CPU µs | ratio | without, requests/s | with, requests/s |")
    print("|---|--:|--:|--:|--:|--:|")
    for title, path, connections, kind in WORKS:
        if kind not in ("create", "change"):
            continue
        runs = [[], []]
        for _ in range(rounds):
            for server, results in zip(servers, runs):
                result = server.load(path, connections, kind, seconds)
                results.append({**result, "cpu": result["user"] + result["system"]})
                say(f"  {title}, record {server.name}: {result['rate']:.0f}/s")
        ratio = statistics.median(on["cpu"] / off["cpu"] for off, on in zip(*runs))
        cpu, rate = [f"{median(of, 'cpu'):.1f}" for of in runs], [f"{median(of, 'rate'):,.0f}" for of in runs]
        print(f"| {title} | {' | '.join(cpu)} | {ratio:.2f} | {' | '.join(rate)} |")
    for server in servers:
        server.stop()


NGINX = """\
daemon off;
worker_processes auto;
pid {folder}/pid;
events {{ }}
http {{
    access_log off;
    keepalive_requests 1000000000;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    default_type application/json;
    server {{
        listen {address};
        return 200 '{body}';
    }}
}}
"""


INTRODUCTION = """\
# What scripts/bench measured

Printed by `scripts/bench >scripts/bench.d/results.md`, from one run. Machines differ, and a machine that does
other work is noisy. Compare servers within one run only, and repeat it on your machine.

- Machine: {cpu}, {cores} cores, Linux {linux}. The servers share the cores with the load generator (wrk).
- Each figure is the median of {rounds} rounds of {seconds} s. The servers take turns: A B C, A B C, and so on.

## What is compared

| server | what it is |
|---|---|
| petstore | this service, as `cargo build --release` makes it |
| actix-rusqlite | actix-web with rusqlite and a pool of connections |
| axum-sqlx | axum with sqlx |
| fastapi-sqlite3 | FastAPI with Python's sqlite3, one process for each core |
| nginx static | nginx with a constant body of 20 pets, without key and database |
| axum static | axum with the same constant body |
| tiny_http static | tiny_http with the same constant body |
| redis, SET | Redis, which flushes each SET of 50 bytes before its reply (`appendfsync always`), under redis-benchmark |

The first four do the same work. Each has a database of its own, with the same schema, the same {animals:,} pets
and the same key. Each create is flushed to the disk before its response. The peers are written as their own
documentation shows it. They are in `scripts/bench.d/peers`.

One difference is intended. Petstore keeps the lists it has built until something in the database changes,
and the peers ask the database each time. In the last table petstore has to ask the database each time as well.

The last four do a part of the work only. The static nginx and axum show about how much this machine can send, and
Redis about how much it can flush. The static tiny_http shows why petstore has a gate in front of tiny_http. It
writes a response in two pieces, and the operating system holds the second one back until the client has
acknowledged the first (Nagle's algorithm).

The answers are checked. A server must first show the pets that are in its database. Every response must be a
2xx. After the creates, no pet that was acknowledged may be missing in the database.

## Speed

| column | what it means |
|---|---|
| requests/s | requests answered in a second |
| petstore is | how many times as many requests petstore answered; below 1, petstore is slower |
| CPU µs | processor time that the server takes for one request: in the program + in the operating system |
| p50 ms | half of the responses came within this time |
| p99 ms | 99 of 100 responses came within this time |

*Petstore is* is the median of the rounds, each compared with itself. So it can differ a little from what the
medians in the column *requests/s* give.
"""

FOOTPRINT = """
## Start and memory

The start lasts until the first response with 200. *Resident* is the memory that the server holds, together with
its child processes.
"""

PAUSES = """
## A create after a pause

One create every 1.8 s on a new connection, 16 times at each server. Flushes and bytes are those of the database and its
log, in the pauses too.
"""

WITHOUT_HTTP = """
## A pet without HTTP

A program that embeds the library adds a pet, flushed, and gets it by its id, with `petstore::Inventory`: one after the other.
"""

RECORDING = """
## A record of changes

The same creates and changes on a database that records changes (`petstore changes keep 90d`) and on one that does not. The last
row changes one pet again and again.
"""

GROWTH = """
## A large table

The pages of 20 pets are a thousand different ones, which is more than petstore keeps. *First* are the pages at
the beginning of the table, *last* those at its end. *Name* searches for a name that no pet has, from a thousand different
ids on, with `--experimental`: it looks at nearly all pets of the small table, and at 20,000 of the large one. The last column
says how many times as long a page takes in the large table.
"""


def main(rounds, seconds, only, with_growth):
    packages = {"wrk": "wrk", "nginx": "nginx-light", "redis-server": "redis-server", "strace": "strace"}
    for program, package in packages.items():
        install(program, package)
    program = build()
    build_peers()
    works = [work for work in WORKS if only in work[0]]
    model = FOLDER / "model.db"
    key = make_database(program, model, SMALL)
    servers = []
    try:
        for server in start_all(program, key, model):
            servers.append(server)
        time.sleep(1)
        idle = {server.name: server.resident_mib() for server in servers}
        results = measure(servers, works, rounds, seconds)

        cpu = next((l.partition(":")[2].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), "")
        linux = ".".join(platform.release().split(".")[:2])
        told = {"rounds": rounds, "seconds": seconds, "animals": SMALL}
        print(INTRODUCTION.format(cpu=cpu, cores=os.cpu_count(), linux=linux, **told))
        print_table(results)
        if not only or only in "create after a pause":
            create_after_pauses([server for server in servers if server.database], 16)
        if not only or only in "pet without HTTP":
            without_http(servers[0].database, seconds)
        print_footprint(servers, idle)
    finally:
        for server in servers:
            server.stop()
    fresh = petstore(program, servers[0].database, key)
    mib = idle_connections(fresh, 9_900)
    fresh.stop()
    print(f"\nWith 9,900 idle connections petstore holds {mib:.1f} MiB. ", end="")
    stripped = FOLDER / "stripped"
    run("strip", "-o", stripped, program)
    print(f"Its stripped binary has {stripped.stat().st_size / 1e6:.2f} MB.")
    if not only or only in "record of changes":
        recording(program, rounds, seconds)
    if with_growth:
        growth(program, rounds, seconds)
