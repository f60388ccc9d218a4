"""The log of the server: a JSON object for each line, secrets hidden, nothing longer than a line.

What a request, a task or a library said is hostile: it comes as a value of JSON, never as a line of
its own.
"""

import logging
import sys
from collections.abc import Generator, MutableMapping
from contextlib import contextmanager
from typing import Any

import structlog

from backburner.model.redaction import LINE_MAX_CHARS, VALUE_MAX_CHARS, redact, redact_text

_NAMES = ("backburner", "uvicorn.error")
_LONG = ("exception", "event")
"""What may be as long as a line: a traceback is cut there too, from its beginning."""
_TRACE_MAX_CHARS = 8000


def hidden(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Secrets by their keys and in texts (D9), and everything cut."""
    for key, value in redact(event).items():
        if isinstance(value, int | float | bool) or value is None:
            event[key] = value
            continue
        text = redact_text(value if isinstance(value, str) else str(value))
        most = (
            _TRACE_MAX_CHARS
            if key == "exception"
            else (LINE_MAX_CHARS if key in _LONG else VALUE_MAX_CHARS)
        )
        if len(text) > most:
            text = "…" + text[1 - most :] if key == "exception" else text[: most - 1] + "…"
        event[key] = text
    return event


@contextmanager
def logging_as_json(level: int) -> Generator[None]:
    """Write what the server says to standard error, for as long as it lasts."""
    shared: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            hidden,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    before: list[tuple[logging.Logger, int, bool]] = []
    for name in _NAMES:
        logger = logging.getLogger(name)
        before.append((logger, logger.level, logger.propagate))
        logger.setLevel(level)
        logger.propagate = False
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger, old, propagate in before:
            logger.removeHandler(handler)
            logger.setLevel(old)
            logger.propagate = propagate
