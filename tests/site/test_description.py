"""Holds the OpenAPI description against tools that others read it with, and against the running service."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import uuid

import pytest
import requests

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
TOOLS = TARGET / "site"
PETSTORE = os.environ.get("PETSTORE", TARGET / "release" / "petstore")
KEY = "secret-of-the-test"


def run(*words, **options):
    """Runs a program, and shows what it said where it fails."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def tool(name):
    """A program of the Python packages."""
    return pathlib.Path(sys.executable).with_name(name)


@contextlib.contextmanager
def running(folder, listen, *more):
    """Starts a service of its own, and gives its address."""
    words = [PETSTORE, "--listen", listen, "--database", folder / "petstore.db", *more]
    environment = {**os.environ, "PETSTORE_API_KEY": KEY}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        line = process.stdout.readline()
        assert line.startswith("petstore listening on http://"), line
        try:
            yield line.split()[-1]
        finally:
            process.terminate()
        assert process.wait(timeout=20) == 0


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """The address of a running service of its own, with every operation."""
    with running(tmp_path_factory.mktemp("service"), "127.0.0.1:0", "--experimental") as address:
        yield address


def test_loop_of_requests_follows_the_links(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as free:
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    with running(tmp_path, listen, "--base-url", f"http://{listen}/v1") as address, requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {KEY}"
        for _ in range(5):
            session.post(f"{address}/v1/pets", json={"name": "Rex", "categoryId": 1}).raise_for_status()
        response = session.get(f"{address}/v1/pets", params={"limit": 2})
        ids = [pet["id"] for pet in response.json()]
        while "next" in response.links:
            response = session.get(response.links["next"]["url"])
            ids += [pet["id"] for pet in response.json()]
        assert ids == [1, 2, 3, 4, 5]


@pytest.fixture(scope="module", params=[[], ["--experimental"]], ids=["contract", "experimental"])
def document(request, tmp_path_factory):
    """The OpenAPI description in a file, as the command prints it."""
    file = tmp_path_factory.mktemp("description") / "openapi.json"
    file.write_text(run(PETSTORE, "openapi", "--base-url", "https://pets.example/v1", *request.param))
    return file


def test_validator_finds_nothing(document):
    assert run(tool("openapi-spec-validator"), document).strip().endswith("OK")


def test_linter_finds_nothing_unexpected(document):
    redocly = TOOLS / "node_modules" / ".bin" / "redocly"
    environment = {**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"}
    words = [redocly, "lint", "--extends", "recommended", "--format", "json", document]
    said = subprocess.run(words, capture_output=True, text=True, env=environment)
    found = [(problem["ruleId"], problem["location"][0]["pointer"]) for problem in json.loads(said.stdout)["problems"]]
    assert found == [], said.stderr


def test_schemathesis_finds_nothing(service):
    run(
        tool("schemathesis"),
        *["--config-file", HERE / "schemathesis.toml", "run", f"{service}/openapi.json", "--url", f"{service}/v1"],
        *["--header", f"Authorization: Bearer {KEY}", "--mode", "all", "--no-color"],
        *["--phases", "examples,coverage,fuzzing,stateful", "--max-examples", "300", "--seed", "1"],
        cwd=TOOLS,
    )


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """A client that a generator made of the description with every operation."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_text(run(PETSTORE, "openapi", "--experimental"))
    words = ["--path", folder / "openapi.json", "--meta", "none", "--output-path", folder / "pets"]
    run(tool("openapi-python-client"), "generate", *words)
    sys.path.insert(0, str(folder))
    import pets

    return pets


def test_generated_client_works(client, service):
    from pets.api.animals import create_pet, delete_pet, get_inventory, get_pet, list_pets, update_pet
    from pets.models import Error, NewPet, Pet, PetPatch, PetStatus

    known = client.AuthenticatedClient(base_url=f"{service}/v1", token=KEY)
    name = f"Rex {uuid.uuid4()}"
    made = create_pet.sync(client=known, body=NewPet(name=name, category_id=3, status=PetStatus.SOLD))
    assert isinstance(made, Pet)
    listed = list_pets.sync(client=known, limit=1, status=PetStatus.SOLD, after=made.id - 1)
    assert listed == [made]
    assert get_pet.sync(client=known, pet_id=made.id) == made
    tag = get_pet.sync_detailed(client=known, pet_id=made.id).headers["ETag"]
    changed = update_pet.sync(client=known, pet_id=made.id, body=PetPatch(status=None), if_match=tag)
    assert isinstance(changed, Pet) and not isinstance(changed.status, PetStatus)
    outdated = delete_pet.sync(client=known, pet_id=made.id, if_match=tag)
    assert isinstance(outdated, Error) and outdated.code == "precondition_failed"
    before = get_inventory.sync(client=known).total
    assert delete_pet.sync_detailed(client=known, pet_id=made.id).status_code == 204
    assert get_inventory.sync(client=known).total == before - 1
    missing = get_pet.sync(client=known, pet_id=made.id + 1_000_000)
    assert isinstance(missing, Error) and missing.status == 404
    unknown = client.AuthenticatedClient(base_url=f"{service}/v1", token="wrong")
    refused = list_pets.sync(client=unknown)
    assert isinstance(refused, Error) and refused.code == "unauthorized"
