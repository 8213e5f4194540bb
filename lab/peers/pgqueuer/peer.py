"""What both entry points do alike with PGQueuer."""

from importlib.metadata import version

from pgqueuer.queries import Queries

VERSION = f"PGQueuer {version('pgqueuer')}"
ASYNCPG = f"asyncpg {version('asyncpg')}"


async def send(queries: Queries, entrypoint: str, payloads: list[bytes]) -> list[int]:
    """One call, for one or for many."""
    if len(payloads) == 1:
        return await queries.enqueue(entrypoint, payloads[0])
    count = len(payloads)
    return await queries.enqueue([entrypoint] * count, payloads, [0] * count)
