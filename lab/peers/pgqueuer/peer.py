"""The code that both entry points share."""

from importlib.metadata import version

from pgqueuer.queries import Queries

VERSION = f"PGQueuer {version('pgqueuer')}"
ASYNCPG = f"asyncpg {version('asyncpg')}"


async def send(queries: Queries, entrypoint: str, payloads: list[bytes]) -> list[int]:
    """Sends one message or many messages in one call."""
    if len(payloads) == 1:
        return await queries.enqueue(entrypoint, payloads[0])
    count = len(payloads)
    return await queries.enqueue([entrypoint] * count, payloads, [0] * count)
