"""Compares this version with another commit: both run, and take turns under the same load."""

import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile
import time

from server import FOLDER, ROOT, WORKS, build, install, make_database, petstore, run, say

PETS = 10_000


def build_commit(commit):
    """The executable of a commit, or a file that is one already. Returns its name and its path."""
    if os.path.isfile(commit):
        return "the other", pathlib.Path(commit).resolve()
    words = ["git", "-C", ROOT, "rev-parse", "--short=10", "--verify", f"{commit}^{{commit}}"]
    short = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
    program = FOLDER / f"petstore-{short}"
    if not program.exists():
        say(f"  {short}: building it")
        # Outside of this repository, whose .cargo/config.toml would count as well.
        with tempfile.TemporaryDirectory() as source:
            archive = pathlib.Path(source) / "archive.tar"
            run("git", "-C", ROOT, "archive", "-o", archive, short)
            run("tar", "-xf", archive, "-C", source)
            target = FOLDER / f"target-{short}"
            environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
            run("cargo", "build", "--quiet", "--locked", "--release", cwd=source, env=environment)
        shutil.copy(target / "release" / "petstore", program)
        shutil.rmtree(target)
    return short, program


def instructions(program, database, key, work, seconds):
    """Instructions of the program itself for one request, counted by valgrind."""
    _, path, connections, kind = work
    out = FOLDER / "callgrind.out"
    prefix = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"]
    server = petstore(program, database, key, "under-valgrind", prefix)
    try:
        # Without counting first, so that what is done once is done.
        server.load(path, connections, kind, 1)
        quietly = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        run("callgrind_control", "-i", "on", server.process.pid, **quietly)
        requests = server.load(path, connections, kind, seconds)["requests"]
        run("callgrind_control", "-i", "off", server.process.pid, **quietly)
    finally:
        server.stop()
    return int(re.search(r"^totals: (\d+)", out.read_text(), re.MULTILINE)[1]) / requests


def system_calls(server, work):
    """System calls and flushes of the disk for one request; None if the kernel does not count them for us."""
    _, path, connections, kind = work
    out = FOLDER / "perf.out"
    events = "raw_syscalls:sys_enter,syscalls:sys_enter_fdatasync"
    prefix = ["perf", "stat", "-x,", "-o", str(out), "-e", events, "-p", str(server.process.pid)]
    if not shutil.which("perf") or subprocess.run([*prefix, "true"], capture_output=True).returncode:
        return None
    requests = server.load(path, connections, kind, 1, prefix=prefix)["requests"]
    counts = [line.split(",")[0] for line in out.read_text().splitlines() if "sys_enter" in line]
    return [int(count) / requests for count in counts]


def measure(programs, works, rounds, seconds):
    """The results of each work: for each of the two versions a list of runs, and what was counted."""
    databases = {name: FOLDER / f"{name}.db" for name in programs}
    keys = {name: make_database(program, databases[name], PETS) for name, program in programs.items()}
    servers = {name: petstore(program, databases[name], keys[name], name) for name, program in programs.items()}
    time.sleep(2)
    idle = {name: server.resident_mib() for name, server in servers.items()}
    # An earlier commit may lack some of the operations.
    works = [work for work in works if all(server.takes(work) for server in servers.values())]
    results = {}
    try:
        for work in works:
            title, path, connections, kind = work
            result = results[title] = {name: {"runs": []} for name in servers}
            for name, server in servers.items():
                server.check(path)
                server.load(path, connections, kind, 1, check_bodies=True)
                result[name]["calls"] = system_calls(server, work)
            for turn in range(rounds):
                # Who goes first changes each round.
                for name, server in sorted(servers.items(), reverse=turn % 2 == 1):
                    loaded = server.load(path, connections, kind, seconds)
                    result[name]["runs"].append(loaded)
                    say(f"  {title}: {name}: {loaded['rate']:.0f}/s")
    finally:
        for server in servers.values():
            server.stop()
    for work in works:
        for name, program in programs.items():
            counted = instructions(program, databases[name], keys[name], work, seconds)
            results[work[0]][name]["instructions"] = counted
            say(f"  {work[0]}: {name}: {counted:.0f} instructions")
    return results, idle


def print_table(commit, results, idle):
    print(f"Each cell: {commit} → this version. Ratios are this version to {commit}, round by round, and their median.\n")
    print("| work | requests/s | ratio | CPU µs | ratio | instructions | ratio | system calls | flushes |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|--:|")
    for title, (old, new) in ((title, result.values()) for title, result in results.items()):
        cpu = lambda run: run["user"] + run["system"]
        cells = []
        for what, of in (("rate", lambda run: run["rate"]), ("cpu", cpu)):
            before, after = [of(run) for run in old["runs"]], [of(run) for run in new["runs"]]
            digits = ",.0f" if what == "rate" else ".1f"
            cells.append(f"{statistics.median(before):{digits}} → {statistics.median(after):{digits}}")
            cells.append(f"{statistics.median(b / a for a, b in zip(before, after) if a):.2f}")
        cells.append(f"{old['instructions']:,.0f} → {new['instructions']:,.0f}")
        cells.append(f"{new['instructions'] / old['instructions']:.2f}")
        for i in range(2):
            known = old["calls"] and new["calls"]
            cells.append(f"{old['calls'][i]:.3f} → {new['calls'][i]:.3f}" if known else "")
        print(f"| {title} | {' | '.join(cells)} |")
    before, after = idle.values()
    print(f"\nResident when idle: {before:.1f} → {after:.1f} MiB ({after / before:.2f}).")


def main(commit, rounds, seconds, only):
    install("wrk", "wrk")
    install("valgrind", "valgrind")
    works = [work for work in WORKS if only in work[0]]
    this = build()
    name, other = build_commit(commit)
    results, idle = measure({name: other, "this": this}, works, rounds, seconds)
    print_table(name, results, idle)
