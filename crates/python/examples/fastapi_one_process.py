"""A FastAPI application that runs the worker in its own process and event loop, so that no second
kind of process is needed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import trunkline
from fastapi import FastAPI

app = trunkline.App(os.environ["DATABASE_URL"])
greeted: asyncio.Queue[str] = asyncio.Queue()


@app.task(queue="greetings")
async def greet(name: str) -> None:
    await greeted.put(name)


@asynccontextmanager
async def lifespan(api: FastAPI) -> AsyncIterator[None]:
    await app.setup()
    def end_too(worker: asyncio.Task[trunkline.Summary]) -> None:
        if not worker.cancelled():
            os.kill(os.getpid(), signal.SIGTERM)

    worker = asyncio.create_task(app.run(shutdown_after=10))
    # Without a worker, nothing would handle what requests enqueue: uvicorn ends, to be restarted.
    worker.add_done_callback(end_too)
    yield
    # Handlers have ten seconds to finish. Other messages are released without counting an attempt.
    worker.cancel()
    with suppress(asyncio.CancelledError):
        await worker


api = FastAPI(lifespan=lifespan)


@api.post("/greetings/{name}", status_code=202)
async def enqueue(name: str) -> dict[str, int]:
    return {"id": await greet.enqueue(name)}


@api.get("/greetings")
async def next_greeted() -> str:
    return await asyncio.wait_for(greeted.get(), 20)
