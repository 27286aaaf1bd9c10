"""What a provider tells while it answers, written down under its attempt."""

from __future__ import annotations

import time

from agentjobs.ledger.database import is_unavailable
from agentjobs.ledger.effects import Effects, Intent

EVERY_SECONDS = 0.5
"""A reader sees text this late. Each piece costs one statement, so that slow writers cost few and fast ones few
too.
"""

AT_ONCE_CHARACTERS = 4_000
"""More than this is written down before its time: a notice must stay small, and memory bounded."""

TEXT_LIMIT = 40_000
"""Beyond this nothing more is shown: an answer is cut off before."""


class AttemptListener:
    """Collects the pieces of an answer, and keeps the id of one that is written in the background."""

    def __init__(self, effects: Effects, intent: Intent, attempt_id: int, model: str) -> None:
        self._effects = effects
        self._intent = intent
        self._attempt_id = attempt_id
        self._model = model
        self.heard_of_response = False
        self._in_vain = False
        self._pieces: list[str] = []
        self._length = 0
        self._shown = 0
        self._due = time.monotonic() + EVERY_SECONDS

    async def wrote(self, text: str) -> None:
        """A piece of the answer: shown within EVERY_SECONDS while more comes."""
        self._pieces.append(text)
        self._length += len(text)
        full = self._length >= AT_ONCE_CHARACTERS and not self._in_vain
        if full or time.monotonic() >= self._due:
            await self.flush()

    async def accepted(self, response_id: str) -> None:
        """Durable before anybody waits for the answer."""
        self.heard_of_response = True
        await self._effects.remember_response(self._attempt_id, model=self._model, response_id=response_id)

    async def flush(self) -> None:
        """Write down what has come since the last time."""
        text = "".join(self._pieces)[: max(TEXT_LIMIT - self._shown, 0)]
        self._pieces.clear()
        self._length = 0
        self._in_vain = bool(text) and not await self._written(text)
        if self._in_vain:
            self._pieces, self._length = [text], len(text)
        else:
            self._shown += len(text)
        self._due = time.monotonic() + EVERY_SECONDS

    async def _written(self, text: str) -> bool:
        try:
            await self._effects.write_text(self._intent, self._attempt_id, text)
        except Exception as error:
            # It is for show: a database that is away must not cost the answer that is being paid for.
            if not is_unavailable(error):
                raise
            return False
        return True
