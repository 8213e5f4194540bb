"""What both entry points do alike with awa."""

from importlib.metadata import version

import awa

VERSION = f"awa-pg {version('awa-pg')}"


def connect(url: str, connections: int) -> awa.AsyncClient:
    # awa refuses a URL with no host; the parameter `host` is the one that counts.
    return awa.AsyncClient(url.replace("@/", "@localhost/", 1), max_connections=connections)


async def migrate(client: awa.AsyncClient) -> None:
    await client.migrate()
    # A fresh database is still on awa's older tables until this is called.
    await client.install_queue_storage()
