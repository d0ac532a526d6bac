"""Spans by OpenTelemetry: turn, effect, wave, cluster call, delivery, one inside the other; sent as the OTEL_*
variables say (OTEL_EXPORTER_OTLP_ENDPOINT and its kin).

Never: a text of a run in a span: names and kinds only; an error's message.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import StatusCode

if TYPE_CHECKING:
    from agent.observe import Labels

NAME = "watchkeeper"
FLUSH_MS = 2000


class Tracing:
    """The spans of this process. exporter: where they go; that of the OTEL_* variables unless given."""

    def __init__(self, exporter: SpanExporter | None = None, *, processor: Any = None) -> None:
        self._provider = TracerProvider(resource=Resource.create({"service.name": NAME}))
        self._provider.add_span_processor(processor or BatchSpanProcessor(exporter or _otlp()))
        self._tracer = self._provider.get_tracer(NAME)

    @contextmanager
    def during(self, what: str, labels: Labels) -> Iterator[None]:
        """One piece of work as a span (`agent.observe.Listener`)."""
        attributes = {f"{NAME}.{name}": value for name, value in labels.items() if value}
        with self._tracer.start_as_current_span(
            f"{NAME}.{what}", attributes=attributes, record_exception=False, set_status_on_exception=False
        ) as span:
            try:
                yield
            except BaseException as error:
                span.set_status(StatusCode.ERROR, type(error).__name__)
                raise

    def close(self) -> None:
        """Send what is left."""
        self._provider.force_flush(FLUSH_MS)
        self._provider.shutdown()


def _otlp() -> SpanExporter:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter()
