"""Carries traces through messages, with OpenTelemetry if it is installed: the metadata contains the
W3C ``traceparent``."""

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
    """Returns true if the caller runs within a span."""
    return _api is not None and _api.get_current_span().get_span_context().is_valid


def with_trace(metadata: Mapping[str, str]) -> dict[str, str]:
    """Returns the metadata of a message that continues the current trace, unless the given metadata
    names a trace."""
    carried = dict(metadata)
    if is_traced() and "traceparent" not in carried:
        _w3c.inject(carried)
    return carried


@contextmanager
def handling(queue: str, metadata: Mapping[str, str], id: int, attempt: int) -> Generator[None, None, None]:
    """Opens a span ``handle {queue}`` around a handler, in the message's trace."""
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


#: True if OpenTelemetry is installed.
is_installed = _api is not None


def is_recorded() -> bool:
    """Returns true if OpenTelemetry is installed and has a provider. Without a provider, a span is
    not recorded but still costs more than a quick handler."""
    return _api is not None and type(_api.get_tracer_provider()).__name__ not in ("ProxyTracerProvider", "NoOpTracerProvider")
