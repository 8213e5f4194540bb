"""RabbitMQ with its default settings, and with its own epmd, so that no process is left behind."""

from __future__ import annotations

import pika

from bench.ground.process import Server, free_port, listens, program

FOLDERS = ("/usr/lib/rabbitmq/bin", "/opt/rabbitmq/sbin")


class Rabbitmq(Server):
    def __init__(self) -> None:
        super().__init__("rabbitmq")
        port, epmd, between = free_port(), free_port(), free_port()
        self._epmd = Server("rabbitmq")
        self._epmd.start([program("epmd"), "-address", "127.0.0.1", "-port", str(epmd)], lambda: listens(epmd))
        (self.folder / "rabbitmq.conf").write_text(f"listeners.tcp.local = 127.0.0.1:{port}\nloopback_users = none\n")
        folder = str(self.folder)
        env = {
            "HOME": folder,
            "RABBITMQ_NODENAME": f"bench{port}@localhost",
            "RABBITMQ_MNESIA_BASE": folder,
            "RABBITMQ_LOG_BASE": folder,
            "RABBITMQ_CONFIG_FILE": f"{folder}/rabbitmq.conf",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/plugins",
            "RABBITMQ_DIST_PORT": str(between),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "ERL_EPMD_PORT": str(epmd),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }
        self.url = f"amqp://guest:guest@127.0.0.1:{port}/%2F"
        self.start([program("rabbitmq-server", *FOLDERS)], lambda: listens(port), env)
        with pika.BlockingConnection(pika.URLParameters(self.url)) as connection:
            version = connection._impl.server_properties["version"]  # noqa: SLF001
        self.version = version.decode() if isinstance(version, bytes) else str(version)

    def stop(self) -> None:
        super().stop()
        self._epmd.stop()

    def empty(self, *queues: str) -> None:
        for queue in queues:
            with pika.BlockingConnection(pika.URLParameters(self.url)) as connection:
                connection.channel().queue_delete(queue)
