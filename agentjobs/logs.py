"""Logs are events: one JSON object a line on stderr, with a stable `event` name and ids; never content or keys.

Records of the standard library's loggers (uvicorn, the Temporal SDK, asyncio) are brought into the same form:
their event is the message before anything is put into it, since what is put in may quote a request.
"""

import logging
import re
import sys
from collections.abc import Mapping
from typing import Any, Final

import structlog
from opentelemetry import trace
from structlog.typing import EventDict, Processor

LONGEST_TEXT: Final = 500
"""Characters of a value: an event is read by people, and no id is longer."""


def _with_trace(_: object, __: str, event: EventDict) -> EventDict:
    place = trace.get_current_span().get_span_context()
    if place.is_valid:
        event["trace_id"], event["span_id"] = f"{place.trace_id:032x}", f"{place.span_id:016x}"
    return event


_SHARED: Final[tuple[Processor, ...]] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.ExtraAdder(),
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    _with_trace,
)

# At a lower level these tell whole addresses and, at DEBUG, the bodies of requests: what users wrote.
_TOO_TALKATIVE: Final = ("httpx", "httpx2", "httpcore", "httpcore2", "openai", "anthropic", "pydantic_ai")

_SECRET: Final = re.compile(
    r"(?P<kept>\bbearer\s+|\bbasic\s+|://[^\s/:@]*:)[^\s@\"']+"
    r"|\bajk_[A-Za-z0-9_-]+|\bwhsec_[A-Za-z0-9+/=_-]+|\bsk-[A-Za-z0-9_-]{6,}"
    r"|\b(?:gh[a-z]_|github_pat_)[A-Za-z0-9_]+",
    re.IGNORECASE,
)
"""API keys of ours and of models, secrets of webhooks, tokens of GitHub, credentials in a header or an address.
None of them should ever get here: this is the second line.
"""

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}")


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
    handler.addFilter(_is_news)
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for name in _TOO_TALKATIVE:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(capture=True)


def _is_news(record: logging.LogRecord) -> bool:
    # When a cancel and the failure of the activity that it is for come in one workflow task, the SDK (1.35, its
    # `_await_temporal_operation`) raises the cancel and never reads the failure, and Python complains. Nothing is
    # lost: the workflow goes by what the ledger says.
    is_unread = str(record.msg).startswith("Future exception was never retrieved")
    return not (is_unread and record.name == "temporalio.worker._workflow_instance")


def _formatter() -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=(*_SHARED, _message_before_formatting),
        use_get_message=False,
        pass_foreign_args=True,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            _error_type_only,
            _without_secrets,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
    )


def _message_before_formatting(_: object, __: str, event: EventDict) -> EventDict:
    record: logging.LogRecord = event["_record"]
    words = str(record.msg).partition("\n")[0]  # asyncio's further lines are values, shown as Python shows them
    event.pop("color_message", None)  # uvicorn's message once more, with colours
    event.pop("temporal_log", None)  # the SDK's record once more, as an object
    tells = record.name != "py.warnings" and re.search("[A-Za-z]", words.replace("%s", ""))
    event["event"] = words if tells else record.name
    args = event.pop("positional_args", None)
    if args and record.name.startswith("temporalio"):
        # Which workflow or task it is about; of others nothing is taken over.
        event["about"] = [arg for arg in args if isinstance(arg, int) or _ID.fullmatch(str(arg))]
    return event


def _error_type_only(_: object, __: str, event: EventDict) -> EventDict:
    # A traceback's last line and an exception's text may quote a request: its type and place are enough.
    error = event.pop("exc_info", None)
    event.pop("exception", None)
    event.pop("stack_info", None)
    if error is True:
        error = sys.exc_info()
    if isinstance(error, tuple):
        error = error[1]
    if isinstance(error, BaseException):
        event["error_type"] = type(error).__name__
    return event


def _without_secrets(_: object, __: str, event: EventDict) -> EventDict:
    return {name: _clean(value) for name, value in event.items()}


def _clean(value: Any) -> Any:
    """The value without secrets, and then cut: cut first, half a secret would be no secret any more to this."""
    match value:
        case None | bool() | int() | float():
            return value
        case Mapping():
            return {_clean(str(key)): _clean(part) for key, part in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_clean(part) for part in value]
        case _:
            text = _SECRET.sub(lambda found: f"{found['kept'] or ''}[redacted]", str(value))
            return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}..."
