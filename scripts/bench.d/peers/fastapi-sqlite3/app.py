"""The three operations, and the change of a pet, on FastAPI and the standard library's sqlite3, on its thread pool."""

import hashlib
import os
import sqlite3
import threading
import time
from typing import Literal

from fastapi import Depends, FastAPI, HTTPException, Query
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel

Status = Literal["available", "pending", "sold"]
local = threading.local()


def connection() -> sqlite3.Connection:
    if not hasattr(local, "connection"):
        local.connection = sqlite3.connect(os.environ["DATABASE"], timeout=30, isolation_level=None)
        local.connection.execute("PRAGMA journal_mode = WAL")
        local.connection.execute("PRAGMA synchronous = FULL")
    return local.connection


def authenticate(credentials: HTTPAuthorizationCredentials = Depends(HTTPBearer())) -> None:
    digest = hashlib.sha256(credentials.credentials.encode()).digest()
    row = connection().execute("SELECT expires_at FROM api_keys WHERE digest = ?", (digest,)).fetchone()
    if row is None or (row[0] is not None and row[0] <= time.time()):
        raise HTTPException(401)


class NewPet(BaseModel):
    name: str
    categoryId: int
    status: Status | None = None


class PetPatch(BaseModel):
    name: str | None = None
    categoryId: int | None = None
    status: Status | None = None


class Pet(NewPet):
    id: int


app = FastAPI(dependencies=[Depends(authenticate)])


def pet(row: tuple) -> Pet:
    return Pet(id=row[0], name=row[1], categoryId=row[2], status=row[3])


@app.get("/v1/pets", response_model_exclude_none=True)
def list_pets(limit: int = Query(20, ge=1, le=100), status: Status | None = None, after: int = -(2**63)) -> list[Pet]:
    if status is None:
        sql, values = "WHERE id > ? ORDER BY id LIMIT ?", (after, limit)
    else:
        sql, values = "WHERE status = ? AND id > ? ORDER BY id LIMIT ?", (status, after, limit)
    rows = connection().execute("SELECT id, name, category_id, status FROM pets " + sql, values)
    return [pet(row) for row in rows]


@app.get("/v1/pets/{pet_id}", response_model_exclude_none=True)
def get_pet(pet_id: int) -> Pet:
    row = connection().execute("SELECT id, name, category_id, status FROM pets WHERE id = ?", (pet_id,)).fetchone()
    if row is None:
        raise HTTPException(404)
    return pet(row)


@app.patch("/v1/pets/{pet_id}", response_model_exclude_none=True)
def change_pet(pet_id: int, patch: PetPatch) -> Pet:
    rows = connection().execute(
        "UPDATE pets SET name = coalesce(?2, name), category_id = coalesce(?3, category_id), status = coalesce(?4, status) "
        "WHERE id = ?1 RETURNING id, name, category_id, status",
        (pet_id, patch.name, patch.categoryId, patch.status),
    ).fetchall()
    if not rows:
        raise HTTPException(404)
    return pet(rows[0])


@app.post("/v1/pets", status_code=201, response_model_exclude_none=True)
def create_pet(new: NewPet) -> Pet:
    cursor = connection().execute(
        "INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)", (new.name, new.categoryId, new.status)
    )
    return Pet(id=cursor.lastrowid, **new.model_dump())
