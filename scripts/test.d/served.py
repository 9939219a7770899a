"""What power-cut, disk-faults, full-disk and file-systems share: the program, a service, and clients whose creates are written down."""

import contextlib
import http.client
import json
import os
import random
import shutil
import subprocess
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TARGET = os.environ.get("CARGO_TARGET_DIR", f"{ROOT}/target")
PETSTORE = os.environ.get("PETSTORE", f"{TARGET}/release/petstore")
KEY = "test-key"
PATIENCE = int(os.environ.get("PATIENCE", 300))


def scratch(prefix):
    """A new folder, in memory if there is room: no power is really cut, and flushes take time."""
    memory = "/dev/shm"
    has_room = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 1 << 30
    return os.path.realpath(tempfile.mkdtemp(prefix=prefix, dir=memory if has_room else None))


def wait_for(what, is_there):
    end = time.monotonic() + PATIENCE
    while not is_there():
        assert time.monotonic() < end, f"waited in vain for {what}"
        time.sleep(0.02)


def run(*words, wait=True, **options):
    """Runs a command, which must succeed; with `wait=False` only starts it."""
    environment = {"PATH": os.environ["PATH"], "PETSTORE_API_KEY": KEY, "TMPDIR": os.environ.get("TMPDIR", "/tmp")}
    if not wait:
        return subprocess.Popen(words, env=environment, **options)
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=PATIENCE)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done


def export(database):
    """The pets of a database, by id."""
    lines = run(PETSTORE, "export", "--database", database).stdout.splitlines()
    return {pet["id"]: pet for pet in map(json.loads, lines)}


class Service:
    """A service, and one connection to it."""

    def __init__(self, database, log=subprocess.DEVNULL, words=()):
        self.process = run(PETSTORE, "--listen", "127.0.0.1:0", "--database", database, *words, wait=False, stdout=subprocess.PIPE, stderr=log, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("petstore listening on "), "the service does not start"
        self.port = int(line.rpartition(":")[2])
        self.connection = Connection(self.port)

    def pets(self):
        pets, path = {}, "/v1/pets?limit=100"
        while path:
            status, headers, page = self.connection.ask("GET", path)
            assert status == 200, (status, page)
            pets.update({pet["id"]: pet for pet in page})
            path = headers["Link"].partition(">")[0][1:] if headers["Link"] else None
        return pets

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.connection.close()


class Connection(http.client.HTTPConnection):
    def __init__(self, port):
        super().__init__("127.0.0.1", port, timeout=PATIENCE)

    def ask(self, method, path, body=None, retry_key=None, key=KEY):
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        if retry_key:
            headers["Idempotency-Key"] = retry_key
        try:
            self.request(method, path, body and json.dumps(body), headers)
            response = self.getresponse()
            return response.status, response.headers, json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError):
            self.close()
            raise


class Load:
    """Clients that create pets, and a model of what came of each create."""

    def __init__(self):
        self.port = None
        # By name: the body of a create, and whether it has an Idempotency-Key, which is its name.
        self.attempts = {}
        # By id: the name. By name: the statuses of all answers.
        self.created, self.statuses = {}, {}
        self.answers, self.changed = 0, threading.Condition()

    @contextlib.contextmanager
    def clients(self, count, large=0):
        """Clients that create pets until the end, and one that reads; some names are as long as names may be."""
        self.is_over = threading.Event()
        names = [f"{random.randrange(10**6)}-{client}" for client in range(count)]
        threads = [threading.Thread(target=self.create, args=[name, large]) for name in names]
        threads.append(threading.Thread(target=self.read))
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.is_over.set()
            for thread in threads:
                thread.join()

    def create(self, client, large):
        connection, number = Connection(self.port), 0
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            while not self.is_over.is_set():
                number += 1
                name = f"{client}-{number}"
                if random.random() < large:
                    name += "-" + "x" * 60_000
                body, has_key = {"name": name, "categoryId": number}, random.random() < 0.5
                self.attempts[name] = body, has_key
                self.statuses[name] = []
                self.send(connection, name)
                if has_key and random.random() < 0.2:
                    self.send(connection, name)

    def post(self, connection, name):
        """Sends a create. Returns its status, id, and whether the response is that of an earlier one."""
        body, has_key = self.attempts[name]
        status, headers, answer = connection.ask("POST", "/v1/pets", body, has_key and name[:99])
        return status, answer.get("id"), headers["Idempotency-Replayed"] == "true"

    def send(self, connection, name):
        """Sends a create, perhaps again, and writes down what came of it."""
        status, number, _ = self.post(connection, name)
        with self.changed:
            self.statuses[name].append(status)
            self.answers += 1
            if status == 201:
                assert self.created.setdefault(number, name) == name, "an id for two pets"
            self.changed.notify_all()

    def read(self):
        connection = Connection(self.port)
        with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            while not self.is_over.wait(0.01):
                connection.ask("GET", "/v1/pets?limit=100")

    def wait_for(self, more):
        """Waits for so many more pets."""
        with self.changed:
            enough = len(self.created) + more
            assert self.changed.wait_for(lambda: len(self.created) >= enough, PATIENCE), "no pets are created"
