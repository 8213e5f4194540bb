"""The trace that goes through messages, by OpenTelemetry where that is installed: W3C ``traceparent`` in their metadata."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

try:
    _api: Any = import_module("opentelemetry.trace")
    _context: Any = import_module("opentelemetry.context")
    _w3c: Any = import_module("opentelemetry.trace.propagation.tracecontext").TraceContextTextMapPropagator()
except ImportError:
    _api = _context = _w3c = None


def is_traced() -> bool:
    """Whether the caller runs within a span."""
    return _api is not None and _api.get_current_span().get_span_context().is_valid


def with_trace(metadata: Mapping[str, str]) -> dict[str, str]:
    """The metadata of a message that continues the current trace, unless its own names one."""
    carried = dict(metadata)
    if is_traced() and "traceparent" not in carried:
        _w3c.inject(carried)
    return carried


@contextmanager
def handling(queue: str, metadata: Mapping[str, str], id: int, attempt: int) -> Generator[None, None, None]:
    """A span ``handle {queue}`` around a handler, under the message's trace."""
    if _api is None:
        yield
        return
    context = _w3c.extract(metadata)
    tracer = _api.get_tracer("trunkline")
    about = {
        "messaging.system": "trunkline",
        "messaging.destination.name": queue,
        "messaging.message.id": str(id),
        "messaging.trunkline.attempt": attempt,
    }
    with tracer.start_as_current_span(f"handle {queue}", context=context, kind=_api.SpanKind.CONSUMER, attributes=about):
        yield


#: Whether OpenTelemetry is there.
is_installed = _api is not None


def is_recorded() -> bool:
    """Whether OpenTelemetry is there, and a provider is set: spans that are not recorded cost more than a quick handler."""
    return _api is not None and type(_api.get_tracer_provider()).__name__ not in ("ProxyTracerProvider", "NoOpTracerProvider")
