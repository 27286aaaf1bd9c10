"""Files with secrets in them: readable by their owner only, and never seen half written."""

import os
from pathlib import Path


def write_private(path: Path, text: str) -> None:
    """Replace the file in one step; a crash leaves the old text or the new one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    # The mode is given at creation: a chmod afterwards would leave a moment in which others can open it.
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
