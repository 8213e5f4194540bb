"""A FastAPI application. The lifespan runs the setup, and requests enqueue messages.

`uvicorn fastapi_app:api` serves it, and `trunkline-worker fastapi_app:app` runs a worker.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import psycopg
import trunkline
from fastapi import Depends, FastAPI, HTTPException
from pydantic import BaseModel
from trunkline import transaction

app = trunkline.App(os.environ["DATABASE_URL"])
sent: list[str] = []


class Mail(BaseModel):
    to: str
    text: str


@app.task(queue="mails", retry=trunkline.Backoff(max_attempts=5), timeout=30)
async def send(mail: Mail) -> None:
    sent.append(mail.to)


@asynccontextmanager
async def lifespan(api: FastAPI) -> AsyncIterator[None]:
    await app.setup()  # the schema and the queues; does nothing if they exist
    yield


api = FastAPI(lifespan=lifespan)


@api.post("/mails", status_code=202)
async def enqueue(mail: Mail) -> dict[str, int]:
    return {"id": await send.enqueue(mail)}  # on disk; concurrent requests share one commit


@api.get("/mails/{id}")
async def look(id: int) -> dict[str, object]:
    found = await (await app.queue(send)).find(id)
    if found is None:
        raise HTTPException(404, "already sent, or never enqueued")
    return {"state": found.state, "attempt": found.attempt, "error": found.error}


async def connection() -> AsyncIterator[psycopg.AsyncConnection]:
    async with await psycopg.AsyncConnection.connect(app.url) as opened:
        yield opened  # commits if the request succeeds


@api.post("/users", status_code=201)
async def sign_up(mail: Mail, connection: Annotated[psycopg.AsyncConnection, Depends(connection)]) -> None:
    await connection.execute("insert into users (mail) values (%s)", (mail.to,))
    await transaction.queue(connection, send).enqueue(mail)  # with the user, or not at all
