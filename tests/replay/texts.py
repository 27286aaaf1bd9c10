"""The texts of a history, payloads included."""

import base64
from collections.abc import Iterator


def texts_of(value: object) -> Iterator[str]:
    """Every text of a history, with its payloads decoded."""
    if isinstance(value, dict):
        if isinstance(value.get("data"), str):
            yield base64.b64decode(value["data"]).decode("utf-8", "replace")
        for part in value.values():
            yield from texts_of(part)
    elif isinstance(value, list):
        for part in value:
            yield from texts_of(part)
    elif isinstance(value, str):
        yield value
