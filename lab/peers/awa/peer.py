"""The code that both entry points share."""

from importlib.metadata import version

import awa

VERSION = f"awa-pg {version('awa-pg')}"


def connect(url: str, connections: int) -> awa.AsyncClient:
    # awa refuses a URL without a host, but connects to the host that the parameter `host` names.
    return awa.AsyncClient(url.replace("@/", "@localhost/", 1), max_connections=connections)


async def migrate(client: awa.AsyncClient) -> None:
    await client.migrate()
    # A fresh database uses awa's older tables until this is called.
    await client.install_queue_storage()
