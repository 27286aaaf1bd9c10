"""Logs are events: one JSON object a line on stderr, with a stable `event` name and ids; never content or keys.

Records of the standard library's loggers (uvicorn, the Temporal SDK, asyncio) are brought into the same form.
"""

import logging
import sys

import structlog
from structlog.typing import Processor

_SHARED: tuple[Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.ExtraAdder(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
)


# At a lower level these tell whole addresses and, at DEBUG, the bodies of requests: what users wrote.
_TOO_TALKATIVE = ("httpx", "httpx2", "httpcore", "httpcore2", "openai", "anthropic", "pydantic_ai")


def configure_logging(level: str) -> None:
    """Set this process's logging up, once, at its start. Raises ValueError for an unknown level."""
    structlog.configure(
        processors=[*_SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_formatter())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for name in _TOO_TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)


def _formatter() -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=_SHARED,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            _error_type_only,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
    )


def _error_type_only(_: object, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    # A traceback's last line and an exception's text may quote a request: its type and place are enough.
    error = event.pop("exc_info", None)
    if isinstance(error, tuple) and error[0] is not None:
        event["error_type"] = error[0].__name__
    return event
