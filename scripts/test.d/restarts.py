"""Restarts the service again and again behind a proxy, as systemd does with petstore.socket, while clients create and
list pets through the proxy. Every response must be 201 or 200, and the database must have each pet once.

    restarts.py PROGRAM DATABASE LISTEN TLS-PORT

LISTEN is the port or the path at which the proxy looks for the service. This process keeps the socket open, and the
proxy has TLS for pets.example at 127.0.0.1:TLS-PORT. PETSTORE_API_KEY has the key.
"""

import collections
import http.client
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading

RESTARTS = 20
CREATORS = 8
PATIENCE = 60

program, database, listen, tls_port = sys.argv[1:]
answers = {"GET": collections.Counter(), "POST": collections.Counter()}
names = set()
progress = threading.Condition()
is_over = threading.Event()
trust = ssl._create_unverified_context()


class Client(http.client.HTTPSConnection):
    def connect(self):
        plain = socket.create_connection(("127.0.0.1", int(tls_port)), timeout=PATIENCE)
        self.sock = trust.wrap_socket(plain, server_hostname=self.host)


def ask(client, method, body=None):
    headers = {"Authorization": "Bearer " + os.environ["PETSTORE_API_KEY"], "Content-Type": "application/json"}
    try:
        client.request(method, "/v1/pets", body, headers)
        response = client.getresponse()
        response.read()
        answer = response.status
    except (OSError, http.client.HTTPException) as error:
        client.close()
        answer = repr(error)
    with progress:
        answers[method][answer] += 1
        progress.notify_all()
    return answer


def create(creator):
    client, number = Client("pets.example"), 0
    while not is_over.is_set():
        number += 1
        name = f"{creator}-{number}"
        if ask(client, "POST", json.dumps({"name": name, "categoryId": 1})) == 201:
            names.add(name)


def read():
    client = Client("pets.example")
    while not is_over.is_set():
        ask(client, "GET")


def start(listener):
    """Starts the service with the socket as systemd passes it, and waits until it listens."""
    passed = 'exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" "$@"'
    service = subprocess.Popen(["sh", "-c", passed, program, "--database", database], stdin=listener, stdout=subprocess.PIPE)
    assert service.stdout.readline().startswith(b"petstore listening on"), "the service does not start"
    return service


def stop(service):
    service.send_signal(signal.SIGTERM)
    assert service.wait(PATIENCE) == 0, "the service fails at its end"


if listen.isdigit():
    listener = socket.create_server(("127.0.0.1", int(listen)), backlog=4096)
else:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(listen)
    listener.listen(4096)
service = start(listener)
threads = [threading.Thread(target=create, args=[creator]) for creator in range(CREATORS)] + [threading.Thread(target=read)]
for thread in threads:
    thread.start()
try:
    for _ in range(RESTARTS):
        with progress:
            enough = answers["POST"].total() + 100
            assert progress.wait_for(lambda: answers["POST"].total() >= enough, PATIENCE), "no responses come"
        stop(service)
        service = start(listener)
finally:
    is_over.set()
    for thread in threads:
        thread.join()
    stop(service)
    print("responses:", {method: dict(counts) for method, counts in answers.items()})

kept = subprocess.run([program, "export", "--database", database], check=True, stdout=subprocess.PIPE).stdout
kept = [json.loads(line)["name"] for line in kept.splitlines()]
assert set(answers["POST"]) == {201} and set(answers["GET"]) == {200}, "requests failed"
assert len(kept) == len(names) and set(kept) == names, "pets are missing, or there twice"
